"use strict";

const MOST_ZOOM = 12;
const EDGES_UNDER_POINTER = 20000;
const ROOM_OF_LABEL = 27000; // square pixels

/** The picture: a scene of nodes and links, and what of it is to be seen; force-graph moves it and places few nodes. */
class View {
  constructor(element, tip, { onPick, onDrawn }) {
    this.element = element;
    this.tip = tip;
    this.onPick = onPick;
    this.scene = { nodes: [], links: [], byKnown: [] };
    this.selected = null;
    this.near = new Set();
    this.marked = [];
    this.markedLinks = [];
    this.hovered = null;
    this.moving = false;
    this.fitting = true; // until there is a scene with places
    this.placed = [];
    this.onPath = null; // ranks of the links of a path, which are marked in place of those of the selected node
    this.drawMarks = () => {}; // over the nodes and under their labels
    this.passes = () => true; // whether a member of an open community is shown
    this.painter = new Painter(this);
    this.detail = new Detail(this);
    this.linkText = () => "";
    this.overlay = () => new Set(); // draws marks, and returns the nodes that it has named
    this.canvas = new ForceGraph(element)
      .enablePointerInteraction(false)
      .enableNodeDrag(false)
      .nodeRelSize(1)
      .nodeVal(1)
      .minZoom(1e-4)
      .maxZoom(MOST_ZOOM)
      .cooldownTicks(0)
      .nodeCanvasObject(() => {})
      .linkVisibility(false)
      .onZoom(() => this.move())
      .onEngineStop(() => this.settle())
      .onRenderFramePre((context, scale) => {
        if (this.fitting) return this.painter.hold(context); // places are still to come
        this.painter.paint(context);
        this.drawMarked(context, scale);
        this.drawMarks(context, scale);
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
  show(scene, { layout = false, camera = null } = {}) {
    this.scene = scene;
    this.fitting = true;
    this.camera = camera;
    this.painter.reset();
    const nearest = Math.min(...scene.nodes.map(({ reach }) => reach || Infinity)); // every community can be opened
    this.canvas.maxZoom(Math.max(MOST_ZOOM, (6 * OPEN_FROM.pixels) / nearest));
    this.canvas.warmupTicks(layout ? 150 : 0).graphData({ nodes: scene.nodes, links: layout ? scene.links : [] });
  }

  settle() {
    if (!this.fitting) return;
    this.fitting = false;
    if (this.camera) this.canvas.centerAt(this.camera.x, this.camera.y).zoom(this.camera.zoom);
    else this.fit(0);
    this.draw();
  }

  fit(duration = 300) {
    const seen = this.scene.nodes.filter((node) => node.seen);
    if (seen.length < 2) {
      this.canvas.centerAt(seen.length ? seen[0].x : 0, seen.length ? seen[0].y : 0).zoom(1.5);
    } else {
      this.canvas.zoomToFit(duration, 44, (node) => node.seen);
    }
  }

  /** Draw what is seen now. */
  draw() {
    this.detail.update();
    this.markedLinks = this.scene.links.filter((link) => link.seen && this.touches(link));
    this.painter.changed();
    this.ask();
  }

  /** Ask for a frame. */
  ask() {
    this.canvas.nodeColor(() => ""); // any accessor that is set does
  }

  move() {
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.moving = false;
      if (this.detail.update()) this.painter.changed();
      this.ask();
    }, 160);
  }

  /** Come so near to a community of the picture of communities that its members are drawn. */
  approach(community, duration = 400) {
    const disc = this.scene.nodes.find((node) => node.key === community);
    if (!disc || disc.isOpen) return;
    const { clientWidth, clientHeight } = this.element;
    const zoom = Math.max(0.4 * Math.min(clientWidth, clientHeight), 1.2 * this.detail.openFrom()) / disc.reach;
    if (this.fitting) this.camera = { x: disc.x, y: disc.y, zoom };
    else this.canvas.centerAt(disc.x, disc.y, duration).zoom(zoom, duration);
  }

  /** Where the picture stands, for `show`. */
  place() {
    return { ...this.canvas.centerAt(), zoom: this.canvas.zoom() };
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
    const at = this.canvas.screen2GraphCoords(event.clientX - box.left, event.clientY - box.top);
    return this.nearest(this.detail.nodes, at, 3) || this.nearest(this.scene.nodes, at, 6);
  }

  /** The node that is nearest to a place, at most some pixels away from it, or null. */
  nearest(nodes, at, pixels) {
    const scale = this.canvas.zoom();
    let best = null;
    let nearest = pixels / scale;
    for (const node of nodes) {
      const gap = Math.hypot(node.x - at.x, node.y - at.y) - this.radius(node, scale);
      if (node.seen && gap < nearest) [best, nearest] = [node, gap];
    }
    return best;
  }

  /** The edge under the pointer, of those of the chosen node, or of all where they are few; or null. */
  linkAt(event) {
    const box = this.element.getBoundingClientRect();
    const at = this.canvas.screen2GraphCoords(event.clientX - box.left, event.clientY - box.top);
    if (this.selected === null && this.painter.nEdges > EDGES_UNDER_POINTER) return null;
    const links = this.selected === null ? this.scene.links.filter((link) => link.seen) : this.markedLinks;
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
    if (this.onPath) return this.onPath.has(link.rank);
    return this.selected !== null && (link.source.key === this.selected || link.target.key === this.selected);
  }

  opacity(nLinks) {
    return Math.max(0.07, Math.min(0.4, 900 / nLinks));
  }

  /** What the painter draws, the strongest first. */
  drawnLinks() {
    return [...this.scene.links, ...this.detail.links].filter((link) => link.seen);
  }

  drawnNodes() {
    return [...this.detail.nodes, ...this.scene.nodes].filter((node) => node.seen);
  }

  /** Whether all but what is marked is faint. */
  get fades() {
    return this.selected !== null && !this.detail.isOverview;
  }

  radius(node, scale) {
    return node.reach || (node.radius * Math.min(1.7, Math.max(0.8, Math.sqrt(scale)))) / scale;
  }

  faded(node) {
    return this.fades && node.key !== this.selected && !this.near.has(node.key);
  }

  /** The edges of the chosen node, and it and its neighbours over them. */
  drawMarked(context, scale) {
    context.beginPath();
    for (const { source, target } of this.markedLinks) {
      const [x0, y0, x1, y1] = endsOf(source, target);
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
    }
    context.lineWidth = (this.onPath ? 2.5 : 1.6) / scale;
    context.strokeStyle = this.colors.mark;
    context.stroke();
    for (const node of [...this.marked].reverse()) if (node.seen) this.drawNode(node, context, scale);
  }

  drawNode(node, context, scale) {
    const isSelected = node.key === this.selected;
    context.beginPath();
    context.arc(node.x, node.y, this.radius(node, scale) * (isSelected && !node.reach ? 1.6 : 1), 0, 2 * Math.PI);
    context.fillStyle = node.color || this.colors.faint;
    if (!node.reach) context.fill();
    context.lineWidth = (isSelected ? 2.5 : 0.6) / scale;
    context.strokeStyle = isSelected ? this.colors.ink : this.colors.page;
    context.stroke();
  }

  roomForLabels() {
    return (this.element.clientWidth * this.element.clientHeight) / ROOM_OF_LABEL;
  }

  /** Labels of the marked nodes in their order, else of what matters most; those that have room, never over another. */
  drawLabels(context, scale) {
    this.placed = [];
    const named = this.overlay(context, scale);
    for (const node of this.detail.labelled()) {
      if (this.placed.length >= this.roomForLabels()) break;
      if (node.seen && !named.has(node) && this.detail.isInView(node)) this.drawLabel(node, context, scale);
    }
  }

  drawLabel(node, context, scale) {
    const at = this.canvas.graph2ScreenCoords(node.x, node.y);
    const text = node.label.length > 30 ? `${node.label.slice(0, 29)}…` : node.label;
    const isStrong = node.isCommunity || node.key === this.selected;
    const ratio = context.canvas.width / this.element.clientWidth;
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, 0); // fonts of one size, which the browser keeps
    context.font = `${isStrong ? 700 : 500} ${node.isCommunity ? 13 : 12}px system-ui, "DejaVu Sans", sans-serif`;
    const half = context.measureText(text).width / 2 + 3;
    const box = this.heightsOfLabel(node, at, scale)
      .map((y) => ({ text, x: at.x, y, left: at.x - half, right: at.x + half, top: y - 13, bottom: y + 4 }))
      .find((each) => this.hasRoom(each));
    if (box) this.drawText(box, context);
    context.restore();
  }

  drawText(box, context) {
    this.placed.push(box);
    Object.assign(context, { textAlign: "center", lineJoin: "round", lineWidth: 3.5 });
    context.strokeStyle = this.colors.page;
    context.strokeText(box.text, box.x, box.y);
    context.fillStyle = this.colors.ink;
    context.fillText(box.text, box.x, box.y);
  }

  /** Where the base line of a label may be: nodes have it below, else above; communities within, open ones above. */
  heightsOfLabel(node, at, scale) {
    if (node.isCommunity && !node.isOpen) return [at.y + 5];
    const radius = this.radius(node, scale) * scale * (node.key === this.selected && !node.reach ? 1.6 : 1);
    const [below, above] = [at.y + radius + 13, at.y - radius - 5];
    return node.isOpen ? [above, Math.max(above, 18), below] : [below, above];
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
