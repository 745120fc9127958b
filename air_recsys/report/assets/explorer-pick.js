"use strict";

const LISTED = 10; // recommended items at first, and more at a time
const MOST_PICKS = 500; // of a link

/** What a person picks and how it is rated, and what the model recommends for that, solved in this page. */
class Picks {
  constructor(explorer, data) {
    this.explorer = explorer;
    this.data = data;
    this.graph = explorer.graphs.find((each) => each.kind === "item");
    this.foldIn = new FoldIn(data);
    this.ratings = new Map();
    this.listed = [];
    this.count = LISTED;
    this.build();
    explorer.view.overlay = (context, scale) => this.mark(context, scale);
  }

  // ------------------------------------------------------------ the part of the page

  build() {
    this.toggle = element("button", { type: "button", id: "recommend", text: "Recommend" });
    this.toggle.setAttribute("aria-controls", "picks");
    this.toggle.addEventListener("click", () => this.show(this.section.hidden));
    byId("theme").before(this.toggle);
    this.section = element("section", { id: "picks", className: "picks", ariaLabel: "Picks and recommendations" });
    this.section.append(...this.head(), ...this.body());
    document.querySelector(".controls").before(this.section);
    this.button = element("button", { type: "button", id: "pick" });
    this.button.addEventListener("click", () => this.pick(this.explorer.chosen.node));
    byId("about").after(this.button);
    this.search = new Search(this.explorer, {
      input: byId("pick-search"),
      list: byId("pick-found"),
      graph: () => this.graph,
      onChoose: (node) => this.add(node),
    });
    for (const id of ["picked", "recommended"]) arrowKeys(byId(id));
    this.section.addEventListener("keydown", (event) => this.onKey(event));
    this.show(false);
  }

  head() {
    const close = element("button", { type: "button", className: "plain", ariaLabel: "Close recommendations", text: "×" });
    close.addEventListener("click", () => this.show(false));
    const input = element("input", { id: "pick-search", type: "search", placeholder: "Add an item", autocomplete: "off", spellcheck: false });
    const values = { role: "combobox", "aria-label": "Add an item", "aria-expanded": "false", "aria-controls": "pick-found", "aria-autocomplete": "list" };
    for (const [name, value] of Object.entries(values)) input.setAttribute(name, value);
    const list = element("ul", { id: "pick-found", className: "found", role: "listbox", ariaLabel: "Found", hidden: true });
    return [
      element("div", { className: "row" }, [element("h2", { text: "What would the model recommend?" }), close]),
      element("p", { className: "hint", text: "To someone who picks these. Nothing leaves this page." }),
      element("div", { className: "search" }, [input, list]),
    ];
  }

  body() {
    const clear = element("button", { type: "button", id: "clear-picks", className: "link", text: "Clear" });
    clear.addEventListener("click", () => this.clear());
    const more = element("button", { type: "button", id: "more", className: "link", text: `${LISTED} more` });
    more.addEventListener("click", () => this.showMore());
    return [
      element("div", { className: "row" }, [element("h3", { id: "picked-title", text: "Picked" }), clear]),
      element("ul", { id: "picked" }),
      element("h3", { id: "recommended-title", text: "Recommended" }),
      element("p", { id: "recommended-about", className: "hint" }),
      element("ol", { id: "recommended" }),
      more,
    ];
  }

  show(open, focus = true) {
    this.section.hidden = !open;
    document.querySelector(".controls").hidden = open;
    this.toggle.setAttribute("aria-expanded", String(open));
    this.explorer.view.resize();
    if (open) this.render();
    if (!open || !focus) return;
    byId("pick-search").focus({ preventScroll: true });
    this.section.scrollIntoView({ block: "nearest" });
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    this.show(false);
    this.toggle.focus();
  }

  // ------------------------------------------------------------ picking

  get rated() {
    return this.data.kind !== "lists" && this.data.range[0] < this.data.range[1];
  }

  /** The rating of a new pick: the best there is. */
  get best() {
    return this.data.kind === "lists" ? 1 : this.data.range[1];
  }

  add(item, rating = this.best) {
    this.search.input.value = "";
    this.ratings.set(item, rating);
    this.changed(`${this.graph.labels[item]} picked`);
  }

  remove(item) {
    this.ratings.delete(item);
    this.changed(`${this.graph.labels[item]} removed`);
  }

  /** Pick the chosen item, or let go of it. */
  pick(item) {
    if (this.ratings.has(item)) this.remove(item);
    else this.add(item);
    if (this.section.hidden && this.ratings.size) {
      this.show(true, false);
    }
  }

