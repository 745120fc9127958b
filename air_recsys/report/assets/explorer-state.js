"use strict";

/** The state of the page as a text for the link, and back: what differs from a page that was just opened. */
const LinkState = {
  write(explorer) {
    const { graphs, graph, chosen, hops, filtered, looks } = explorer;
    const parts = new URLSearchParams();
    if (graph !== graphs[0]) parts.set("graph", graph.name);
    if (graph.stepIndex !== graph.steps.length - 1) parts.set("step", graph.stepIndex);
    if (graph.source !== "learned") parts.set("source", graph.source);
    if (chosen?.node !== undefined) parts.set("node", graph.ids[chosen.node]);
    else if (chosen?.community !== undefined) parts.set("community", chosen.community);
    if (chosen?.to !== undefined) parts.set("to", graph.ids[chosen.to]);
    if (hops && chosen) parts.set("hops", hops);
    if (filtered.size) parts.set("only", [...filtered].join(" "));
    if (looks.color) parts.set("color", looks.color);
    if (looks.size) parts.set("size", looks.size);
    graph.filters.write(parts);
    explorer.selected.write(parts);
    if (explorer.slider.moved) parts.set("edges", byId("threshold").value);
    for (const [community, name] of graph.renamed) parts.append("name", `${community} ${name}`);
    explorer.picks?.write(parts);
    return parts.toString();
  },

  read(explorer, text) {
    const parts = new URLSearchParams(text);
    const graph = explorer.graphs.find((each) => each.name === parts.get("graph")) || explorer.graphs[0];
    graph.renamed = new Map(parts.getAll("name").map((each) => splitName(each)));
    explorer.selected.read(parts, graph);
    explorer.chosen = graph.left = null;
    explorer.open(graph);
    graph.filters.read(parts);
    explorer.filterControls.show(graph.filters);
    const step = whole(parts.get("step"), graph.steps.length);
    if (step !== null) explorer.setStep(step);
    explorer.source.choose(parts.get("source") === "pattern" ? "pattern" : "learned");
    explorer.setLooks(parts.get("color") || "", parts.get("size") || "");
    const edges = whole(parts.get("edges"), 1001);
    if (edges !== null) explorer.slider.move(edges);
    const keys = (parts.get("only") || "").split(" ").map(Number);
    explorer.filtered = new Set(keys.filter((key) => parts.get("only") && legendGroups(graph).some((group) => group.key === key)));
    const node = graph.ids.indexOf(parts.get("node"));
    const to = graph.ids.indexOf(parts.get("to"));
    const community = whole(parts.get("community"), 1e9);
    if (node >= 0) explorer.choose(to >= 0 ? { node, to } : { node });
    else if (community !== null && graph.members.has(community)) explorer.choose({ community });
    else if (explorer.selected.nodes.size) explorer.choose({ selected: true });
    else explorer.refresh();
    const hops = whole(parts.get("hops"), 3);
    if (node >= 0 && hops) {
      document.querySelector(`input[name="ego"][value="${hops}"]`).checked = true;
      explorer.setHops(hops);
    }
    if (node >= 0 && !explorer.large) explorer.view.fitMarked();
    explorer.picks?.read(parts);
  },
};

/** A whole number below a limit, or null. */
function whole(text, limit) {
  return /^\d{1,9}$/.test(text ?? "") && Number(text) < limit ? Number(text) : null;
}

function splitName(text) {
  const at = text.indexOf(" ");
  return [Number(text.slice(0, at)), text.slice(at + 1, at + 81)];
}
