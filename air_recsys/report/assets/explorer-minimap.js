"use strict";

const MAP_MARGIN = 6; // pixels

/** A small picture of all that is seen, with the part that the large one shows; only while that is a part. */
class Minimap {
  constructor(view) {
    this.view = view;
    this.element = byId("minimap");
    this.dots = document.createElement("canvas");
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      this.moveTo(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && this.moveTo(event));
    addEventListener("resize", () => this.change());
  }

  /** Other nodes are seen, or in other colours. */
  change() {
    this.box = null;
  }

  /** Draw the map as it is at this frame. */
  draw() {
    if (!this.box) this.look();
    const shown = this.box.scale && this.shown();
    this.element.hidden = !shown || this.covers(shown);
    if (this.element.hidden) return;
    const { width, height, x, y, left, top, scale } = this.box;
    const context = sized(this.element, width, height);
    context.drawImage(this.dots, 0, 0, width, height);
    context.lineWidth = 1.5;
    context.strokeStyle = this.view.colors.ink;
    const [wide, high] = [shown.right - shown.left, shown.bottom - shown.top];
    context.strokeRect((shown.left - left) * scale + x, (shown.top - top) * scale + y, wide * scale, high * scale);
  }

  /** Find where the nodes lie that are seen; a scale of 0 is that of no map: on a phone, or where no two have places. */
  look() {
    const nodes = this.view.scene.nodes.filter((node) => node.seen && Number.isFinite(node.x));
    this.element.hidden = false;
    const { clientWidth: width, clientHeight: height } = this.element;
    this.box = { ...boxOf(nodes), width, height, scale: 0 };
    if (!width || nodes.length < 2) return;
    const [wide, high] = [this.box.right - this.box.left || 1, this.box.bottom - this.box.top || 1];
    this.box.scale = Math.min((width - 2 * MAP_MARGIN) / wide, (height - 2 * MAP_MARGIN) / high);
    this.box.x = (width - wide * this.box.scale) / 2;
    this.box.y = (height - high * this.box.scale) / 2;
    this.drawDots(nodes);
  }

  drawDots(nodes) {
    const { width, height, x, y, left, top, scale } = this.box;
    const context = sized(this.dots, width, height);
    for (const node of nodes) {
      context.fillStyle = node.color || this.view.colors.faint;
      const radius = Math.max(1, (node.reach || 0) * scale);
      context.beginPath();
      context.arc((node.x - left) * scale + x, (node.y - top) * scale + y, radius, 0, 2 * Math.PI);
      context.fill();
    }
  }

  /** The part of the scene that the large picture shows. */
  shown() {
    const { clientWidth, clientHeight } = this.view.element;
    const [from, to] = [[0, 0], [clientWidth, clientHeight]].map((corner) => this.view.canvas.screen2GraphCoords(...corner));
    return { left: from.x, top: from.y, right: to.x, bottom: to.y };
  }

  covers({ left, top, right, bottom }) {
    return left <= this.box.left && top <= this.box.top && right >= this.box.right && bottom >= this.box.bottom;
  }

  /** Bring the place under the pointer to the middle of the large picture. */
  moveTo(event) {
    const box = this.element.getBoundingClientRect();
    const x = (event.clientX - box.left - this.box.x) / this.box.scale + this.box.left;
    const y = (event.clientY - box.top - this.box.y) / this.box.scale + this.box.top;
    this.view.canvas.centerAt(x, y);
  }
}

/** Give a canvas the pixels of the screen, which clears it. */
function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function boxOf(nodes) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { x, y, reach = 0 } of nodes) {
    box.left = Math.min(box.left, x - reach);
    box.right = Math.max(box.right, x + reach);
    box.top = Math.min(box.top, y - reach);
    box.bottom = Math.max(box.bottom, y + reach);
  }
  return box;
}