  clear() {
    this.ratings.clear();
    this.changed("No picks");
    byId("pick-search").focus({ preventScroll: true });
  }

  changed(text) {
    this.count = LISTED;
    this.render();
    this.describe();
    this.explorer.remember();
    const first = this.listed.length ? `. Recommended first: ${this.graph.labels[this.listed[0]]}` : "";
    byId("status").textContent = text + first;
  }

  showMore() {
    const before = this.count;
    this.count += LISTED;
    this.render();
    byId("recommended").children[before]?.querySelector("button").focus();
  }

  // ------------------------------------------------------------ what is shown

  render() {
    const picks = Array.from(this.ratings, ([item, rating]) => ({ item, rating }));
    byId("picked").replaceChildren(...picks.map((pick) => this.pickEntry(pick)));
    byId("clear-picks").hidden = !picks.length;
    this.listed = picks.length ? this.solve(picks) : [];
    this.digits = this.digitsOf();
    byId("recommended").replaceChildren(...this.listed.map((item) => this.entry(item)));
    byId("more").hidden = !this.listed.length || this.listed.length < this.count;
    byId("recommended-title").hidden = !picks.length;
    byId("recommended-about").hidden = !picks.length;
    this.explorer.view.draw();
  }

  solve(picks) {
    try {
      this.scores = this.foldIn.solve(picks);
    } catch (error) {
      byId("recommended-about").textContent = `No list: ${error.message}`;
      return [];
    }
    const about = { posterior: "Score, and an interval meant to hold 90 % of such ratings", objective: "Score of each item" };
    byId("recommended-about").textContent = about[this.data.kind] || "Scores order the items; they are no ratings";
    return bestOf(this.scores, this.ratings, this.count);
  }

