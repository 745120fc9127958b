"use strict";

const OPEN_FROM = { pixels: 110, share: 0.25 }; // a community of a large graph with this radius shows its members
const MOST_MEMBERS = 5000; // the strongest
const NODES_PER_LABEL = 25; // where more are in view, communities have labels in place of nodes

/**
 * How much of a graph is shown at this zoom: far away the names of communities, near by those of nodes. In the picture
 * of communities, which stands for large graphs, members appear within those that are near.
 */
class Detail {
  constructor(view) {
    this.view = view;
    this.communities = [];
    this.opened = new Map();
  }

  /** Another graph, or another picture of it. */
  show(graph, isOverview) {
    this.graph = graph;
    this.isOverview = isOverview;
    this.opened = new Map();
    this.communities = isOverview || graph.positions === null ? [] : centresOf(graph, this.view.scene.nodes);
  }

  /** Open the communities that are near and in view, and close others; true where that changed anything. */
  update() {
    if (!this.isOverview || this.view.fitting) return false;
    const zoom = this.view.canvas.zoom();
    const isNear = (node) => node.seen && node.reach * zoom > this.openFrom() && this.isInView(node, node.reach);
    const near = this.view.scene.nodes.filter(isNear);
    const isSame = near.length === this.opened.size && near.every((node) => this.opened.has(node.key));
    if (isSame) return false;
    for (const node of this.view.scene.nodes) node.isOpen = near.includes(node);
    this.opened = new Map(near.map((node) => [node.key, this.opened.get(node.key) || membersScene(this.graph, node)]));
    return true;
  }

  /** The radius in pixels from which on a community is open. */
  openFrom() {
    const { clientWidth, clientHeight } = this.view.element;
    return Math.max(OPEN_FROM.pixels, OPEN_FROM.share * Math.min(clientWidth, clientHeight));
  }

  get nodes() {
    return [...this.opened.values()].flatMap(({ nodes }) => nodes).filter((node) => this.view.passes(node.key));
  }

  get links() {
    const { passes } = this.view;
    return [...this.opened.values()].flatMap(({ links }) => links).filter(({ source, target }) => passes(source.key) && passes(target.key));
  }

  isInView({ x, y }, margin = 0) {
    const { clientWidth, clientHeight } = this.view.element;
    const at = this.view.canvas.graph2ScreenCoords(x, y);
    const room = margin * this.view.canvas.zoom();
    return at.x > -room && at.y > -room && at.x < clientWidth + room && at.y < clientHeight + room;
  }

  /** What has a label, in the order of importance. */
  labelled() {
    const { view } = this;
    if (view.fades) return view.marked;
    if (this.isOverview) return [...view.scene.nodes, ...this.nodes];
    return this.isFar() ? this.communities.filter(({ members }) => members.some((node) => node.seen)) : view.scene.byKnown;
  }

  isFar() {
    if (this.communities.length < 2) return false;
    const most = NODES_PER_LABEL * this.view.roomForLabels();
    const { x: left, y: top } = this.view.canvas.screen2GraphCoords(0, 0);
    const { x: right, y: bottom } = this.view.canvas.screen2GraphCoords(this.view.element.clientWidth, this.view.element.clientHeight);
    let count = 0;
    for (const { seen, x, y } of this.view.scene.nodes) count += seen && x > left && x < right && y > top && y < bottom;
    return count > most;
  }
}

/** Communities with the mean of the places of their members, largest first. */
function centresOf(graph, nodes) {
  const groups = new Map();
  for (const node of nodes) {
    if (node.community < 0) continue;
    if (!groups.has(node.community)) groups.set(node.community, []);
    groups.get(node.community).push(node);
  }
  const mean = (members, axis) => members.reduce((sum, node) => sum + node[axis], 0) / members.length;
  const made = [...groups].map(([community, members]) => ({
    get label() {
      return graph.communityName(community);
    },
    community,
    members,
    isCommunity: true,
    seen: true,
    x: mean(members, "x"),
    y: mean(members, "y"),
  }));
  return made.sort((a, b) => b.members.length - a.members.length || a.community - b.community);
}

/** The members of a community within its disc, and the edges among them. */
function membersScene(graph, disc) {
  const members = (graph.members.get(disc.key) || []).slice(0, MOST_MEMBERS); // at an earlier step it may have none
  const { x, y } = graph.placesIn(disc.key, members);
  const paint = nodePaint(graph);
  const nodes = members.map((key, index) => ({
    ...paint(key),
    isMember: true,
    x: disc.x + disc.reach * x[index],
    y: disc.y + disc.reach * y[index],
  }));
  return { nodes, links: linksAmong(graph, nodes) };
}
