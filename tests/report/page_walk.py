"""A walk through all controls of a page, whichever it has, with hostile texts in its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# One control at a time: the first that is seen and was not used yet, in an open dialog before the rest of the page.
# Of many alike in one place, such as the entries of a list, some are used.
STEP = r"""
window.walked ??= new Set();
const ALIKE = 6;
const kinds = "button, input:not([type=file]), select, textarea, summary, [role=button], [role=tab], [role=switch]";
const place = (e) => e.parentElement.closest("[id]")?.id ?? "";
const name = (e, all) => e.id || [place(e), e.tagName, e.type,
  Math.min(ALIKE, all.filter((other) => place(other) === place(e) && other.type === e.type).indexOf(e))].join(" ");
const closes = (e) => /close|clear|back|remove/i.test(`${e.id} ${e.getAttribute("aria-label")}`);
const open = document.querySelector("dialog[open]");
const all = [...(open ?? document).querySelectorAll(kinds)].filter((e) => e.checkVisibility() && !e.disabled);
all.sort((a, b) => closes(a) - closes(b));
const next = all.find((e) => !walked.has(name(e, all)));
if (!next) {
  open?.close();
  return open ? "close a dialog" : null;
}
const used = name(next, all);
walked.add(used);
const tell = (...types) => types.forEach((type) => next.dispatchEvent(new Event(type, { bubbles: true })));
const set = (value) => { next.value = value; tell("input", "change"); };
if (next.tagName === "SELECT") [...next.options].map((option) => option.value).forEach(set);
else if (["range", "number"].includes(next.type)) [next.min, next.max].forEach(set);
else if (["text", "search", ""].includes(next.type) || next.tagName === "TEXTAREA") {
  next.focus();
  set(arguments[0]);
  next.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
} else next.click();
return used;
"""
# What the page saves is kept: names, types and contents.
KEEP = """
window.saved = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { saved.push(blob); return make.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () {};
"""
SAVED = """
const done = arguments[arguments.length - 1];
Promise.all(saved.map(async (blob) => [blob.type, await blob.text()])).then(done);
"""
# Whatever of a page could run or load something that came with a text.
UNSAFE = r"""
const runs = (e) => [...e.attributes].some(({ name, value }) => /^on/i.test(name)
  || (/^(href|xlink:href|src|action|formaction|srcdoc)$/i.test(name) && /^\s*(javascript|https?):/i.test(value)));
const loads = (e) => e.matches("iframe, object, embed, img:not([src^='data:'])");
const found = [...document.querySelectorAll("*")].filter((e) => loads(e) || runs(e));
return [...(window.hacked ? ["it has run"] : []), ...found.map((e) => e.outerHTML.slice(0, 200))];
"""


def walk(browser: Any, text: str, again: Callable[[], object], rounds: int = 3) -> Iterator[str]:
    """Use every control of a page, and tell its name.

    `again` shows what a used control may have hidden; with every round it may show something else.
    """
    for _ in range(rounds):
        again()
        while (used := browser.execute_script(STEP, text)) is not None:
            yield used


def visible_ids(browser: Any) -> set[str]:
    """The ids of all that is seen: when new ones come, the page is in a new state."""
    script = "return [...document.querySelectorAll('[id]')].filter((e) => e.checkVisibility()).map((e) => e.id)"
    return set(browser.execute_script(script))
