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
    this.path = new PathFinder(this);
    this.questions = new Questions(this);
    this.selected = new Selected(this);
    this.view.drawMarks = (context, scale) => this.selected.draw(context, scale);
    this.view.passes = (node) => this.passes(node);
    this.minimap = new Minimap(this.view);
    this.slider = new EdgeSlider(() => this.refresh());
    listenToSaving(this);
    this.filterControls = new FilterControls(() => this.refresh());
    this.source = new EdgeSource(this);
    this.picks = data.fold_in ? new Picks(this, data.fold_in) : null;
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
    byId("color").addEventListener("change", () => this.setLooks(byId("color").value, byId("size").value));
    byId("size").addEventListener("change", () => this.setLooks(byId("color").value, byId("size").value));
    byId("new-name").addEventListener("change", () => this.rename(byId("new-name").value.trim()));
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
    asListbox(byId("list"));
    arrowKeys(byId("legend"));
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (byId("table").open) return;
    if (event.key === "Escape" && !event.defaultPrevented) this.letGo();
    const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "s" && this.chosen?.node !== undefined) this.selected.toggle(this.chosen.node);
    else if (event.key === "/") {
      byId("search").focus();
      event.preventDefault();
    }
  }

  // ------------------------------------------------------------ graph, step, threshold

  /** Show a graph as it was left: with the text of the search, and what was chosen. */
  open(graph) {
    if (this.graph) this.graph.left = { chosen: this.chosen, text: byId("search").value };
    this.graph = graph;
    this.looks = graph.looks;
    this.filters = graph.filters ??= new Filters(graph);
    this.filterControls.show(this.filters);
    this.chosen = null;
    const left = graph.left || {};
    byId("switch").querySelectorAll("input")[this.graphs.indexOf(graph)].checked = true;
    byId("search").value = left.text || "";
    describeExposure(graph);
    this.source.open(graph);
    this.large = graph.positions === null;
    byId("search").placeholder = `Search ${graph.name} by title or id`;
    byId("steps").hidden = graph.steps.length < 2;
    byId("step").max = String(graph.steps.length - 1);
    this.setStep(graph.steps.length - 1);
    this.chooseAgain(left.chosen);
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
    const kept = this.chosen;
    this.chosen = null;
    this.path.show({});
    this.questions.show({});
    this.hops = 0;
    byId("panel").hidden = true;
    this.view.resize();
    this.describe();
    this.slider.open(graph);
    this.setLooks(this.looks.color || "", this.looks.size || "");
    this.chooseAgain(kept);
  }

  /** Choose what was chosen before, unless it is a community, which may be another one by now. */
  chooseAgain(chosen) {
    if (chosen && chosen.community === undefined) this.choose(chosen, false);
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
          "at once: it shows their communities. Zoom in, or choose a community, to see its members; search for one " +
          "to see its surroundings.",
      );
    }
    if (inPage < graph.step.n_edges) {
      notes.push(`The page holds ${number(inPage)} of ${number(graph.step.n_edges)} edges: the strongest of every node.`);
    }
    if (!inPage) notes.push(`This graph has no edges: no two ${graph.kind}s are alike.`);
    byId("note").textContent = notes.join(" ");
    byId("note").hidden = !notes.length;
  }

  // ------------------------------------------------------------ what is drawn

  showScene() {
    const { graph, chosen } = this;
    if (this.overview && this.view.detail.graph === graph) graph.camera = this.view.place();
    this.overview = this.large && chosen?.node === undefined;
    if (this.overview) this.view.show(communityScene(graph), { camera: graph.camera });
    else if (this.large) this.view.show(nodeScene(graph, this.surroundings()), { layout: true });
    else this.view.show(nodeScene(graph));
    this.view.detail.show(graph, this.overview);
    byId("back").hidden = !this.large || this.overview;
    byId("threshold").parentElement.hidden = this.overview;
    this.refresh();
  }

  /** What is drawn of a large graph beside its communities: the path, else the nodes around the chosen one. */
  surroundings() {
    return this.path.steps.length ? new Set(this.path.nodes) : this.graph.ego(this.chosen.node, this.hops || 1);
  }

  /** Decide which nodes and links are seen, and say how many. */
  refresh() {
    const { graph, chosen, hops, filtered } = this;
    const inside = !this.large && chosen && hops ? graph.ego(chosen.node, hops) : null;
    for (const node of this.view.scene.nodes) {
      const nodes = this.overview ? graph.members.get(node.key) || [] : [node.key];
      node.seen = nodes.some((each) => this.passes(each)) && (!inside || inside.has(node.key));
    }
    if (chosen && chosen.node !== undefined) this.always([chosen.node, ...this.path.nodes]);
    const onPath = this.path.edges;
    this.view.onPath = onPath.size ? onPath : null;
    let count = 0;
    for (const link of this.view.scene.links) {
      const asked = this.overview || link.rank < this.slider.kept || ends(link, chosen) || onPath.has(link.rank);
      link.seen = link.source.seen && link.target.seen && asked;
      count += link.seen;
    }
    byId("drawn").textContent = number(count);
    byId("all").hidden = !filtered.size;
    this.filterControls.tell(graph.byStrength.filter((node) => this.passes(node)).length, graph);
    fillLegend(graph, legendGroups(graph), filtered, (key) => this.filter(key));
    this.selected.tell();
    this.minimap.change();
    this.view.select(this.marked(), this.near());
    this.remember();
  }

  /** Whether the legend and the filters leave a node. */
  passes(node) {
    const inLegend = !this.filtered.size || this.filtered.has(legendKey(this.graph.communities[node]));
    return inLegend && this.filters.passes(node);
  }

  /** Keep the state in the link, so that it can be sent; once, when things have come to rest. */
  remember() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => history.replaceState(null, "", `#${LinkState.write(this)}`), 200);
  }

  /** A chosen node and its path are seen whatever is filtered. */
  always(keys) {
    const wanted = new Set(keys);
    for (const node of this.view.scene.nodes) if (wanted.has(node.key)) node.seen = true;
  }

  /** The key of what stands out in the picture, or null; "selected" is no node's, and all that are selected do. */
  marked() {
    const { chosen, overview } = this;
    if (!chosen) return null;
    if (chosen.node !== undefined) return chosen.node;
    return (overview ? chosen.community : chosen.selected && "selected") ?? null;
  }

  near() {
    if (this.chosen?.selected && !this.overview) return this.graph.byStrength.filter((node) => this.selected.nodes.has(node));
    if (!this.chosen || this.chosen.node === undefined) return [];
    if (this.path.steps.length) return this.path.nodes.slice(1);
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
    else if (this.overview && !node.isMember) this.choose({ community: node.key });
    else this.choose({ node: node.key });
  }

  choose(chosen, focus = true) {
    const first = !this.chosen || this.chosen.node === undefined;
    this.chosen = chosen;
    if (chosen.selected) this.selected.describe();
    else if (chosen.node === undefined) describeCommunity(this.graph, chosen.community, (node) => this.choose({ node }));
    else describeNode(this.graph, chosen.node, (node) => this.choose({ node }), (community) => this.choose({ community }));
    this.path.show(chosen);
    this.questions.show(chosen);
    this.picks?.describe();
    byId("ego").hidden = chosen.node === undefined || !this.graph.degree(chosen.node);
    document.querySelector('input[name="ego"][value="0"]').parentElement.hidden = this.large;
    if (first || chosen.node === undefined) this.hops = this.large && chosen.node !== undefined ? 1 : 0;
    document.querySelector(`input[name="ego"][value="${this.hops}"]`).checked = true;
    byId("panel").hidden = false;
    this.view.resize();
    byId("panel").scrollTop = 0;
    if (focus) byId("name").focus({ preventScroll: true });
    byId("status").textContent = `${byId("name").textContent}. ${byId("about").textContent}`;
    this.update();
  }

  /** Let go of the last thing that was asked for: the loop, the path, what is chosen, what is selected. */
  letGo() {
    const { chosen, selected } = this;
    if (selected.lasso.armed) selected.lasso.stop();
    else if (chosen?.to !== undefined) this.path.clear();
    else if (chosen && !chosen.selected) this.clear();
    else if (selected.nodes.size) selected.clear();
  }

  setHops(hops) {
    this.hops = hops;
    this.update();
    if (!this.large) this.view.fit();
  }

  clear(focus = true) {
    this.chosen = null;
    this.path.show({});
    this.questions.show({});
    this.hops = 0;
    byId("panel").hidden = true;
    this.view.resize();
    byId("status").textContent = "Nothing chosen";
    this.update();
    if (focus) byId("canvas").focus({ preventScroll: true });
  }

  update() {
    if (!this.large || (this.overview && this.chosen?.node === undefined)) this.refresh();
    else this.showScene();
    if (this.overview && this.chosen) this.view.approach(this.chosen.community);
  }

  /** Tell when the first picture was there, in milliseconds since the page was asked for. */
  drawn() {
    this.minimap.draw();
    document.documentElement.dataset.ready ??= String(Math.round(performance.now()));
  }
}

/** Whether a link is one of the chosen node's: those are drawn whatever the slider says. */
function ends(link, chosen) {
  return chosen?.node !== undefined && (link.source.key === chosen.node || link.target.key === chosen.node);
}

// `var`: a property of the window, which is all of a page that a driver of Firefox reaches.
var explorer = new Explorer(JSON.parse(byId("data").textContent));
startTheme(() => {
  explorer.view.readTheme();
  explorer.minimap.change();
});
