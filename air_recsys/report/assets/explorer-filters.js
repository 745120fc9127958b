"use strict";

const MOST_CHOICES = 60; // of one attribute, the commonest

/** What nodes of a graph must have to be seen: numbers within ranges, one of some texts. */
class Filters {
  constructor(graph) {
    this.graph = graph;
    this.numbers = new Map([...graph.looks.numbers].map(([name, { values }]) => [name, values]));
    this.texts = new Map([...graph.looks.texts.keys()].map((name) => [name, partsOf(graph.attributes[name])]));
    this.clear();
  }

  clear() {
    this.ranges = new Map(); // {low, high}, either may be null
    this.wanted = new Map(); // sets of texts
    this.mask = null;
  }

  get count() {
    return this.ranges.size + this.wanted.size;
  }

  setRange(name, low, high) {
    if (low === null && high === null) this.ranges.delete(name);
    else this.ranges.set(name, { low, high });
    this.update();
  }

  setWanted(name, texts) {
    if (texts.size) this.wanted.set(name, texts);
    else this.wanted.delete(name);
    this.update();
  }

  update() {
    this.mask = this.count ? Uint8Array.from(this.graph.ids, (_, node) => this.tested(node)) : null;
  }

  tested(node) {
    for (const [name, { low, high }] of this.ranges) {
      const value = this.numbers.get(name)[node];
      if (!((low === null || value >= low) && (high === null || value <= high) && Number.isFinite(value))) return false;
    }
    for (const [name, texts] of this.wanted) if (!this.texts.get(name)[node].some((text) => texts.has(text))) return false;
    return true;
  }

  passes(node) {
    return !this.mask || this.mask[node] === 1;
  }

  /** The texts of an attribute that two nodes or more have, with their numbers, commonest first. */
  choices(name) {
    const counts = new Map();
    for (const texts of this.texts.get(name)) for (const text of texts) counts.set(text, (counts.get(text) || 0) + 1);
    const common = [...counts].filter(([, count]) => count > 1);
    return common.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_CHOICES);
  }

  known(name, texts) {
    const all = new Set(this.texts.get(name).flat());
    return new Set(texts.filter((text) => all.has(text)));
  }

  /** One part of the link for each filter: "low..high", or texts between "|". */
  write(parts) {
    for (const [name, { low, high }] of this.ranges) parts.set(`if ${name}`, `${low ?? ""}..${high ?? ""}`);
    for (const [name, texts] of this.wanted) parts.set(`if ${name}`, [...texts].join("|"));
  }

  read(parts) {
    this.clear();
    for (const [key, text] of parts) {
      const name = key.slice(3);
      if (!key.startsWith("if ")) continue;
      if (this.numbers.has(name)) this.setRange(name, ...rangeOf(text));
      else if (this.texts.has(name)) this.setWanted(name, this.known(name, text.split("|")));
    }
  }
}

/** The parts between "|" of every text; of a missing one none. */
function partsOf(texts) {
  return texts.map((text) => (text === null ? [] : text.split("|").map((part) => part.trim()).filter(Boolean)));
}

/** Both ends of "low..high" or of two fields, null for what is no number. */
function rangeOf(text) {
  const [low, high] = text.split("..");
  return [low, high].map((end) => (end && Number.isFinite(Number(end)) ? Number(end) : null));
}

/** The controls of the filters of the graph that is shown. */
class FilterControls {
  constructor(onChange) {
    this.onChange = onChange;
    byId("clear-filters").addEventListener("click", () => {
      this.filters.clear();
      this.show(this.filters);
      byId("filters").querySelector("summary").focus();
      onChange();
    });
  }

  /** Build the fields for a graph, as its filters are set. */
  show(filters) {
    this.filters = filters;
    const ranges = [...filters.numbers.keys()].map((name) => this.range(name));
    const choices = [...filters.texts.keys()].map((name) => this.choice(name)).filter(Boolean);
    byId("filter-fields").replaceChildren(...ranges, ...choices);
    byId("filters").hidden = !ranges.length && !choices.length;
    if (filters.count) byId("filters").open = true;
  }

  range(name) {
    const known = this.filters.numbers.get(name).filter(Number.isFinite);
    const set = this.filters.ranges.get(name) || { low: null, high: null };
    const field = (words, end, bound) => {
      const made = element("input", { type: "number", step: "any", value: end ?? "", placeholder: String(bound) });
      made.setAttribute("aria-label", `${name} ${words}`);
      return made;
    };
    const low = field("at least", set.low, known.reduce((a, b) => Math.min(a, b)));
    const high = field("at most", set.high, known.reduce((a, b) => Math.max(a, b)));
    for (const each of [low, high]) {
      each.addEventListener("input", () => {
        this.filters.setRange(name, ...rangeOf(`${low.value}..${high.value}`));
        this.onChange();
      });
    }
    const fields = element("span", { className: "ends" }, [low, element("span", { text: "to" }), high]);
    return element("fieldset", { className: "range" }, [element("legend", { text: name, title: name }), fields]);
  }

  choice(name) {
    const choices = this.filters.choices(name);
    if (!choices.length) return null;
    const chosen = new Set(this.filters.wanted.get(name));
    const boxes = choices.map(([text, count]) => {
      const box = element("input", { type: "checkbox", checked: chosen.has(text) });
      box.addEventListener("change", () => {
        if (box.checked) chosen.add(text);
        else chosen.delete(text);
        this.filters.setWanted(name, new Set(chosen));
        this.onChange();
      });
      const words = element("span", { className: "what", text, title: text });
      return element("label", {}, [box, words, element("span", { className: "count", text: number(count) })]);
    });
    const fields = element("fieldset", {}, [element("legend", { className: "unseen", text: name }), ...boxes]);
    return element("details", { className: "choice", open: chosen.size > 0 }, [element("summary", { text: name }), fields]);
  }

  /** Say how many nodes pass, and offer to pass all. */
  tell(passing, graph) {
    byId("clear-filters").hidden = !this.filters.count;
    const text = `${number(passing)} of ${number(graph.size)} ${graph.kind}s pass`;
    byId("passing").textContent = this.filters.count ? text : "";
  }
}
