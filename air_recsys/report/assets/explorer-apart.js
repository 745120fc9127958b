"use strict";

// What sets some nodes apart from all others, as air_recsys.graphs.naming has it for communities.
const LEVEL = 0.01;
const LEAST_SHARE = 0.2;
const LEAST_HOLDERS = 3;
const MOST_TRAITS_TOLD = 4;

/** The traits of nodes: parts of texts, decades of years, quarters of other numbers. `holders` has one flag a node. */
function traitsOf(graph) {
  const columns = [...graph.filters.texts].map(([name, texts]) => [name, texts]);
  for (const [name, values] of graph.filters.numbers) columns.push([name, spansOf(name, values)]);
  return columns.flatMap(([name, texts]) => traitsOfColumn(name, texts));
}

function traitsOfColumn(name, texts) {
  const known = Uint8Array.from(texts, (each) => Number(each.length > 0));
  const all = known.reduce((a, b) => a + b, 0);
  const holders = new Map();
  texts.forEach((each, node) => {
    for (const text of new Set(each)) {
      if (!holders.has(text)) holders.set(text, []);
      holders.get(text).push(node);
    }
  });
  const common = [...holders].filter(([, nodes]) => nodes.length >= LEAST_HOLDERS && nodes.length < all);
  return common.map(([text, nodes]) => ({ name, text, nodes, known, all }));
}

/** The decade of each year, the quarter of each other number, [] for none. */
function spansOf(name, values) {
  const known = values.filter(Number.isFinite);
  if (known.every((value) => Number.isInteger(value) && value >= 1500 && value <= 2100)) {
    return values.map((value) => (Number.isFinite(value) ? [`${Math.floor(value / 10) * 10}s`] : []));
  }
  const sorted = known.sort((a, b) => a - b);
  const edges = [0, 0.25, 0.5, 0.75, 1].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
  return values.map((value) => {
    if (!Number.isFinite(value)) return [];
    const quarter = edges.slice(1, 4).filter((edge) => value > edge).length;
    return [`${name} ${edges[quarter]} to ${edges[quarter + 1]}`];
  });
}

/** The traits that some nodes have more often than chance gives, the least probable first. */
function standingOut(traits, nodes) {
  const chosen = new Set(nodes);
  const found = traits.map((trait) => {
    const n = nodes.filter((node) => trait.known[node]).length;
    const k = trait.nodes.filter((node) => chosen.has(node)).length;
    const chance = n ? tail(k, n, trait.nodes.length, trait.all) : 1;
    return { ...trait, share: k / n, shareOfAll: trait.nodes.length / trait.all, pValue: Math.min(1, traits.length * chance) };
  });
  const clear = found.filter(({ pValue, share }) => pValue < LEVEL && share >= LEAST_SHARE);
  return clear.sort((a, b) => a.pValue - b.pValue || b.share - a.share).slice(0, MOST_TRAITS_TOLD);
}

/** P(X >= k) of the hypergeometric distribution: of n nodes among N, of which K have a trait. */
function tail(k, n, K, N) {
  const logs = logFactorials(N);
  const choose = (all, some) => logs[all] - logs[some] - logs[all - some];
  let sum = 0;
  for (let x = k; x <= Math.min(n, K); x++) {
    if (n - x <= N - K) sum += Math.exp(choose(K, x) + choose(N - K, n - x) - choose(N, n));
  }
  return Math.min(1, sum);
}

let knownLogs = new Float64Array(1);

/** The logarithms of 0!, 1!, ..., up to n! or further. */
function logFactorials(n) {
  if (knownLogs.length > n) return knownLogs;
  const logs = new Float64Array(n + 1);
  for (let each = 1; each <= n; each++) logs[each] = logs[each - 1] + Math.log(each);
  knownLogs = logs;
  return logs;
}
