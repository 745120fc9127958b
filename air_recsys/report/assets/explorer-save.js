"use strict";

/** Offer a file that was made here. */
function save(name, type, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Rows as CSV; a text that a spreadsheet would take for a formula gets an apostrophe. */
function csvText(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A table of some nodes: id, label, community with its name, and all attributes. */
function nodeTable(graph, nodes) {
  const names = Object.keys(graph.attributes);
  const row = (node) => [
    graph.ids[node],
    graph.labels[node],
    graph.communities[node],
    graph.communityName(graph.communities[node]),
    ...names.map((name) => graph.attributes[name][node]),
  ];
  return [["id", "label", "community", "community name", ...names], ...nodes.map(row)];
}

/** What the buttons for tables and files do. */
function listenToSaving(explorer) {
  const table = () => nodeTable(explorer.graph, listed(explorer));
  const name = (ending) => `${explorer.graph.name}.${ending}`;
  byId("show-table").addEventListener("click", () => showTable(table()));
  byId("close-table").addEventListener("click", () => byId("table").close());
  byId("save-csv").addEventListener("click", () => save(name("csv"), "text/csv", csvText(table())));
  byId("save-svg").addEventListener("click", () => save(name("svg"), "image/svg+xml", svgOf(explorer.view)));
  byId("save-png").addEventListener("click", () => {
    explorer.view.toPng((picture) => save(name("png"), "image/png", picture));
  });
}

/**
 * The nodes for a table: the chosen path, the chosen node and its neighbours, those of the chosen community, those that
 * are selected, else all that are seen; beside the path and the chosen node only those that pass the filters.
 */
function listed(explorer) {
  const { graph, chosen, filters, path, selected } = explorer;
  const passing = (nodes) => nodes.filter((node) => filters.passes(node));
  if (path.steps.length) return path.nodes;
  if (chosen?.node !== undefined) return [chosen.node, ...passing(explorer.near())];
  if (chosen?.community !== undefined) return passing(graph.members.get(chosen.community));
  if (selected.nodes.size) return passing([...selected.nodes]);
  if (explorer.overview) return graph.byStrength.filter((node) => explorer.passes(node));
  return explorer.view.scene.byKnown.filter((node) => node.seen).map((node) => node.key);
}

/** The picture as it is seen, as SVG. Texts are text nodes, which XML escapes. */
function svgOf(view) {
  const { clientWidth: width, clientHeight: height } = view.element;
  const space = "http://www.w3.org/2000/svg";
  const make = (tag, values, text = null) => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(values)) made.setAttribute(name, value);
    if (text !== null) made.textContent = text;
    return made;
  };
  const at = ({ x, y }) => view.canvas.graph2ScreenCoords(x, y);
  const round = (value) => value.toFixed(1);
  const root = make("svg", { xmlns: space, viewBox: `0 0 ${width} ${height}`, width, height });
  root.append(make("rect", { width, height, fill: view.colors.page }));
  for (const link of view.drawnLinks()) {
    const [from, to] = [at(link.source), at(link.target)];
    const color = view.touches(link) ? view.colors.mark : `rgb(${view.colors.edge})`;
    const ends = { x1: round(from.x), y1: round(from.y), x2: round(to.x), y2: round(to.y) };
    root.append(make("line", { ...ends, stroke: color, "stroke-opacity": view.touches(link) ? 0.7 : 0.15 }));
  }
  const scale = view.canvas.zoom();
  for (const node of view.drawnNodes().reverse()) {
    const { x, y } = at(node);
    const fill = node.color || view.colors.faint;
    const opacity = node.isOpen ? 0.1 : view.faded(node) ? 0.25 : 1;
    root.append(make("circle", { cx: round(x), cy: round(y), r: round(view.radius(node, scale) * scale), fill, opacity }));
  }
  const font = { "font-family": "system-ui, sans-serif", "font-size": 12, "text-anchor": "middle", fill: view.colors.ink };
  for (const { text, x, y } of view.placed) root.append(make("text", { ...font, x: round(x), y: round(y) }, text));
  return new XMLSerializer().serializeToString(root);
}
