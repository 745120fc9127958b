"use strict";

// Of numbers, from small to large; each about 3:1 against both backgrounds.
const SCALE_OF_NUMBERS = ["#6a5acd", "#4878d0", "#1899ab", "#3b9d65", "#a48b1c", "#df6a1a"];
const MOST_CATEGORIES = 12;

/** What nodes can be coloured and sized by: communities, and every attribute. */
class Looks {
  constructor(graph) {
    this.graph = graph;
    this.numbers = new Map();
    this.texts = new Map();
    for (const [name, values] of Object.entries(graph.attributes)) {
      const numbers = values.map((value) => (value === null || value.trim() === "" ? NaN : Number(value)));
      const known = values.filter((value) => value !== null);
      const areNumbers = known.length && numbers.filter(Number.isFinite).length === known.length;
      if (areNumbers) this.numbers.set(name, ranked(numbers));
      else if (known.length) this.texts.set(name, values.map((value) => (value === null ? "" : value.split("|")[0])));
    }
  }

  colorChoices() {
    const pattern = this.graph.pattern ? [["pattern", "community by who rated what"]] : [];
    const named = (map) => [...map.keys()].map((name) => [`a:${name}`, name]);
    return [["", "community"], ...pattern, ...named(this.numbers), ...named(this.texts)];
  }

  sizeChoices() {
    return [["", "sum of weights"], ...[...this.numbers.keys()].map((name) => [`a:${name}`, name])];
  }

  /** The colour of every node, "" for the grey of the theme, and the key: texts with their colours. */
  colors(choice) {
    if (choice === "pattern") return { of: (node) => communityColor(this.graph.pattern[node]), key: [] };
    const name = choice.slice(2);
    if (this.numbers.has(name)) return this.colorsOfNumbers(this.numbers.get(name));
    if (this.texts.has(name)) return this.colorsOfTexts(this.texts.get(name));
    return { of: (node) => communityColor(this.graph.communities[node]), key: [] };
  }

  colorsOfNumbers({ shares, values }) {
    const steps = SCALE_OF_NUMBERS.length;
    const color = (share) => SCALE_OF_NUMBERS[Math.min(steps - 1, Math.floor(share * steps))];
    const known = values.filter(Number.isFinite).sort((a, b) => a - b);
    const at = (share) => String(known[Math.min(known.length - 1, Math.floor(share * known.length))]);
    const key = SCALE_OF_NUMBERS.map((each, step) => ({ color: each, text: `from ${at(step / steps)}` }));
    return { of: (node) => (Number.isNaN(shares[node]) ? "" : color(shares[node])), key };
  }

  colorsOfTexts(texts) {
    const counts = new Map();
    for (const text of texts) if (text) counts.set(text, (counts.get(text) || 0) + 1);
    const common = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_CATEGORIES);
    const colors = new Map(common.map(([text], index) => [text, PALETTE[index]]));
    const key = common.map(([text, count]) => ({ color: colors.get(text), text: `${text} (${number(count)})` }));
    return { of: (node) => colors.get(texts[node]) || "", key };
  }

  /** The size of every node in [0, 1]. */
  sizes(choice) {
    const found = this.numbers.get(choice.slice(2));
    if (found) return (node) => (Number.isNaN(found.shares[node]) ? 0 : found.shares[node] ** 2);
    const strongest = this.graph.strength.reduce((a, b) => Math.max(a, b), 1e-300);
    return (node) => Math.sqrt(this.graph.strength[node] / strongest);
  }
}

/** Numbers with their ranks in [0, 1), equal numbers alike. */
function ranked(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const first = new Map();
  sorted.forEach((value, index) => first.has(value) || first.set(value, index));
  return { values, shares: values.map((value) => (Number.isFinite(value) ? first.get(value) / sorted.length : NaN)) };
}
