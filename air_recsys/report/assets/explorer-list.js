"use strict";

/** Up, Down, Home and End move the focus among the elements of a list that a selector finds. */
function arrowKeys(list, selector = "button") {
  list.addEventListener("keydown", (event) => {
    const found = [...list.querySelectorAll(selector)];
    const at = found.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: found.length - 1 }[event.key];
    if (to === undefined || !found[to]) return;
    found[to].focus();
    event.preventDefault();
  });
}

/** Make a list a listbox: one stop of Tab, arrow keys within, Enter or a click chooses. */
function asListbox(list) {
  list.setAttribute("role", "listbox");
  arrowKeys(list, "[role=option]");
  list.addEventListener("focusin", (event) => tabStop(list, event.target));
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.target.click();
  });
}

/** Tab comes back to where the focus was. */
function tabStop(list, option) {
  for (const each of list.children) each.tabIndex = each === option ? 0 : -1;
}

/** Fill a listbox with nodes, `{ node, weight, shared }`, and bars as long as their shares of the largest weight. */
function fillNodes(list, graph, entries, onChoose) {
  const largest = entries.reduce((most, { weight }) => Math.max(most, weight ?? 0), 1e-300);
  const options = entries.map((entry) => {
    const option = nodeOption(graph, entry, largest);
    option.addEventListener("click", () => onChoose(entry.node));
    return option;
  });
  list.replaceChildren(...options);
  list.hidden = !options.length;
  if (options.length) tabStop(list, options[0]);
}

/** Fill the list of the panel. */
function fillList(graph, title, entries, onChoose) {
  byId("list-title").textContent = title;
  fillNodes(byId("list"), graph, entries, onChoose);
}

/** A node, its weight, and why the edge to it is there; a node without a weight is where a path begins. */
function nodeOption(graph, { node, weight, shared }, largest) {
  const count = weight === undefined ? "" : weightText(weight);
  const line = element("span", { className: "line" }, [
    swatch(graph.communities[node]),
    element("span", { className: "what", text: graph.labels[node], title: graph.labels[node] }),
    element("span", { className: "count", text: count }),
  ]);
  const parts = [line];
  if (weight !== undefined) {
    const bar = element("i");
    bar.style.width = `${(100 * weight) / largest}%`;
    parts.push(element("span", { className: "part" }, [bar]));
  }
  if (shared !== undefined) parts.push(element("span", { className: "why", text: graph.reason(shared) }));
  const option = element("li", { role: "option", tabIndex: -1 }, parts);
  option.setAttribute("aria-selected", "false");
  return option;
}
