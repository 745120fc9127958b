"use strict";

const MARGIN = 0.2; // of the view on each side, drawn ahead of the hand that drags
const MILLISECONDS = { moving: 6, resting: 24 }; // of a frame, for drawing that is not done yet
const FADED = 0.3;
const LARGEST_SPRITE = 24; // pixels of radius

/**
 * Draws edges and nodes into a picture that lies ready, and moves that picture while the hand moves: a frame costs the
 * same whatever the number of edges. The next picture grows a few milliseconds a frame, and takes over when it is done.
 */
class Painter {
  constructor(view) {
    this.view = view;
    this.content = null;
    this.ready = null; // {canvas, place, margin, content}
    this.job = null;
    this.isNew = true;
    this.sprites = new Map();
  }

  /** Look at the scene again: other nodes or edges may be seen. */
  changed() {
    this.stale = true;
  }

  /** Another scene: it is shown at once, and the picture of before only until its places are known. */
  reset() {
    this.isNew = true;
    this.job = null;
    this.changed();
  }

  get isDone() {
    return Boolean(this.ready) && !this.isNew && !this.stale && !this.job && this.ready.content === this.content;
  }

  /** Draw a frame of the picture of before. */
  hold(context) {
    if (this.ready) this.show(context, placeOf(context));
  }

  get nEdges() {
    return this.content ? this.content.paints.length : 0;
  }

  /** Draw a frame of the picture, and go on with the next one. */
  paint(context) {
    const place = placeOf(context);
    if (!place.width || !place.height) return;
    if (this.stale) this.look();
    if (!this.job && this.wants(place)) this.job = this.begin(place);
    if (this.job) this.proceed(this.isNew ? Infinity : MILLISECONDS[this.view.moving ? "moving" : "resting"]);
    if (this.job || (!this.view.moving && this.wants(place))) this.view.ask();
    this.show(context, place);
  }

  /** Take the scene as arrays; where they are as before, the picture still holds. A picture that grows is finished. */
  look() {
    const content = contentOf(this.view);
    this.stale = false;
    if (!this.content || !same(content, this.content)) this.content = content;
  }

  wants(place) {
    const { ready } = this;
    if (this.isNew || ready.content !== this.content) return true;
    const zoom = place.scale / ready.place.scale;
    if (this.view.moving) return zoom > 1.5 || zoom < 0.75 || !covers(ready.place, place);
    return !["scale", "x", "y", "width", "height"].every((each) => ready.place[each] === place[each]);
  }

  begin(place) {
    const margin = { x: Math.round(MARGIN * place.width), y: Math.round(MARGIN * place.height) };
    const [width, height] = [place.width + 2 * margin.x, place.height + 2 * margin.y];
    if (this.lines?.width !== width || this.lines?.height !== height) {
      this.lines = new LinePicture(width, height);
      this.spare = [0, 1].map(() => Object.assign(document.createElement("canvas"), { width, height }));
    }
    this.lines.clear(colorPair(this.content.page));
    return { place, margin, content: this.content, edge: 0, node: 0, at: { ...place, x: place.x + margin.x, y: place.y + margin.y } };
  }

  /** Draw on for some milliseconds. */
  proceed(milliseconds) {
    const { job } = this;
    const until = performance.now() + milliseconds;
    const isLate = () => performance.now() > until;
    while (job.edge < job.content.paints.length) {
      this.drawEdges(job, job.edge + 500);
      if (isLate()) return;
    }
    job.canvas ??= this.newCanvas();
    while (job.node < job.content.nodes.length) {
      this.drawNodes(job, job.node + 300);
      if (isLate() && job.node < job.content.nodes.length) return;
    }
    this.ready = job;
    this.job = null;
    this.isNew = false;
  }

  newCanvas() {
    const canvas = this.spare.find((each) => each !== this.ready?.canvas);
    canvas.getContext("2d").putImageData(this.lines.image, 0, 0);
    return canvas;
  }

  drawEdges(job, end) {
    const { content, at } = job;
    const { ends, paints, pairs, opacity } = content;
    for (const last = Math.min(end, paints.length); job.edge < last; job.edge++) {
      const from = 4 * job.edge;
      const [x0, y0] = [ends[from] * at.scale + at.x, ends[from + 1] * at.scale + at.y];
      const [x1, y1] = [ends[from + 2] * at.scale + at.x, ends[from + 3] * at.scale + at.y];
      this.lines.line(x0, y0, x1, y1, pairs[paints[job.edge]], opacity);
    }
  }

  drawNodes(job, end) {
    const { content, at } = job;
    const context = job.canvas.getContext("2d");
    for (const last = Math.min(end, content.nodes.length); job.node < last; job.node++) {
      const node = content.nodes[job.node];
      const [x, y] = [node.x * at.scale + at.x, node.y * at.scale + at.y];
      const radius = this.view.radius(node, at.scale / at.ratio) * at.scale;
      const isOutside = x < -radius || y < -radius || x > job.canvas.width + radius || y > job.canvas.height + radius;
      if (!isOutside) this.drawNode(context, x, y, radius, node, at.ratio);
    }
  }

