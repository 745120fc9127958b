"use strict";

const MOST_IN_LINK = 200; // nodes
const MOST_LISTED = 200;

/** The nodes that a loop or the keyboard has selected, of each graph its own. */
class Selected {
  constructor(explorer) {
    this.explorer = explorer;
    this.lasso = new Lasso(byId("canvas"), {
      onLoop: (isInside) => this.take(isInside),
      onClick: (event) => this.click(event),
    });
    byId("show-selected").addEventListener("click", () => explorer.choose({ selected: true }));
    byId("clear-selected").addEventListener("click", () => this.clear());
    byId("select-node").addEventListener("click", () => this.toggle(explorer.chosen.node));
  }

  get nodes() {
    return (this.explorer.graph.selected ??= new Set());
  }

  /** Select the seen nodes of which the place on the screen is inside a loop; of communities their members. */
  take(isInside) {
    const { view, graph, overview } = this.explorer;
    const places = view.drawnNodes().filter((node) => isInside(view.canvas.graph2ScreenCoords(node.x, node.y)));
    const members = ({ key, isOpen }) => (isOpen ? [] : (graph.members.get(key) || []).filter((node) => this.explorer.passes(node)));
    const found = places.flatMap((node) => (overview && !node.isMember ? members(node) : [node.key]));
    if (found.length) this.set(found);
    else byId("status").textContent = `No ${graph.kind} inside`;
  }

  set(nodes) {
    this.explorer.graph.selected = new Set(nodes);
    this.explorer.choose({ selected: true });
  }

  click(event) {
    const node = this.explorer.view.nodeAt(event);
    if (node && (node.isMember || !this.explorer.overview)) this.toggle(node.key);
  }

  /** Add a node, or take it out. */
  toggle(node) {
    const { explorer, nodes } = this;
    if (!nodes.delete(node)) nodes.add(node);
    if (explorer.chosen?.selected && nodes.size) explorer.choose({ selected: true }, false);
    else if (explorer.chosen?.selected) explorer.clear();
    else explorer.refresh();
    byId("status").textContent = `${explorer.graph.labels[node]} ${nodes.has(node) ? "added" : "removed"}. ${this.count()}`;
  }

  clear() {
    const { explorer } = this;
    this.nodes.clear();
    if (explorer.chosen?.selected) explorer.clear();
    else explorer.refresh();
    byId("canvas").focus({ preventScroll: true });
    byId("status").textContent = "Nothing selected";
  }

  count() {
    return `${number(this.nodes.size)} selected`;
  }

  /** Say how many there are, and what the button of a chosen node does. */
  tell() {
    const { node } = this.explorer.chosen || {};
    byId("selected").hidden = !this.nodes.size;
    byId("show-selected").textContent = this.count();
    byId("select-node").hidden = node === undefined;
    byId("select-node").textContent = this.nodes.has(node) ? "Remove from selection" : "Add to selection";
  }

  /** The panel: what sets the selected nodes apart, their communities, and a list of them. */
  describe() {
    const { graph } = this.explorer;
    const nodes = graph.byStrength.filter((node) => this.nodes.has(node));
    const apart = standingOut(traitsOf(graph), nodes);
    byId("name").textContent = "Selection";
    const told = [`${number(nodes.length)} ${graph.kind}${nodes.length === 1 ? "" : "s"}`, ...mediansOf(graph, nodes)];
    if (!apart.length) told.push("no attribute sets them apart");
    if (nodes.length > MOST_IN_LINK) told.push(`more than the ${MOST_IN_LINK} that the link takes along`);
    byId("about").textContent = told.join(" · ");
    byId("rename").hidden = true;
    byId("attributes").replaceChildren(...apart.flatMap(traitRow), ...communityRows(graph, nodes));
    const shown = nodes.slice(0, MOST_LISTED).map((node) => ({ node, weight: graph.strength[node] }));
    fillList(graph, "Selected, and their summed weights", shown, (node) => this.explorer.choose({ node }));
  }

  /** Rings round the selected nodes, unless all others are faded. */
  draw(context, scale) {
    const { view, overview, chosen } = this.explorer;
    if (!this.nodes.size || (chosen?.selected && !overview)) return;
    context.beginPath();
    for (const node of view.drawnNodes()) {
      if ((overview && !node.isMember) || !this.nodes.has(node.key)) continue;
      const radius = view.radius(node, scale) + 2 / scale;
      context.moveTo(node.x + radius, node.y);
      context.arc(node.x, node.y, radius, 0, 2 * Math.PI);
    }
    context.lineWidth = 1.6 / scale;
    context.strokeStyle = view.colors.ink;
    context.stroke();
  }

  write(parts) {
    if (this.nodes.size <= MOST_IN_LINK) for (const node of this.nodes) parts.append("in", this.explorer.graph.ids[node]);
  }

  read(parts, graph) {
    const rows = new Map(graph.ids.map((id, node) => [id, node]));
    const known = parts.getAll("in").slice(0, MOST_IN_LINK).filter((id) => rows.has(id));
    graph.selected = new Set(known.map((id) => rows.get(id)));
  }
}

function traitRow({ name, text, share, shareOfAll, pValue }) {
  const percent = (value) => `${Math.round(100 * value)} %`;
  const told = `${percent(share)} of them, ${percent(shareOfAll)} of all, `;
  const chance = element("span", { className: "whole", text: chanceText(pValue) });
  return [element("dt", { text, title: name }), element("dd", {}, [told, chance])];
}

/** How many of the nodes the commonest communities have. */
function communityRows(graph, nodes, most = 3) {
  const counts = new Map();
  for (const node of nodes) counts.set(graph.communities[node], (counts.get(graph.communities[node]) || 0) + 1);
  const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, most);
  const told = ([community, count]) => `${graph.communityName(community)}: ${number(count)}`;
  const others = counts.size > most ? [`${number(counts.size - most)} more`] : [];
  return [element("dt", { text: "communities" }), element("dd", { text: [...common.map(told), ...others].join(" · ") })];
}
