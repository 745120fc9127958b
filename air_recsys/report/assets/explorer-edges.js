"use strict";

/** The slider that says which edges are drawn: it counts the strongest, as most have little weight. */
class EdgeSlider {
  constructor(onMove) {
    this.input = byId("threshold");
    this.onMove = onMove;
    this.input.addEventListener("input", () => this.move(this.input.valueAsNumber));
  }

  /** About three edges a node are easy on the eye; the slider brings the others. */
  open(graph) {
    this.graph = graph;
    const total = graph.step.weights.length;
    const wanted = Math.min(total, Math.max(3 * graph.size, 2000));
    this.input.value = String(total ? Math.floor(1000 * (1 - Math.sqrt(wanted / total))) : 0);
    this.input.disabled = !total;
    this.moved = false;
    this.read();
  }

  /** Few edges have room by the square root. */
  read() {
    const { weights } = this.graph.step;
    const share = (1 - this.input.valueAsNumber / 1000) ** 2;
    this.kept = weights.length ? this.graph.withTies(Math.round(share * weights.length)) : 0;
    const text = this.kept ? weightText(weights[this.kept - 1]) : "–";
    byId("weight").textContent = text;
    this.input.setAttribute("aria-valuetext", `weight at least ${text}`);
  }

  move(value) {
    this.input.value = String(value);
    this.moved = true;
    this.read();
    this.onMove();
  }
}
