"use strict";

/** Where the edges of a graph come from: what was learned, or who rated what. Nodes stay, with their colours. */
class EdgeSource {
  constructor(explorer) {
    this.explorer = explorer;
    for (const input of document.getElementsByName("edges")) {
      input.addEventListener("change", () => this.choose(input.value));
    }
  }

  /** Show the switch for a graph, where both kinds of edges are in the page. */
  open(graph) {
    byId("source").hidden = !graph.pattern_edges?.weights.length;
    this.check(graph);
  }

  check({ source }) {
    for (const input of document.getElementsByName("edges")) input.checked = input.value === source;
  }

  choose(source) {
    const { explorer } = this;
    const { graph, view } = explorer;
    if (!graph.pattern_edges?.weights.length || source === graph.source) return;
    graph.source = source;
    graph.setStep(graph.stepIndex);
    this.check(graph);
    explorer.describe();
    explorer.slider.open(graph);
    explorer.setLooks(explorer.looks.color, explorer.looks.size);
    view.fitting = false; // the picture stays where it is
    if (explorer.chosen) explorer.choose(explorer.chosen, false);
    byId("status").textContent = `Edges of ${source === "pattern" ? "who rated what" : "the learned graph"}`;
  }
}

/** A step of the training with its communities, and the edges of who rated what in place of those learned. */
function withPatternEdges(step, pattern) {
  return { ...pattern, epoch: step.epoch, communities: step.communities };
}
