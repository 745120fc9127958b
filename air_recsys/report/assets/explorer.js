"use strict";

/** The page: state, and what each control does to it. */
class Explorer {
  constructor(data) {
    this.data = data;
    this.graphs = data.graphs.map((each) => new Graph(each));
    this.view = new View(byId("canvas"), byId("tip"), {
      onPick: (node) => this.pick(node),
      onDrawn: () => this.drawn(),
    });
    this.view.linkText = (link) => this.linkText(link);
    this.search = new Search(this);
    this.buildSwitch();
    this.listen();
    LinkState.read(this, location.hash.slice(1));
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) !== LinkState.write(this)) LinkState.read(this, location.hash.slice(1));
    });
  }

  buildSwitch() {
    const choices = this.graphs.map((graph, index) => {
      const input = element("input", { type: "radio", name: "graph", value: String(index) });
      input.addEventListener("change", () => this.open(graph));
      return element("label", {}, [input, element("span", { text: graph.name, title: graph.name })]);
    });
    byId("switch").append(...choices);
    byId("switch").hidden = this.graphs.length < 2;
  }

  listen() {
    byId("threshold").addEventListener("input", () => this.moveThreshold(byId("threshold").valueAsNumber));
    byId("color").addEventListener("change", () => this.setLooks(byId("color").value, byId("size").value));
    byId("size").addEventListener("change", () => this.setLooks(byId("color").value, byId("size").value));
    byId("new-name").addEventListener("change", () => this.rename(byId("new-name").value.trim()));
    this.listenToSaving();
    byId("step").addEventListener("input", () => this.setStep(byId("step").valueAsNumber));
    byId("all").addEventListener("click", () => this.filter(null));
    byId("close").addEventListener("click", () => this.clear());
    byId("back").addEventListener("click", () => this.clear());
    byId("zoom-in").addEventListener("click", () => this.view.zoomBy(1.5));
    byId("zoom-out").addEventListener("click", () => this.view.zoomBy(1 / 1.5));
    byId("zoom-fit").addEventListener("click", () => this.view.fit());
    for (const input of document.getElementsByName("ego")) {
      input.addEventListener("change", () => this.setHops(Number(input.value)));
    }
    arrowKeys(byId("list"));
    arrowKeys(byId("legend"));
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  listenToSaving() {
    const table = () => nodeTable(this.graph, this.selection());
    byId("show-table").addEventListener("click", () => showTable(table()));
    byId("close-table").addEventListener("click", () => byId("table").close());
    byId("save-csv").addEventListener("click", () => save(`${this.graph.name}.csv`, "text/csv", csvText(table())));
    byId("save-svg").addEventListener("click", () => save(`${this.graph.name}.svg`, "image/svg+xml", svgOf(this.view)));
    byId("save-png").addEventListener("click", () => {
      this.view.toPng((picture) => save(`${this.graph.name}.png`, "image/png", picture));
    });
  }

  onKey(event) {
    if (byId("table").open) return;
    if (event.key === "Escape" && !event.defaultPrevented && this.chosen) this.clear();
    const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement.tagName);
    if (event.key === "/" && !typing) {
      byId("search").focus();
      event.preventDefault();
    }
  }

  // ------------------------------------------------------------ graph, step, threshold

  /** Show a graph as it was left: with the text of the search, and what was chosen. */
  open(graph) {
    if (this.graph) this.graph.left = { node: this.chosen?.node, text: byId("search").value };
    this.graph = graph;
    this.looks = graph.looks;
    this.chosen = null;
    const left = graph.left || {};
    byId("switch").querySelectorAll("input")[this.graphs.indexOf(graph)].checked = true;
    byId("search").value = left.text || "";
    describeExposure(graph);
    this.large = graph.positions === null;
    byId("search").placeholder = `Search ${graph.name} by title or id`;
    byId("steps").hidden = graph.steps.length < 2;
    byId("step").max = String(graph.steps.length - 1);
    this.setStep(graph.steps.length - 1);
    if (left.node !== undefined) this.choose({ node: left.node }, false);
    this.view.fit(0);
  }

  setStep(index) {
    const { graph } = this;
    graph.setStep(index);
    const { epoch } = graph.step;
    byId("step").value = String(index);
    byId("epoch").textContent = epoch === null ? "(trained)" : `epoch ${number(epoch)}`;
    byId("step").setAttribute("aria-valuetext", epoch === null ? "trained" : `epoch ${epoch}`);
    this.filtered = new Set();
    const kept = this.chosen?.node;
    this.chosen = null;
    this.hops = 0;
    byId("panel").hidden = true;
    this.view.resize();
    this.describe();
    this.initialThreshold();
    this.setLooks(this.looks.color || "", this.looks.size || "");
    if (kept !== undefined) this.choose({ node: kept }, false);
  }

  setLooks(color, size) {
    const { looks } = this;
    looks.color = fillSelect(byId("color"), looks.colorChoices(), color);
    looks.size = fillSelect(byId("size"), looks.sizeChoices(), size);
    fillKey(looks.colors(looks.color).key);
    this.showScene();
  }

  rename(name) {
    const { community } = this.chosen;
    if (name) this.graph.renamed.set(community, name);
    else this.graph.renamed.delete(community);
    this.choose({ community }, false);
  }

  /** The nodes for a table: those of the chosen community, the chosen node and its neighbours, else all that are seen. */
  selection() {
    const { graph, chosen } = this;
    if (chosen?.node !== undefined) return [chosen.node, ...graph.neighbors(chosen.node).map(({ node }) => node)];
    if (chosen) return graph.members.get(chosen.community);
    if (this.overview) return graph.byStrength.filter((node) => !this.filtered.size || this.filtered.has(legendKey(graph.communities[node])));
    return this.view.scene.byKnown.filter((node) => node.seen).map((node) => node.key);
  }

  linkText(link) {
    const weight = this.overview ? link.weight : this.graph.step.weights[link.rank];
    const reason = this.overview ? "" : this.graph.reason(this.graph.step.shared?.[link.rank]);
    return [`${link.source.label} – ${link.target.label}: ${weightText(weight)}`, reason].filter(Boolean).join(" · ");
  }

  describe() {
    const { graph } = this;
    const isolated = graph.members.get(-1) || [];
    const inPage = graph.step.weights.length;
    const parts = [`${number(graph.size)} ${graph.kind}s`, `${number(graph.step.n_edges)} edges`];
    if (isolated.length) parts.push(`${number(isolated.length)} isolated`);
    byId("summary").textContent = parts.join(" · ");
    byId("total").textContent = number(inPage);
    const notes = [];
    if (this.large) {
      notes.push(
        `${number(graph.size)} ${graph.kind}s are more than the ${number(this.data.max_nodes)} that this page draws ` +
          "at once: it shows their communities. Search for one, or choose a community, to see its surroundings.",
      );
    }
    if (inPage < graph.step.n_edges) {
      notes.push(`The page holds ${number(inPage)} of ${number(graph.step.n_edges)} edges: the strongest of every node.`);
    }
    if (!inPage) notes.push(`This graph has no edges: no two ${graph.kind}s are alike.`);
    byId("note").textContent = notes.join(" ");
    byId("note").hidden = !notes.length;
  }

  /** About three edges a node are easy on the eye; the slider brings the others. */
  initialThreshold() {
    const total = this.graph.step.weights.length;
    const wanted = Math.min(total, Math.max(3 * this.graph.size, 2000));
    byId("threshold").value = String(total ? Math.floor(1000 * (1 - Math.sqrt(wanted / total))) : 0);
    byId("threshold").disabled = !total;
    this.moved = false;
    this.readThreshold();
  }

  /** The slider counts edges, not weight, which most edges have little of; its square root gives few edges room. */
  readThreshold() {
    const { weights } = this.graph.step;
    const share = (1 - byId("threshold").valueAsNumber / 1000) ** 2;
    this.kept = weights.length ? this.graph.withTies(Math.round(share * weights.length)) : 0;
    const text = this.kept ? weightText(weights[this.kept - 1]) : "–";
    byId("weight").textContent = text;
    byId("threshold").setAttribute("aria-valuetext", `weight at least ${text}`);
  }

  moveThreshold(value) {
    byId("threshold").value = String(value);
    this.moved = true;
    this.readThreshold();
    this.refresh();
  }

  // ------------------------------------------------------------ what is drawn

  showScene() {
    const { graph, chosen } = this;
    this.overview = this.large && (!chosen || chosen.community !== undefined);
    if (this.overview) this.view.show(communityScene(graph));
    else if (this.large) this.view.show(nodeScene(graph, graph.ego(chosen.node, this.hops || 1)), { layout: true });
    else this.view.show(nodeScene(graph));
    byId("back").hidden = !this.large || this.overview;
    byId("threshold").parentElement.hidden = this.overview;
    this.refresh();
  }

  /** Decide which nodes and links are seen, and say how many. */
  refresh() {
    const { graph, chosen, hops, filtered } = this;
    const inside = !this.large && chosen && hops ? graph.ego(chosen.node, hops) : null;
    for (const node of this.view.scene.nodes) {
      node.seen = (!filtered.size || filtered.has(legendKey(node.community))) && (!inside || inside.has(node.key));
    }
    if (chosen && chosen.node !== undefined) this.always(chosen.node);
    let count = 0;
    for (const link of this.view.scene.links) {
      link.seen = link.source.seen && link.target.seen && (this.overview || link.rank < this.kept || ends(link, chosen));
      count += link.seen;
    }
    byId("drawn").textContent = number(count);
    byId("all").hidden = !filtered.size;
    fillLegend(graph, legendGroups(graph), filtered, (key) => this.filter(key));
    this.view.select(chosen?.node ?? (this.overview ? chosen?.community : undefined) ?? null, this.near());
    this.remember();
  }

  /** Keep the state in the link, so that it can be sent; once, when things have come to rest. */
  remember() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => history.replaceState(null, "", `#${LinkState.write(this)}`), 200);
  }

  /** A chosen node is seen whatever the legend filters. */
  always(key) {
    const node = this.view.scene.nodes.find((each) => each.key === key);
    if (node) node.seen = true;
  }

  near() {
    if (!this.chosen || this.chosen.node === undefined) return [];
    return this.graph.neighbors(this.chosen.node).map(({ node }) => node);
  }

  filter(key) {
    if (key === null) this.filtered.clear();
    else if (!this.filtered.delete(key)) this.filtered.add(key);
    const [only] = this.filtered;
    const one = this.filtered.size === 1 && only >= 0 && only < PALETTE.length;
    if (one && this.chosen?.node === undefined && !this.large) {
      this.choose({ community: only }, false);
      this.view.fit();
    } else if (!one && this.chosen?.community !== undefined && !this.large) this.clear(false);
    else this.refresh();
    const pressed = legendGroups(this.graph).findIndex((group) => group.key === key);
    if (pressed >= 0) byId("legend").querySelectorAll("button")[pressed].focus();
    byId("status").textContent = `${byId("drawn").textContent} edges drawn`;
  }

  // ------------------------------------------------------------ choosing

  pick(node) {
    if (!node) this.clear();
    else if (this.overview) this.choose({ community: node.key });
    else this.choose({ node: node.key });
  }

  choose(chosen, focus = true) {
    const first = !this.chosen || this.chosen.node === undefined;
    this.chosen = chosen;
    if (chosen.node === undefined) describeCommunity(this.graph, chosen.community, (node) => this.choose({ node }));
    else describeNode(this.graph, chosen.node, (node) => this.choose({ node }), (community) => this.choose({ community }));
    byId("ego").hidden = chosen.node === undefined || !this.graph.degree(chosen.node);
    document.querySelector('input[name="ego"][value="0"]').parentElement.hidden = this.large;
    if (first) this.hops = this.large && chosen.node !== undefined ? 1 : 0;
    document.querySelector(`input[name="ego"][value="${this.hops}"]`).checked = true;
    byId("panel").hidden = false;
    this.view.resize();
    byId("panel").scrollTop = 0;
    if (focus) byId("name").focus({ preventScroll: true });
    byId("status").textContent = `${byId("name").textContent}. ${byId("about").textContent}`;
    this.update();
  }

  setHops(hops) {
    this.hops = hops;
    this.update();
    if (!this.large) this.view.fit();
  }

  clear(focus = true) {
    this.chosen = null;
    this.hops = 0;
    byId("panel").hidden = true;
    this.view.resize();
    byId("status").textContent = "Nothing chosen";
    this.update();
    if (focus) byId("canvas").focus({ preventScroll: true });
  }

  update() {
    if (this.large) this.showScene();
    else this.refresh();
  }

  /** Tell when the first picture was there, in milliseconds since the page was asked for. */
  drawn() {
    document.documentElement.dataset.ready ??= String(Math.round(performance.now()));
  }
}

