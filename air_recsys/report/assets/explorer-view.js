"use strict";

// Each at least 3:1 against both backgrounds.
const PALETTE = [
  "#4878d0", "#df6a1a", "#3b9d65", "#d65f5f", "#9a6fc9", "#1899ab", "#d465ad", "#a48b1c", "#8a6248", "#6f8f2f",
  "#5667b8", "#c2566f", "#3b9997", "#c37c2b", "#7588d7", "#a35d9e", "#549c42", "#c9774f", "#4c8fb0", "#8f7f4a",
];
// `key` and `rank`, because force-graph numbers nodes and links by `index` as it likes.
const SCALE = 60; // canvas units for one unit of the positions
const EDGES_WHILE_MOVING = 3000;
const EDGES_UNDER_POINTER = 20000;
const ROOM_OF_LABEL = 27000; // square pixels

/** The picture: a scene of nodes and links, drawn by force-graph, and what of it is to be seen. */
class View {
  constructor(element, tip, { onPick, onDrawn }) {
    this.element = element;
    this.tip = tip;
    this.onPick = onPick;
    this.scene = { nodes: [], links: [], byKnown: [] };
    this.selected = null;
    this.near = new Set();
    this.marked = [];
    this.hovered = null;
    this.moving = false;
    this.placed = [];
    this.linkText = () => "";
    this.overlay = () => new Set(); // draws marks, and returns the nodes that it has named
    this.canvas = new ForceGraph(element)
      .enablePointerInteraction(false)
      .enableNodeDrag(false)
      .nodeRelSize(1)
      .nodeVal(1)
      .minZoom(0.02)
      .maxZoom(12)
      .cooldownTicks(0)
      .nodeVisibility((node) => node.seen)
      .nodeCanvasObject((node, context, scale) => this.drawNode(node, context, scale))
      .linkVisibility((link) => link.seen && (!this.moving || link.rank < EDGES_WHILE_MOVING || this.touches(link)))
      .linkColor((link) => this.linkColor(link))
      .linkWidth((link) => (this.touches(link) ? 1.6 : 0.7))
      .onZoom(() => this.move())
      .onEngineStop(() => this.settle())
      .onRenderFramePost((context, scale) => {
        this.drawLabels(context, scale);
        onDrawn();
      });
    element.querySelector("canvas").setAttribute("aria-hidden", "true");
    new ResizeObserver(() => this.resize()).observe(element);
    this.resize();
    this.readTheme();
    this.listen();
  }

