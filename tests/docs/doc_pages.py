"""The pages of the documentation: their code, links and headings, as a reader of Markdown finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
REPORTS = sorted((ROOT / "benchmarks" / "reports").glob("*.md"))  # of makers: their links alone are tested
CELL = "{code-cell} python"
_HEAD = re.compile(r"---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Block(NamedTuple):
    """A block of code: its language ("" where it is only indented), its text, and the line of the text."""

    language: str
    text: str
    line: int


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def tokens(page: Path) -> list[Token]:
    text = page.read_text(encoding="utf-8")
    head = _HEAD.match(text)
    # Blank lines in the place of a notebook's head keep the numbers of the lines.
    return _MARKDOWN.parse("\n" * head[0].count("\n") + text[head.end() :] if head else text)


def blocks(page: Path) -> list[Block]:
    found = []
    for token in tokens(page):
        if token.type in ("fence", "code_block") and token.map is not None:
            fenced = token.type == "fence"
            found.append(Block(token.info.strip() if fenced else "", token.content, token.map[0] + 1 + fenced))
    return found


def commands(block: Block, program: str = "air-recsys ") -> list[str]:
    """The commands of a program in a block, each in one line and without its comment."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    lines = (re.sub(r"\s+#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line.startswith(program)]


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links and pictures."""
    for token in tokens(page):
        for child in token.children or ():
            target = child.attrs.get("href") or child.attrs.get("src")
            if target is not None:
                yield str(target)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    parsed = tokens(page)
    titles = [
        "".join(child.content for child in after.children or ())
        for before, after in pairwise(parsed)
        if before.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