/** Whether a link is one of the chosen node's: those are drawn whatever the slider says. */
function ends(link, chosen) {
  return chosen?.node !== undefined && (link.source.key === chosen.node || link.target.key === chosen.node);
}

/** The search box: a list that follows what is typed. */
class Search {
  constructor(explorer) {
    this.explorer = explorer;
    this.input = byId("search");
    this.list = byId("found");
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("focus", () => this.update());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  update() {
    const { graph } = this.explorer;
    this.nodes = graph.search(this.input.value);
    const entries = this.nodes.map((node, index) => this.entry(graph, node, index));
    const none = this.input.value.trim() && !entries.length;
    const nothing = { className: "hint", role: "option", ariaDisabled: "true", text: "Nothing found" };
    this.list.replaceChildren(...entries, ...(none ? [element("li", nothing)] : []));
    this.list.hidden = !this.list.children.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.point(0);
  }

  entry(graph, node, index) {
    const id = graph.labels[node] === graph.ids[node] ? "" : graph.ids[node];
    const parts = [
      element("span", { className: "what", text: graph.labels[node] }),
      element("span", { className: "id", text: id }),
    ];
    const made = element("li", { id: `found-${index}`, role: "option" }, parts);
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the focus stays in the box until the choice is made
      this.choose(index);
    });
    return made;
  }

  point(index) {
    this.at = index;
    [...this.list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === index)));
    const current = this.nodes.length ? this.list.children[index] : null;
    if (current) current.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", current ? current.id : "");
  }

  onKey(event) {
    const count = this.list.hidden ? 0 : this.nodes.length;
    if (event.key === "ArrowDown" && count) this.point((this.at + 1) % count);
    else if (event.key === "ArrowUp" && count) this.point((this.at + count - 1) % count);
    else if (event.key === "Enter" && count) this.choose(this.at);
    else if (event.key === "Escape" && (this.input.value || !this.list.hidden)) {
      this.input.value = "";
      this.close();
    } else return;
    event.preventDefault();
  }

  choose(index) {
    const node = this.nodes[index];
    this.close();
    this.explorer.choose({ node });
    if (!this.explorer.large) this.explorer.view.fitMarked();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.setAttribute("aria-activedescendant", "");
  }
}

/** Light or dark: as the system has it, until the button says otherwise. */
function startTheme(onChange) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    byId("theme").setAttribute("aria-pressed", String(isDark));
    onChange();
  };
  dark.addEventListener("change", () => apply(dark.matches));
  byId("theme").addEventListener("click", () => apply(document.documentElement.dataset.theme !== "dark"));
  apply(dark.matches);
}

// `var`: a property of the window, which is all of a page that a driver of Firefox reaches.
var explorer = new Explorer(JSON.parse(byId("data").textContent));
startTheme(() => explorer.view.readTheme());
