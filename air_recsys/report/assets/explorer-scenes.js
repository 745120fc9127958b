"use strict";

// Each at least 3:1 against both backgrounds.
const PALETTE = [
  "#4878d0", "#df6a1a", "#3b9d65", "#d65f5f", "#9a6fc9", "#1899ab", "#d465ad", "#a48b1c", "#8a6248", "#6f8f2f",
  "#5667b8", "#c2566f", "#3b9997", "#c37c2b", "#7588d7", "#a35d9e", "#549c42", "#c9774f", "#4c8fb0", "#8f7f4a",
];
// `key` and `rank`, because force-graph numbers nodes and links by `index` as it likes.
const SCALE = 60; // canvas units for one unit of the positions

/** The colour of a community; small ones share the grey of the theme, which is "". */
function communityColor(community) {
  return community >= 0 && community < PALETTE.length ? PALETTE[community] : "";
}

/** What nodes look like: a function of their numbers in the graph. */
function nodePaint(graph) {
  const { of: color } = graph.looks.colors(graph.looks.color || "");
  const size = graph.looks.sizes(graph.looks.size || "");
  return (key) => ({
    key,
    label: graph.labels[key],
    community: graph.communities[key],
    color: color(key),
    radius: 2.4 + 3.2 * size(key),
    seen: true,
  });
}

/** All nodes of a graph, or some of them without places, and the edges between them. */
function nodeScene(graph, only = null) {
  const paint = nodePaint(graph);
  const place = (key) => (only ? {} : { x: graph.positions[key][0] * SCALE, y: graph.positions[key][1] * SCALE });
  const keys = only ? [...only].sort((a, b) => graph.strength[b] - graph.strength[a] || a - b) : graph.byStrength;
  const nodes = keys.map((key) => ({ ...paint(key), ...place(key) }));
  const counts = graph.attributes["number of ratings"];
  const byKnown = counts ? [...nodes].sort((a, b) => counts[b.key] - counts[a.key]) : nodes;
  return { nodes, byKnown, links: only ? linksAmong(graph, nodes) : linksBetween(nodes, graph.step) };
}

/** The graph of communities: discs whose areas are as their numbers of members. */
function communityScene(graph) {
  const { sizes, positions, radii } = graph.overview;
  const nodes = sizes.map((size, community) => ({
    key: community,
    get label() {
      return `${graph.communityName(community)} · ${size.toLocaleString("en")}`;
    },
    community,
    isCommunity: true,
    isOpen: false,
    color: communityColor(community),
    reach: radii[community] * SCALE,
    seen: true,
    x: positions[community][0] * SCALE,
    y: positions[community][1] * SCALE,
  }));
  return { nodes, byKnown: nodes, links: linksBetween(nodes, graph.overview) };
}

function linksBetween(nodes, { sources, targets, weights }) {
  const byKey = [];
  for (const node of nodes) byKey[node.key] = node;
  const links = [];
  for (let rank = 0; rank < sources.length; rank++) {
    const [source, target] = [byKey[sources[rank]], byKey[targets[rank]]];
    if (source && target) links.push({ rank, source, target, weight: weights[rank], seen: true });
  }
  return links;
}

/** The edges among a few nodes of a large graph, strongest first. */
function linksAmong(graph, nodes) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const links = [];
  for (const source of nodes) {
    for (let at = graph.starts[source.key]; at < graph.starts[source.key + 1]; at++) {
      const target = graph.others[at] > source.key && byKey.get(graph.others[at]);
      const rank = graph.edges[at];
      if (target) links.push({ rank, source, target, weight: graph.step.weights[rank], seen: true });
    }
  }
  return links.sort((a, b) => a.rank - b.rank);
}