  listen() {
    this.element.addEventListener("click", (event) => this.onPick(this.nodeAt(event)));
    this.element.addEventListener("pointermove", (event) => this.hover(event));
    this.element.addEventListener("pointerleave", () => this.showTip(null));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth && clientHeight) this.canvas.width(clientWidth).height(clientHeight);
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    this.colors = { page: color("--page"), ink: color("--ink"), faint: color("--faint"), edge: color("--edge"), mark: color("--mark") };
    this.draw();
  }

  /** Show other nodes; where `layout` is true the forces find their places. */
  show(scene, { layout = false } = {}) {
    this.scene = scene;
    this.fitting = true;
    this.canvas.warmupTicks(layout ? 150 : 0).graphData(scene);
  }

  settle() {
    if (this.fitting) this.fit(0);
    this.fitting = false;
  }

  fit(duration = 300) {
    const seen = this.scene.nodes.filter((node) => node.seen);
    if (seen.length < 2) {
      this.canvas.centerAt(seen.length ? seen[0].x : 0, seen.length ? seen[0].y : 0).zoom(1.5);
    } else {
      this.canvas.zoomToFit(duration, 44, (node) => node.seen);
    }
  }

  draw() {
    this.canvas.nodeColor(() => ""); // any accessor that is set asks for a new frame
  }

  move() {
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.moving = false;
      this.draw();
    }, 160);
  }

  zoomBy(factor) {
    this.canvas.zoom(this.canvas.zoom() * factor, 150);
  }

  onKey(event) {
    const step = 60 / this.canvas.zoom();
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in moves) {
      const { x, y } = this.canvas.centerAt();
      this.canvas.centerAt(x + moves[event.key][0], y + moves[event.key][1]);
    } else if (event.key === "+" || event.key === "=") this.zoomBy(1.4);
    else if (event.key === "-") this.zoomBy(1 / 1.4);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** The node under the pointer, or null. */
  nodeAt(event) {
    const box = this.element.getBoundingClientRect();
    const scale = this.canvas.zoom();
    const at = this.canvas.screen2GraphCoords(event.clientX - box.left, event.clientY - box.top);
    let best = null;
    let nearest = Infinity;
    for (const node of this.scene.nodes) {
      const gap = Math.hypot(node.x - at.x, node.y - at.y) - this.radius(node, scale);
      if (node.seen && gap < nearest) [best, nearest] = [node, gap];
    }
    return nearest * scale < 6 ? best : null;
  }

  /** The edge under the pointer, of those of the chosen node, or of all where they are few; or null. */
  linkAt(event) {
    const box = this.element.getBoundingClientRect();
    const at = this.canvas.screen2GraphCoords(event.clientX - box.left, event.clientY - box.top);
    const links = this.scene.links.filter((link) => link.seen && (this.selected === null || this.touches(link)));
    if (links.length > EDGES_UNDER_POINTER) return null;
    let best = null;
    let nearest = 5 / this.canvas.zoom();
    for (const link of links) {
      const gap = distanceTo(at, link.source, link.target);
      if (gap < nearest) [best, nearest] = [link, gap];
    }
    return best;
  }

  hover(event) {
    const node = event.buttons ? null : this.nodeAt(event);
    const over = node || (event.buttons ? null : this.linkAt(event));
    if (over !== this.hovered) this.showTip(over, node ? node.label : over && this.linkText(over));
    if (!over) return;
    const box = this.element.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 14, box.width - this.tip.offsetWidth - 8);
    this.tip.style.left = `${Math.max(8, left)}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  showTip(over, text = "") {
    this.hovered = over;
    this.tip.hidden = !over;
    this.tip.textContent = text || "";
    this.element.classList.toggle("over", Boolean(over && over.label));
  }

  /** Mark a node of the scene, by its key, and its neighbours, strongest first; null marks none. */
  select(key, near) {
    this.selected = key;
    this.near = new Set(near);
    const nodes = new Map(this.scene.nodes.map((node) => [node.key, node]));
    this.marked = [key, ...near].map((each) => nodes.get(each)).filter((node) => node);
    this.draw();
  }

  /** Bring the marked nodes to the middle, not nearer than eyes like. */
  fitMarked() {
    const seen = this.marked.filter((node) => node.seen);
    if (seen.length < 2) this.canvas.centerAt(this.marked[0].x, this.marked[0].y, 300);
    else this.canvas.zoomToFit(300, 90, (node) => node.seen && (node.key === this.selected || this.near.has(node.key)));
  }

  touches(link) {
    return this.selected !== null && (link.source.key === this.selected || link.target.key === this.selected);
  }

  linkColor(link) {
    if (this.touches(link)) return this.colors.mark;
    const alpha = this.selected !== null ? 0.05 : Math.max(0.07, Math.min(0.4, 900 / this.scene.links.length));
    const same = link.source.color === link.target.color ? link.source.color : null;
    return same ? same + Math.round(alpha * 255).toString(16).padStart(2, "0") : `rgba(${this.colors.edge},${alpha})`;
  }

  radius(node, scale) {
    return (node.radius * Math.min(1.7, Math.max(0.8, Math.sqrt(scale)))) / scale;
  }

  faded(node) {
    return this.selected !== null && node.key !== this.selected && !this.near.has(node.key);
  }

  drawNode(node, context, scale) {
    const isSelected = node.key === this.selected;
    const radius = this.radius(node, scale) * (isSelected ? 1.6 : 1);
    context.globalAlpha = this.faded(node) ? 0.22 : 1;
    context.beginPath();
    context.arc(node.x, node.y, radius, 0, 2 * Math.PI);
    context.fillStyle = node.color || this.colors.faint;
    context.fill();
    context.lineWidth = (isSelected ? 2.5 : 0.6) / scale;
    context.strokeStyle = isSelected ? this.colors.ink : this.colors.page;
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Labels of the marked nodes in their order, else of the strongest; those that have room, never over another. */
  drawLabels(context, scale) {
    const ordered = this.selected === null ? this.scene.byKnown : this.marked;
    const room = (this.element.clientWidth * this.element.clientHeight) / ROOM_OF_LABEL;
    this.placed = [];
    context.textAlign = "center";
    context.lineJoin = "round";
    const named = this.overlay(context, scale);
    for (const node of ordered) {
      if (this.placed.length >= room) break;
      if (node.seen && !named.has(node)) this.drawLabel(node, context, scale);
    }
  }

  drawLabel(node, context, scale) {
    const at = this.canvas.graph2ScreenCoords(node.x, node.y);
    const text = node.label.length > 30 ? `${node.label.slice(0, 29)}…` : node.label;
    context.font = `${node.key === this.selected ? 700 : 500} ${12 / scale}px system-ui, "DejaVu Sans", sans-serif`;
    const half = (context.measureText(text).width * scale) / 2 + 3;
    const radius = this.radius(node, scale) * scale * (node.key === this.selected ? 1.6 : 1);
    const box = [at.y + radius + 13, at.y - radius - 5] // below, else above
      .map((y) => ({ text, x: at.x, y, left: at.x - half, right: at.x + half, top: y - 13, bottom: y + 4 }))
      .find((each) => this.hasRoom(each));
    if (!box) return;
    this.placed.push(box);
    const y = node.y + (box.y - at.y) / scale;
    context.lineWidth = 3.5 / scale;
    context.strokeStyle = this.colors.page;
    context.strokeText(text, node.x, y);
    context.fillStyle = this.colors.ink;
    context.fillText(text, node.x, y);
  }

  hasRoom({ left, right, top, bottom }) {
    if (left < 0 || top < 0 || right > this.element.clientWidth || bottom > this.element.clientHeight) return false;
    return !this.placed.some((other) => left < other.right && right > other.left && top < other.bottom && bottom > other.top);
  }

  /** The picture as a PNG, on the colour of the page. */
  toPng(onMade) {
    const drawn = this.element.querySelector("canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height });
    const context = copy.getContext("2d");
    context.fillStyle = this.colors.page;
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(drawn, 0, 0);
    copy.toBlob(onMade, "image/png");
  }
}

/** The distance of a point from a line between two others. */
function distanceTo(point, from, to) {
  const [x, y] = [to.x - from.x, to.y - from.y];
  const along = ((point.x - from.x) * x + (point.y - from.y) * y) / (x * x + y * y || 1);
  const share = Math.max(0, Math.min(1, along));
  return Math.hypot(point.x - from.x - share * x, point.y - from.y - share * y);
}

/** The colour of a community; small ones share the grey of the theme, which is "". */
function communityColor(community) {
  return community >= 0 && community < PALETTE.length ? PALETTE[community] : "";
}

/** All nodes of a graph, or some of them without places, and the edges between them. */
function nodeScene(graph, only = null) {
  const { of: color } = graph.looks.colors(graph.looks.color || "");
  const size = graph.looks.sizes(graph.looks.size || "");
  const make = (key) => ({
    key,
    label: graph.labels[key],
    community: graph.communities[key],
    color: color(key),
    radius: 2.4 + 3.2 * size(key),
    seen: true,
    ...(only ? {} : { x: graph.positions[key][0] * SCALE, y: graph.positions[key][1] * SCALE }),
  });
  const nodes = graph.byStrength.filter((node) => !only || only.has(node)).map(make);
  const counts = graph.attributes["number of ratings"];
  const byKnown = counts ? [...nodes].sort((a, b) => counts[b.key] - counts[a.key]) : nodes;
  return { nodes, byKnown, links: linksBetween(nodes, graph.step) };
}

/** The graph of communities. */
function communityScene(graph) {
  const { sizes, positions } = graph.overview;
  const largest = Math.max(...sizes);
  const nodes = sizes.map((size, community) => ({
    key: community,
    label: `${graph.communityName(community)} · ${size.toLocaleString("en")}`,
    community,
    color: communityColor(community),
    radius: 4 + 22 * Math.sqrt(size / largest),
    seen: true,
    x: positions[community][0] * SCALE,
    y: positions[community][1] * SCALE,
  }));
  return { nodes, byKnown: nodes, links: linksBetween(nodes, graph.overview) };
}

function linksBetween(nodes, { sources, targets, weights }) {
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const links = [];
  for (let rank = 0; rank < sources.length; rank++) {
    const [source, target] = [byKey.get(sources[rank]), byKey.get(targets[rank])];
    if (source && target) links.push({ rank, source, target, weight: weights[rank], seen: true });
  }
  return links;
}
