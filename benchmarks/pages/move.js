// Every frame moves the pointer as a hand would; what counts is how often the browser gets to the next one.
const [kind, milliseconds, done] = arguments;
const canvas = document.querySelector("#canvas canvas");
const box = canvas.getBoundingClientRect();
const at = (angle) => ({
  bubbles: true, cancelable: true, view: window, button: 0, buttons: 1,
  clientX: box.x + box.width / 2 + 200 * Math.cos(angle), clientY: box.y + box.height / 2 + 150 * Math.sin(angle),
});
const start = performance.now();
const gaps = [];
let last = null;
if (kind === "drag") canvas.dispatchEvent(new MouseEvent("mousedown", at(0)));
requestAnimationFrame(function frame(now) {
  if (last !== null) gaps.push(now - last);
  last = now;
  const turn = (performance.now() - start) / 300;
  if (kind === "drag") window.dispatchEvent(new MouseEvent("mousemove", at(turn)));
  else canvas.dispatchEvent(new WheelEvent("wheel", { ...at(0), deltaY: 40 * Math.cos(turn) }));
  if (now - start < milliseconds) return requestAnimationFrame(frame);
  if (kind === "drag") window.dispatchEvent(new MouseEvent("mouseup", at(turn)));
  done(gaps);
});
