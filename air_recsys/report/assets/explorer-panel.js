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

/** A text that may break after each "|". */
function withBreaks(text) {
  return text.split(/(?<=\|)/).flatMap((part) => [part, element("wbr")]);
}

function describeNode(graph, node, onChoose, onCommunity) {
  const degree = graph.degree(node);
  const id = graph.labels[node] === graph.ids[node] ? "" : `${graph.kind} ${graph.ids[node]} · `;
  const edges = degree ? `${number(degree)} neighbour${degree === 1 ? "" : "s"}` : "isolated: no edges";
  byId("name").textContent = graph.labels[node];
  byId("about").textContent = id + edges + (degree ? " · " : "");
  if (degree) {
    const name = `community ${graph.communityName(graph.communities[node])}`;
    const button = element("button", { type: "button", className: "link", id: "to-community", text: name });
    button.addEventListener("click", () => onCommunity(graph.communities[node]));
    byId("about").append(button);
  }
  byId("rename").hidden = true;
  const rows = Object.entries(graph.attributes).filter(([, values]) => values[node] !== null);
  byId("attributes").replaceChildren(
    ...rows.flatMap(([name, values]) => [element("dt", { text: name }), element("dd", {}, withBreaks(values[node]))]),
  );
  fillList(graph, degree ? "Neighbours and weights" : "", graph.neighbors(node).slice(0, 200), onChoose);
}

function describeCommunity(graph, community, onChoose) {
  const members = graph.members.get(community);
  byId("name").textContent = `Community ${graph.communityName(community)}`;
  byId("about").textContent = [`${number(members.length)} ${graph.kind}s`, ...apart(graph, community)].join(" · ");
  byId("rename").hidden = false;
  byId("new-name").value = graph.renamed.get(community) || "";
  byId("new-name").placeholder = graph.named.get(community)?.name || "";
  byId("attributes").replaceChildren();
  const entries = members.slice(0, 100).map((node) => ({ node, weight: graph.strength[node] }));
  fillList(graph, "Strongest members and their summed weights", entries, onChoose);
}

/** How well known some nodes are, beside all of them. */
function mediansOf(graph, nodes) {
  const median = graph.medianRatings(nodes);
  if (median === null) return [];
  return [`median ${number(median)} ratings, of all ${number(graph.medianRatings([...graph.ids.keys()]))}`];
}

/** A p-value; those that are too small for a number have a bound. */
function chanceText(pValue) {
  return pValue < 1e-99 ? "p < 1e-99" : `p = ${pValue.toExponential(0)}`;
}

/** What sets a community apart, in words. */
function apart(graph, community) {
  const named = graph.named.get(community);
  const percent = (share) => `${Math.round(100 * share)} %`;
  const parts = [];
  if (named?.trait) {
    parts.push(`${named.trait}: ${percent(named.share)} of them, ${percent(named.share_of_all)} of all`);
    parts.push(chanceText(named.p_value));
  } else parts.push("named by its best known members");
  return [...parts, ...mediansOf(graph, graph.members.get(community))];
}

/** How much of the communities follows from who rated what; 1 stands for all, "by chance" for nothing. */
function describeExposure(graph) {
  byId("exposure").hidden = !graph.nmi;
  if (!graph.nmi) return;
  const names = { pattern: "who rated what", values: "how it was rated", bands: "number of ratings", shuffled: "by chance" };
  const rows = Object.entries(names).filter(([name]) => name in graph.nmi);
  byId("nmi").replaceChildren(
    ...rows.flatMap(([name, text]) => [element("dt", { text }), element("dd", { text: graph.nmi[name].toFixed(2) })]),
  );
}

/** Fill a select, and return the choice that it then has. */
function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => element("option", { value, text })));
  select.value = choices.some(([value]) => value === chosen) ? chosen : "";
  return select.value;
}

/** The key of the colours. */
function fillKey(entries) {
  const rows = entries.map(({ color, text }) => {
    const dot = element("span", { className: "swatch" });
    dot.style.background = color;
    return element("li", {}, [dot, element("span", { className: "what", text, title: text })]);
  });
  byId("key").replaceChildren(...rows);
}

/** Show a table of nodes, its head first. */
function showTable(rows, limit = 500) {
  const cells = (tag, row) => row.map((value) => element(tag, { text: value === null ? "" : String(value) }));
  const head = element("thead", {}, [element("tr", {}, cells("th", rows[0]))]);
  const body = element("tbody", {}, rows.slice(1, limit + 1).map((row) => element("tr", {}, cells("td", row))));
  byId("rows").replaceChildren(head, body);
  const more = rows.length - 1 > limit ? `, the first ${number(limit)} here, all in the CSV` : "";
  byId("table-about").textContent = `${number(rows.length - 1)} rows${more}`;
  byId("table").showModal();
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
