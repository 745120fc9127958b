"use strict";

const LEAST_LOOP = 8; // pixels across; less is a click

/** A loop drawn over the picture: with Shift, or after the button was pressed, which touch needs. */
class Lasso {
  constructor(element, { onLoop, onClick }) {
    Object.assign(this, { element, onLoop, onClick });
    this.points = null;
    this.line = byId("loop").querySelector("polygon");
    this.button = byId("lasso");
    this.button.addEventListener("click", () => this.arm(!this.armed));
    const listen = (type, act) => element.addEventListener(type, act, { capture: true });
    listen("pointerdown", (event) => this.start(event));
    listen("pointermove", (event) => this.points && this.go(event));
    listen("pointerup", (event) => this.points && this.end(event));
    listen("pointercancel", () => this.stop());
    // The picture neither moves nor chooses while the loop is drawn, nor by the click that ends it.
    for (const type of ["mousedown", "touchstart", "click"]) listen(type, (event) => this.drawing && event.stopPropagation());
  }

  get armed() {
    return this.button.getAttribute("aria-pressed") === "true";
  }

  arm(armed) {
    this.button.setAttribute("aria-pressed", String(armed));
    this.element.classList.toggle("lasso", armed);
    if (armed) byId("status").textContent = "Draw round what to select";
  }

  start(event) {
    this.drawing = event.isPrimary && event.button === 0 && (event.shiftKey || this.armed);
    if (!this.drawing) return;
    this.points = [this.at(event)];
    this.element.setPointerCapture(event.pointerId);
    event.stopPropagation();
  }

  at(event) {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  go(event) {
    this.points.push(this.at(event));
    this.line.setAttribute("points", this.points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
    event.stopPropagation();
  }

  end(event) {
    const { points } = this;
    this.stop();
    const across = (name) => Math.max(...points.map((each) => each[name])) - Math.min(...points.map((each) => each[name]));
    if (Math.max(across("x"), across("y")) < LEAST_LOOP) this.onClick(event);
    else this.onLoop((place) => isInside(place, points));
    event.stopPropagation();
  }

  stop() {
    this.points = null;
    this.line.setAttribute("points", "");
    this.arm(false);
  }
}

/** Whether a place lies in a loop: a ray from it crosses the loop an odd number of times. */
function isInside({ x, y }, points) {
  let inside = false;
  let last = points.at(-1);
  for (const point of points) {
    if (point.y > y !== last.y > y && x < ((last.x - point.x) * (y - point.y)) / (last.y - point.y) + point.x) inside = !inside;
    last = point;
  }
  return inside;
}
