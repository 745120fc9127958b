"""A page as a reader meets it."""

from html.parser import HTMLParser

VOID = {"meta", "img", "link", "br"}


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
