"use strict";

const MOST_ANSWERED = 10; // rows of a table

/** The answers below the picture: why two nodes are alike, and what lies between two groups. */
class Questions {
  constructor(explorer) {
    this.explorer = explorer;
    byId("beside").addEventListener("change", () => {
      const { community, selected } = explorer.chosen;
      explorer.choose({ community, selected, beside: Number(byId("beside").value) }, false);
    });
    byId("close-answer").addEventListener("click", () => this.show({}));
  }

  /** Answer what is asked for: two nodes, or a community or the selection beside a community. */
  show({ node, to, community, selected, beside }) {
    const { graph } = this.explorer;
    const isGroup = community !== undefined || Boolean(selected);
    byId("ask-between").hidden = !isGroup;
    if (isGroup) this.offer(community, beside);
    const asked = node !== undefined && to !== undefined && to !== node;
    byId("answer").hidden = !asked && !(isGroup && beside >= 0);
    if (asked) this.tell(...whyAlike(graph, node, to));
    else if (!byId("answer").hidden) {
      const first = selected ? [...this.explorer.selected.nodes] : graph.members.get(community);
      const name = selected ? "the selection" : graph.communityName(community);
      this.tell(...whatLiesBetween(graph, [first, name], [graph.members.get(beside), graph.communityName(beside)]));
    }
    this.explorer.view.resize();
  }

  offer(community, beside) {
    const { graph } = this.explorer;
    const others = [...graph.members.keys()].filter((each) => each >= 0 && each !== community).sort((a, b) => a - b);
    fillSelect(byId("beside"), [["", "choose"], ...others.map((each) => [String(each), graph.communityName(each)])], String(beside ?? ""));
  }

  tell(title, sentence, tables) {
    const { graph } = this.explorer;
    byId("answer-title").textContent = title;
    byId("answer-text").textContent = sentence;
    const shown = tables.filter(({ rows }) => rows.length);
    byId("answer-tables").replaceChildren(...shown.map((each) => answerTable(graph, each, (node) => this.explorer.choose({ node }))));
    byId("status").textContent = `${title} ${sentence}`;
    byId("answer").scrollIntoView({ block: "nearest" });
  }
}

/** A table whose cells are texts, or `{ node }`, a link to it. */
function answerTable(graph, { caption, head, rows }, onChoose) {
  const cell = (value) => {
    if (value?.node === undefined) return element("td", { text: value });
    const button = element("button", { type: "button", className: "link", text: graph.labels[value.node] });
    button.addEventListener("click", () => onChoose(value.node));
    return element("td", {}, [button]);
  };
  return element("table", {}, [
    element("caption", { text: caption }),
    element("thead", {}, [element("tr", {}, head.map((text) => element("th", { text, scope: "col" })))]),
    element("tbody", {}, rows.slice(0, MOST_ANSWERED).map((row) => element("tr", {}, row.map(cell)))),
  ]);
}

/** The edge of two nodes, who rated both, the neighbours and the attributes that they share. */
function whyAlike(graph, a, b) {
  const [first, second] = [a, b].map((node) => graph.neighbors(node));
  const [one, other] = [a, b].map((node) => graph.labels[node]);
  const at = first.findIndex(({ node }) => node === b);
  const parts = [];
  if (!second.length) parts.push(`${other} has no edge in this graph, to any ${graph.kind}.`);
  else if (at < 0) parts.push(`No edge of this page joins them.`);
  else {
    const back = second.findIndex(({ node }) => node === a);
    const rank = (place, all, name) => `number ${place + 1} of the ${number(all.length)} neighbours of ${name}`;
    parts.push(`Weight ${weightText(first[at].weight)}: ${rank(at, first, one)}, ${rank(back, second, other)}.`);
    if (first[at].shared !== undefined) parts.push(`${graph.reason(first[at].shared)}.`);
  }
  const weights = new Map(second.map(({ node, weight }) => [node, weight]));
  const common = first.filter(({ node }) => weights.has(node)).map(({ node, weight }) => [node, weight, weights.get(node)]);
  common.sort((x, y) => Math.min(y[1], y[2]) - Math.min(x[1], x[2]) || x[0] - y[0]);
  const shared = traitsOf(graph).filter(({ nodes }) => nodes.includes(a) && nodes.includes(b));
  shared.sort((x, y) => x.nodes.length / x.all - y.nodes.length / y.all);
  const percent = (trait) => `${Math.round((100 * trait.nodes.length) / trait.all)} %`;
  parts.push(`They have ${number(common.length)} common neighbour${common.length === 1 ? "" : "s"}.`);
  return [
    `Why are ${one} and ${other} alike?`,
    parts.join(" "),
    [
      { caption: "Shared attributes", head: ["attribute", "value", "of all"], rows: shared.map((trait) => [trait.name, trait.text, percent(trait)]) },
      { caption: "Common neighbours", head: [graph.kind, "to the first", "to the second"], rows: common.map(([node, x, y]) => [{ node }, weightText(x), weightText(y)]) },
    ],
  ];
}

/** The edges that join two groups, and the nodes with edges to both. */
function whatLiesBetween(graph, [first, one], [second, other]) {
  const sides = new Uint8Array(graph.size);
  for (const node of second) sides[node] |= 2;
  for (const node of first) sides[node] |= 1;
  const sums = [new Float64Array(graph.size), new Float64Array(graph.size)];
  const edges = [];
  let total = 0;
  const add = (node, end, weight) => [1, 2].forEach((side, at) => { if (sides[end] & side) sums[at][node] += weight; });
  graph.step.weights.forEach((weight, edge) => {
    const [from, to] = [graph.step.sources[edge], graph.step.targets[edge]];
    add(from, to, weight);
    add(to, from, weight);
    const forth = sides[from] & 1 && sides[to] & 2;
    if (!forth && !(sides[to] & 1 && sides[from] & 2)) return;
    total += weight;
    edges.push([{ node: forth ? from : to }, { node: forth ? to : from }, weightText(weight)]);
  });
  const least = (node) => Math.min(sums[0][node], sums[1][node]);
  const joining = graph.byStrength.filter((node) => least(node) > 0).sort((a, b) => least(b) - least(a) || a - b);
  const told = edges.length ? `${number(edges.length)} edges of weight ${weightText(total)} in all join` : "No edge of this page joins";
  return [
    `What lies between ${one} and ${other}?`,
    `${told} the groups of ${number(first.length)} and ${number(second.length)} ${graph.kind}s.`,
    [
      { caption: "Strongest edges", head: ["from", "to", "weight"], rows: edges },
      { caption: "Most similar to both", head: [graph.kind, "to the first", "to the second"], rows: joining.slice(0, MOST_ANSWERED).map((node) => [{ node }, weightText(sums[0][node]), weightText(sums[1][node])]) },
    ],
  ];
}
