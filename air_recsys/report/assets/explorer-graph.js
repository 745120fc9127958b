"use strict";

/** One graph of the page at one of its steps: neighbours, search, surroundings. */
class Graph {
  constructor(data) {
    Object.assign(this, data);
    this.size = data.ids.length;
    this.texts = data.labels.map((label, node) => [label.toLowerCase(), data.ids[node].toLowerCase()]);
    this.named = new Map(data.names.map((each) => [each.community, each]));
    this.renamed = new Map();
    this.looks = null;
    this.setStep(data.steps.length - 1);
    this.looks = new Looks(this);
  }

  setStep(index) {
    this.step = this.steps[index];
    this.stepIndex = index;
    this.communities = this.step.communities;
    this.places = new Map();
    this.indexEdges();
    this.indexCommunities();
  }

  /** Places of members of a community in a disc of radius 1, computed once a step. */
  placesIn(community, members) {
    if (!this.places.has(community)) this.places.set(community, placesOf(this, members));
    return this.places.get(community);
  }

  /** Neighbours as slices of `others` and `edges`; the edges come strongest first, and so do the slices. */
  indexEdges() {
    const { sources, targets, weights } = this.step;
    this.starts = new Int32Array(this.size + 1);
    for (const ends of [sources, targets]) for (const node of ends) this.starts[node + 1]++;
    for (let node = 0; node < this.size; node++) this.starts[node + 1] += this.starts[node];
    const next = this.starts.slice();
    this.others = new Int32Array(2 * weights.length);
    this.edges = new Int32Array(2 * weights.length);
    this.strength = new Float64Array(this.size);
    const add = (node, other, edge) => {
      this.others[next[node]] = other;
      this.edges[next[node]++] = edge;
      this.strength[node] += weights[edge];
    };
    for (let edge = 0; edge < weights.length; edge++) {
      add(sources[edge], targets[edge], edge);
      add(targets[edge], sources[edge], edge);
    }
    this.byStrength = Array.from(this.strength.keys()).sort((a, b) => this.strength[b] - this.strength[a] || a - b);
  }

  /** Members of each community, strongest first; those of the isolated nodes under -1. */
  indexCommunities() {
    this.members = new Map();
    for (const node of this.byStrength) {
      const community = this.communities[node];
      if (!this.members.has(community)) this.members.set(community, []);
      this.members.get(community).push(node);
    }
  }

  degree(node) {
    return this.starts[node + 1] - this.starts[node];
  }

  neighbors(node) {
    const found = [];
    for (let at = this.starts[node]; at < this.starts[node + 1]; at++) {
      const edge = this.edges[at];
      found.push({ node: this.others[at], weight: this.step.weights[edge], shared: this.step.shared?.[edge] });
    }
    return found;
  }

  /** The node and those within some hops of it, nearest and strongest first, at most `limit`. */
  ego(node, hops, limit = 400) {
    const found = new Set([node]);
    let ring = [node];
    for (let hop = 0; hop < hops; hop++) {
      const next = [];
      for (const from of ring) {
        for (const { node: other } of this.neighbors(from)) {
          if (found.size >= limit) return found;
          if (!found.has(other)) {
            found.add(other);
            next.push(other);
          }
        }
      }
      ring = next;
    }
    return found;
  }

  /** Nodes whose id is the text, then those whose label or id begins with it, then those that hold it. */
  search(text, limit = 30) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const ranks = [[], [], []];
    for (const node of this.byStrength) {
      const [label, id] = this.texts[node];
      if (id === wanted) ranks[0].push(node);
      else if (label.startsWith(wanted) || id.startsWith(wanted)) ranks[1].push(node);
      else if (label.includes(wanted)) ranks[2].push(node);
    }
    return ranks.flat().slice(0, limit);
  }

  /** How many of the strongest edges weigh as much as the `wanted`-th one or more. */
  withTies(wanted) {
    const { weights } = this.step;
    let count = Math.min(Math.max(wanted, 1), weights.length);
    while (count < weights.length && weights[count] === weights[count - 1]) count++;
    return count;
  }

  /** A text for a community: what people call it, else what sets it apart, else its strongest member. */
  communityName(community) {
    if (community < 0) return "isolated";
    const named = this.renamed.get(community) || this.named.get(community)?.name;
    return named || this.labels[this.members.get(community)[0]];
  }

  /** Why an edge is there, as far as the ratings say: who rated both ends. */
  reason(shared) {
    if (shared === undefined) return "";
    return `${number(shared)} ${shared === 1 ? this.raters.slice(0, -1) : this.raters} rated both`;
  }

  /** The median of the numbers of ratings of some nodes, or null. */
  medianRatings(nodes) {
    const counts = this.attributes["number of ratings"];
    if (!counts || !nodes.length) return null;
    const sorted = nodes.map((node) => Number(counts[node])).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)];
  }
}
