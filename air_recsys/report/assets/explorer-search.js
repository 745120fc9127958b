"use strict";

/** A search box for nodes: a list that follows what is typed. */
class Search {
  constructor(explorer, { input = byId("search"), list = byId("found"), graph = () => explorer.graph, onChoose = null } = {}) {
    Object.assign(this, { explorer, input, list, graph, onChoose });
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("focus", () => this.update());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  update() {
    const graph = this.graph();
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
    const made = element("li", { id: `${this.list.id}-${index}`, role: "option" }, parts);
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
    if (this.onChoose) return this.onChoose(node);
    this.explorer.choose({ node });
    if (!this.explorer.large) this.explorer.view.fitMarked();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.setAttribute("aria-activedescendant", "");
  }
}