  drawNode(context, x, y, radius, node, ratio) {
    const color = node.color || this.view.colors.faint;
    if (node.reach) return drawCommunity(context, x, y, radius, color, node.isOpen);
    if (radius > LARGEST_SPRITE) return drawDot(context, x, y, radius, color, this.view.colors.page, ratio);
    const size = Math.max(1, Math.round(4 * radius)); // quarters of a pixel
    const key = `${color} ${size} ${this.view.colors.page}`;
    if (!this.sprites.has(key)) this.sprites.set(key, spriteOf(size / 4, color, this.view.colors.page, ratio));
    const sprite = this.sprites.get(key);
    context.drawImage(sprite, x - sprite.width / 2, y - sprite.height / 2);
  }

  show(context, place) {
    const { canvas, place: from, margin } = this.ready;
    const zoom = place.scale / from.scale;
    const left = place.x - (from.x + margin.x) * zoom;
    const top = place.y - (from.y + margin.y) * zoom;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = this.view.fades ? FADED : 1;
    if (zoom === 1) context.drawImage(canvas, Math.round(left), Math.round(top));
    else context.drawImage(canvas, left, top, canvas.width * zoom, canvas.height * zoom);
    context.restore();
  }
}

/** Where the canvas stands over the scene: pixels for one unit, and the pixel of the scene's zero. */
function placeOf(context) {
  const { a: scale, e: x, f: y } = context.getTransform();
  const { width, height } = context.canvas;
  return { scale, x, y, width, height, ratio: width / (context.canvas.clientWidth || width) };
}

/** Whether a picture with its margins reaches over all of the view at a place. */
function covers(from, place) {
  const zoom = place.scale / from.scale;
  const inside = (shift, size) => shift <= MARGIN * size * zoom && shift + size * zoom * (1 + MARGIN) >= size;
  return inside(place.x - from.x * zoom, place.width) && inside(place.y - from.y * zoom, place.height);
}

/** What is seen of the scene: the ends of edges and their colours, and nodes, those that matter most last. */
function contentOf(view) {
  const { colors } = view;
  const links = view.drawnLinks();
  const nodes = view.drawnNodes();
  const ends = new Float64Array(4 * links.length);
  const paints = new Uint16Array(links.length);
  const numbers = new Map();
  links.forEach(({ source, target }, index) => {
    const at = 4 * (links.length - 1 - index); // the strongest over the others
    endsOf(source, target, ends, at);
    const color = (source.color === target.color && source.color) || colors.edge;
    if (!numbers.has(color)) numbers.set(color, numbers.size);
    paints[links.length - 1 - index] = numbers.get(color);
  });
  const looks = nodes.map((node) => `${node.x} ${node.y} ${node.radius} ${node.color} ${node.isOpen}`);
  const pairs = [...numbers.keys()].map(colorPair);
  const opacity = Math.round(256 * 0.8 * view.opacity(links.length));
  return { ends, paints, pairs, names: [...numbers.keys()].join(), nodes: nodes.reverse(), looks, opacity, page: colors.page };
}

/** Where an edge begins and ends, as four numbers: at the middle of nodes, at the rim of discs. */
function endsOf(source, target, ends = [], at = 0) {
  const [x, y] = [target.x - source.x, target.y - source.y];
  const length = source.reach || target.reach ? Math.hypot(x, y) || 1 : 1;
  const [leave, arrive] = [(source.reach || 0) / length, (target.reach || 0) / length];
  ends[at] = source.x + leave * x;
  ends[at + 1] = source.y + leave * y;
  ends[at + 2] = target.x - arrive * x;
  ends[at + 3] = target.y - arrive * y;
  return ends;
}

function same(one, other) {
  if (one.page !== other.page || one.opacity !== other.opacity || one.names !== other.names) return false;
  return ["ends", "paints", "looks"].every((name) => {
    const [a, b] = [one[name], other[name]];
    return a.length === b.length && a.every((each, index) => each === b[index]);
  });
}

function drawDot(context, x, y, radius, color, rim, ratio) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = color;
  context.fill();
  context.lineWidth = 0.6 * ratio;
  context.strokeStyle = rim;
  context.stroke();
}

/** A dot as a small picture, which is copied faster than it is drawn. */
function spriteOf(radius, color, rim, ratio) {
  const size = 2 * Math.ceil(radius + ratio);
  const canvas = Object.assign(document.createElement("canvas"), { width: size, height: size });
  drawDot(canvas.getContext("2d"), size / 2, size / 2, radius, color, rim, ratio);
  return canvas;
}

/** A community as a disc; one whose members are drawn as a ring. */
function drawCommunity(context, x, y, radius, color, isOpen) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = color;
  context.globalAlpha = isOpen ? 0.1 : 0.85;
  context.fill();
  context.globalAlpha = isOpen ? 0.6 : 1;
  context.lineWidth = 1;
  context.strokeStyle = color;
  context.stroke();
  context.globalAlpha = 1;
}
