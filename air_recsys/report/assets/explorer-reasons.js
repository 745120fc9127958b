"use strict";

const MOST_EDGES = 5;

/** Where a score comes from: a part of the page that is filled when it is opened. */
function reasonsOf(picks, item, score, reasons) {
  const summary = element("summary", { text: "Why", ariaLabel: `Why ${picks.graph.labels[item]}` });
  const details = element("details", {}, [summary]);
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(...reasonRows(picks, item, score, reasons));
  });
  return details;
}

function reasonRows(picks, item, score, reasons) {
  const { graph, data } = picks;
  const digits = picks.digits + 1;
  const start = data.kind === "lists" ? [["like none of the picks", reasons.parts.none]] : startRows(reasons);
  const weights = new Map(graph.neighbors(item).map(({ node, weight }) => [node, weight]));
  const own = [...picks.ratings].map(([each, rating], at) => [pickText(picks, each, rating, weights), reasons.picks[at] + (reasons.near?.[at] || 0)]);
  own.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const limited = data.kind === "lists" ? 0 : score - picks.scores[item];
  const rest = [["rest", reasons.parts.rest || 0], [data.limit === "pushed" ? "pushed to 0 or 1" : "limited to the scale", limited]];
  const rows = [...start, ...own, ...rest].filter(([, value]) => Math.abs(value) >= 0.5 * 10 ** -digits);
  const terms = rows.flatMap(([text, value]) => [element("dt", { text }), element("dd", { text: signed(value, digits) })]);
  return [element("dl", { className: "parts" }, terms), ...edgeRows(picks, reasons, digits)];
}

function startRows({ parts, pattern }) {
  return [
    ["mean of all ratings", parts.mean],
    ["this item, for everybody", parts.item],
    ["how high the ratings are", parts.user],
    ["which items were picked", pattern],
  ];
}

function pickText({ graph, rated }, item, rating, weights) {
  const edge = weights.has(item) ? `, edge ${weightText(weights.get(item))}` : "";
  return `${graph.labels[item]}${rated ? ` (${rating})` : ""}${edge}`;
}

/** The edges of the item graph that carry most of the score, where they take part in it. */
function edgeRows({ graph }, { edges }, digits) {
  if (!edges) return [];
  const best = edges().sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, MOST_EDGES);
  const terms = best.flatMap(([to, from, value]) => [
    element("dt", { text: `${graph.labels[from]} → ${graph.labels[to]}` }),
    element("dd", { text: signed(value, digits) }),
  ]);
  return [element("p", { className: "hint", text: "Edges that carry most of it" }), element("dl", { className: "parts" }, terms)];
}

function signed(value, digits) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
}
