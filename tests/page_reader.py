"""A page as a reader meets it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "img", "link", "br"}


def data_of(path: Path) -> dict[str, Any]:
    """The data of an explorer's page, read as the browser does."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


class Page(HTMLParser):
    """Checks that elements close in order, and gathers what a reader would meet."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.text += data

    def values(self, tag, name):
        return [value for found, attribute, value in self.attributes if (found, attribute) == (tag, name)]
