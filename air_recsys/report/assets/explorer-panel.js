"use strict";

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const weightText = (value) => Number(value.toPrecision(3)).toString();

/** An element with a class, a text, and children. Texts are never read as HTML. */
function element(tag, { className = "", text = null, ...properties } = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  if (className) made.className = className;
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

function swatch(community) {
  const made = element("span", { className: "swatch" });
  made.style.background = communityColor(community) || "var(--faint)";
  return made;
}

/** Up, Down, Home and End move the focus among the buttons of a list. */
function arrowKeys(list) {
  list.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    buttons[to].focus();
    event.preventDefault();
  });
}

/** A button of the list in the panel: a node, and a bar as long as its share of the largest weight. */
function listEntry(graph, { node, weight }, largest, onChoose) {
  const line = element("span", { className: "line" }, [
    swatch(graph.communities[node]),
    element("span", { className: "what", text: graph.labels[node], title: graph.labels[node] }),
    element("span", { className: "count", text: weightText(weight) }),
  ]);
  const bar = element("i");
  bar.style.width = `${(100 * weight) / largest}%`;
  const button = element("button", { type: "button" }, [line, element("span", { className: "part" }, [bar])]);
  button.addEventListener("click", () => onChoose(node));
  return element("li", {}, [button]);
}

/** Fill the list with nodes and weights, strongest first. */
function fillList(graph, title, entries, onChoose) {
  const largest = Math.max(...entries.map(({ weight }) => weight), 1e-300);
  byId("list-title").textContent = title;
  byId("list").replaceChildren(...entries.map((entry) => listEntry(graph, entry, largest, onChoose)));
}

function describeNode(graph, node, onChoose) {
  const degree = graph.degree(node);
  const id = graph.labels[node] === graph.ids[node] ? "" : `${graph.kind} ${graph.ids[node]} · `;
  const edges = degree ? `${number(degree)} neighbour${degree === 1 ? "" : "s"}` : "isolated: no edges";
  byId("name").textContent = graph.labels[node];
  byId("about").textContent = id + edges + (degree ? ` · community of ${graph.communityName(graph.communities[node])}` : "");
  const rows = Object.entries(graph.attributes).filter(([, values]) => values[node] !== null);
  byId("attributes").replaceChildren(
    ...rows.flatMap(([name, values]) => [element("dt", { text: name }), element("dd", { text: values[node] })]),
  );
  fillList(graph, degree ? "Neighbours and weights" : "", graph.neighbors(node).slice(0, 200), onChoose);
}

function describeCommunity(graph, community, onChoose) {
  const members = graph.members.get(community);
  byId("name").textContent = `Community of ${graph.communityName(community)}`;
  byId("about").textContent = `${number(members.length)} ${graph.kind}s`;
  byId("attributes").replaceChildren();
  const entries = members.slice(0, 100).map((node) => ({ node, weight: graph.strength[node] }));
  fillList(graph, "Strongest members and their summed weights", entries, onChoose);
}

/** The legend: one toggle a coloured community, one for the small ones and one for isolated nodes. */
function fillLegend(graph, groups, chosen, onToggle) {
  const buttons = groups.map(({ key, name, size }) => {
    const button = element("button", { type: "button", title: name }, [
      swatch(key),
      element("span", { className: "what", text: name }),
      element("span", { className: "count", text: number(size) }),
    ]);
    button.setAttribute("aria-pressed", String(chosen.has(key)));
    button.addEventListener("click", () => onToggle(key));
    return element("li", {}, [button]);
  });
  byId("legend").replaceChildren(...buttons);
}

/** The groups of the legend: -1 for isolated nodes, PALETTE.length for all small communities together. */
function legendGroups(graph) {
  const sizes = new Map();
  for (const [community, members] of graph.members) {
    const key = legendKey(community);
    sizes.set(key, (sizes.get(key) || 0) + members.length);
  }
  const others = [...graph.members.keys()].filter((community) => community >= PALETTE.length).length;
  const names = { [PALETTE.length]: `${number(others)} smaller`, "-1": "isolated" };
  const keys = [...sizes.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b);
  return keys.map((key) => ({ key, name: names[key] || graph.communityName(key), size: sizes.get(key) }));
}

function legendKey(community) {
  return Math.min(community, PALETTE.length);
}