  /** Digits of a score: about a hundredth of the scale. */
  digitsOf() {
    const [low, high] = this.rated ? this.data.range : [0, Math.abs(this.scores?.[this.listed[0]] ?? 1)];
    return Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(high - low || 1))));
  }

  scoreText(score) {
    return score.toFixed(this.digits);
  }

  pickEntry({ item, rating }) {
    const label = this.graph.labels[item];
    const name = element("button", { type: "button", className: "name", title: label }, [
      swatch(this.graph.communities[item]),
      element("span", { className: "what", text: label }),
    ]);
    name.addEventListener("click", () => this.select(item));
    const remove = element("button", { type: "button", className: "plain", ariaLabel: `Remove ${label}`, text: "×" });
    remove.addEventListener("click", () => this.removeEntry(item));
    return element("li", {}, [name, ...(this.rated ? [this.ratingControl(item, rating)] : []), remove]);
  }

  removeEntry(item) {
    const at = [...this.ratings.keys()].indexOf(item);
    this.remove(item);
    const next = byId("picked").children[Math.min(at, this.ratings.size - 1)];
    (next?.querySelector(".plain") || byId("pick-search")).focus({ preventScroll: true });
  }

  ratingControl(item, rating) {
    const { values, range } = this.data;
    const ariaLabel = `Rating of ${this.graph.labels[item]}`;
    const control = values
      ? element("select", { ariaLabel }, values.map((value) => element("option", { value: String(value), text: String(value) })))
      : element("input", { type: "number", min: range[0], max: range[1], step: "any", ariaLabel });
    if (values && !values.includes(rating)) control.append(element("option", { value: String(rating), text: String(rating) }));
    control.value = String(rating);
    control.addEventListener("change", () => this.rate(item, control.value));
    return control;
  }

  rate(item, text) {
    const rating = text.trim() === "" ? NaN : Number(text);
    if (Number.isFinite(rating)) this.ratings.set(item, within(rating, this.data.range));
    const at = [...this.ratings.keys()].indexOf(item);
    this.changed(`${this.graph.labels[item]} rated`);
    byId("picked").children[at].querySelector("select, input").focus({ preventScroll: true });
  }

  entry(item) {
    const { graph } = this;
    const score = limitedScore(this.data, this.scores[item]);
    const interval = this.interval(item);
    const reasons = this.foldIn.reasons(item);
    const line = element("span", { className: "line" }, [
      swatch(graph.communities[item]),
      element("span", { className: "what", text: graph.labels[item], title: graph.labels[item] }),
      element("span", { className: "count", text: this.scoreText(score) }),
    ]);
    const why = [interval && interval.map((end) => this.scoreText(end)).join(" – "), this.because(reasons)].filter(Boolean).join(" · ");
    const parts = [line, ...(interval ? [this.bar(score, interval)] : []), element("span", { className: "why", text: why })];
    const button = element("button", { type: "button" }, parts);
    button.addEventListener("click", () => this.select(item));
    return element("li", {}, [button, reasonsOf(this, item, score, reasons)]);
  }

  /** Both ends of the interval of 90 %, on the scale where scores are; null without deviations. */
  interval(item) {
    const deviation = this.foldIn.deviation(item);
    if (deviation === null) return null;
    const ends = [-1, 1].map((side) => this.scores[item] + side * 1.6448536269514722 * deviation);
    return this.data.limit === "none" ? ends : ends.map((end) => within(end, this.data.range));
  }

  bar(score, [low, high]) {
    const [first, last] = this.data.range;
    const place = (value) => `${(100 * (within(value, [first, last]) - first)) / (last - first || 1)}%`;
    const [span, point] = [element("i"), element("b")];
    span.style.left = place(low);
    span.style.right = `calc(100% - ${place(high)})`;
    point.style.left = place(score);
    return element("span", { className: "scale", ariaHidden: "true" }, [span, point]);
  }

  /** The picks that add most to a score, in words. */
  because({ picks }) {
    const items = [...this.ratings.keys()];
    const best = [...picks.keys()].filter((at) => picks[at] >= 10 ** -this.digits).sort((a, b) => picks[b] - picks[a]);
    return best.slice(0, 2).map((at) => `${this.graph.labels[items[at]]} ${signed(picks[at], this.digits)}`).join(" · ");
  }

  select(item) {
    if (this.explorer.graph !== this.graph) this.explorer.open(this.graph);
    this.explorer.choose({ node: item }, false);
    if (!this.explorer.large) this.explorer.view.fitMarked();
    document.querySelector(".picture").scrollIntoView({ block: "nearest" });
  }

  /** The button of the details, where an item is chosen. */
  describe() {
    const item = this.explorer.graph === this.graph ? this.explorer.chosen?.node : undefined;
    this.button.hidden = item === undefined;
    if (item === undefined) return;
    const isPicked = this.ratings.has(item);
    this.button.textContent = isPicked ? "Picked" : "Pick";
    this.button.setAttribute("aria-pressed", String(isPicked));
  }

  // ------------------------------------------------------------ picture and link

  /** Stars for picks, rings for what is recommended, and their names; returns the nodes that were named. */
  mark(context, scale) {
    const { view, overview, graph } = this.explorer;
    if (graph !== this.graph || overview || this.section.hidden) return new Set();
    if (this.scene !== view.scene) this.nodes = new Map(view.scene.nodes.map((node) => [node.key, node]));
    this.scene = view.scene;
    const seen = (items) => items.map((item) => this.nodes.get(item)).filter((node) => node?.seen);
    const [picked, listed] = [seen([...this.ratings.keys()]), seen(this.listed)];
    for (const node of listed) drawRing(view, node, context, scale);
    for (const node of picked) drawStar(view, node, context, scale);
    const named = view.selected === null ? [...picked, ...listed] : picked;
    for (const node of named) view.drawLabel(node, context, scale);
    return new Set(named);
  }

  write(parts) {
    for (const [item, rating] of this.ratings) parts.append("pick", `${rating} ${this.graph.ids[item]}`);
  }

  read(parts) {
    this.ratings.clear();
    for (const text of parts.getAll("pick").slice(0, MOST_PICKS)) {
      const at = text.indexOf(" ");
      const [rating, item] = [Number(text.slice(0, at)), this.graph.ids.indexOf(text.slice(at + 1))];
      const allowed = !this.rated || within(rating, this.data.range) === rating;
      if (at > 0 && item >= 0 && allowed) this.ratings.set(item, this.rated ? rating : this.best);
    }
    if (this.ratings.size && this.section.hidden) this.show(true, false);
    else this.render();
    this.describe();
  }
}

function drawRing(view, node, context, scale) {
  context.beginPath();
  context.arc(node.x, node.y, view.radius(node, scale) + 3 / scale, 0, 2 * Math.PI);
  context.lineWidth = 1.6 / scale;
  context.strokeStyle = view.colors.ink;
  context.stroke();
}

function drawStar(view, node, context, scale) {
  const outer = view.radius(node, scale) + 6 / scale;
  context.beginPath();
  for (let corner = 0; corner < 10; corner++) {
    const radius = corner % 2 ? outer / 2.2 : outer;
    const angle = (corner * Math.PI) / 5 - Math.PI / 2;
    context.lineTo(node.x + radius * Math.cos(angle), node.y + radius * Math.sin(angle));
  }
  context.closePath();
  context.lineWidth = 2 / scale;
  context.strokeStyle = view.colors.page;
  context.stroke();
  context.fillStyle = view.colors.ink;
  context.fill();
}
