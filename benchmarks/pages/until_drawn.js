const done = arguments[arguments.length - 1];
const start = performance.now();
{action}
requestAnimationFrame(function frame() {
  const { view } = explorer;
  if (!view.fitting && !view.moving && view.painter.isDone) done((performance.now() - start) / 1000);
  else requestAnimationFrame(frame);
});
