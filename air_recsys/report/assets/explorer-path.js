"use strict";

/** The nodes and edges of the strongest path, the shortest where an edge is 1 / weight long (Dijkstra); null for none. */
function strongestPath(graph, from, to) {
  const lengths = new Float64Array(graph.size).fill(Infinity);
  const before = new Int32Array(graph.size).fill(-1);
  const done = new Uint8Array(graph.size);
  const heap = new Heap();
  lengths[from] = 0;
  heap.push(0, from);
  for (let node = heap.pop(); node !== undefined && node !== to; node = heap.pop()) {
    if (done[node]) continue;
    done[node] = 1;
    for (let at = graph.starts[node]; at < graph.starts[node + 1]; at++) {
      const other = graph.others[at];
      const length = lengths[node] + 1 / graph.step.weights[graph.edges[at]];
      if (length >= lengths[other]) continue;
      lengths[other] = length;
      before[other] = at;
      heap.push(length, other);
    }
  }
  return lengths[to] < Infinity ? pathBack(graph, from, to, before) : null;
}

/** From the place among the neighbours over which each node was reached to the path itself. */
function pathBack(graph, from, to, before) {
  const path = [];
  for (let node = to; node !== from; ) {
    const edge = graph.edges[before[node]];
    path.unshift({ node, edge, weight: graph.step.weights[edge], shared: graph.step.shared?.[edge] });
    node = graph.step.sources[edge] === node ? graph.step.targets[edge] : graph.step.sources[edge];
  }
  return [{ node: from }, ...path];
}

/** A binary heap of nodes, the nearest first. */
class Heap {
  constructor() {
    this.entries = [];
  }

  push(length, node) {
    const { entries } = this;
    let at = entries.push([length, node]) - 1;
    while (at) {
      const above = (at - 1) >> 1;
      if (entries[above][0] <= length) break;
      [entries[at], entries[above]] = [entries[above], entries[at]];
      at = above;
    }
  }

  /** The nearest node, taken out, or undefined. */
  pop() {
    const { entries } = this;
    const first = entries[0]?.[1];
    const last = entries.pop();
    if (!entries.length) return first;
    entries[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < entries.length && entries[below][0] < entries[least][0]) least = below;
      }
      if (least === at) return first;
      [entries[at], entries[least]] = [entries[least], entries[at]];
      at = least;
    }
  }
}

/** The part of the panel that asks for a node and lists the path from the chosen one to it. */
class PathFinder {
  constructor(explorer) {
    this.explorer = explorer;
    this.steps = [];
    new Search(explorer, { input: byId("path-to"), list: byId("path-found"), onChoose: (to) => this.go(to) });
    asListbox(byId("path-list"));
    byId("path-clear").addEventListener("click", () => this.clear());
  }

  go(to) {
    const { explorer } = this;
    explorer.choose({ node: explorer.chosen.node, to }, false);
    byId("status").textContent = byId("path-about").textContent;
    if (this.steps.length && !explorer.large) explorer.view.fitMarked();
  }

  get nodes() {
    return this.steps.map(({ node }) => node);
  }

  get edges() {
    return new Set(this.steps.slice(1).map(({ edge }) => edge));
  }

  /** A path goes on while one walks along it. */
  goal(node) {
    const goal = this.steps.at(-1)?.node;
    return goal !== node && this.nodes.includes(node) ? goal : undefined;
  }

  /** Find and list the path of the chosen node; without a goal only the box is there, without a node nothing. */
  show({ node, to }) {
    const { graph } = this.explorer;
    this.steps = [];
    byId("path").hidden = node === undefined || !graph.degree(node);
    if (byId("path").hidden) return;
    const asked = to !== undefined && to !== node;
    const found = asked ? strongestPath(graph, node, to) : null;
    this.steps = found || [];
    byId("path-told").hidden = !asked;
    byId("path-to").value = asked ? graph.labels[to] : "";
    byId("path-about").textContent = asked ? this.told(found, to) : "";
    fillNodes(byId("path-list"), graph, this.steps, (other) => this.explorer.choose({ node: other, to: this.goal(other) }));
  }

  told(found, to) {
    const { graph } = this.explorer;
    if (!found) {
      return `No path: the ${number(graph.step.weights.length)} edges of this page do not join it to ${graph.labels[to]}.`;
    }
    const weakest = Math.min(...found.slice(1).map(({ weight }) => weight));
    if (found.length === 2) return `Strongest path: 1 edge of weight ${weightText(weakest)}.`;
    return `Strongest path: ${number(found.length - 1)} edges, the weakest of weight ${weightText(weakest)}.`;
  }

  clear() {
    this.explorer.choose({ node: this.explorer.chosen.node }, false);
    byId("path-to").focus();
  }
}
