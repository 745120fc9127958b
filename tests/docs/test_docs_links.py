"""Every link leads somewhere: to a page, a heading, a file of the repository, or a role's object. No network."""

import importlib
import re
import runpy
from urllib.parse import urlsplit

import pytest
from doc_pages import DOCS, PAGES, REPORTS, ROOT, anchors, links, name_of

IMAGES = sorted(path for path in (DOCS / "images").rglob("*") if path.is_file())


def is_there(page, target):
    parts = urlsplit(target)
    if parts.scheme:
        return parts.scheme == "https" and "." in parts.netloc
    aim = (page.parent / parts.path).resolve() if parts.path else page
    inside = aim == ROOT or ROOT in aim.parents
    return inside and aim.exists() and (not parts.fragment or parts.fragment in anchors(aim))


def test_every_link_leads_somewhere():
    pages = (*PAGES, *REPORTS)
    assert [
        f"{name_of(page)}: {target}" for page in pages for target in links(page) if not is_there(page, target)
    ] == []


def object_of(dotted):
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module in {dotted}")


def test_every_role_names_an_object():
    for page in PAGES:
        for text in re.findall(r"\{py:\w+\}`([^`]*)`", page.read_text(encoding="utf-8")):
            named = re.search(r"<(.*)>", text)
            object_of(named.group(1) if named else text)


def test_every_picture_is_shown_on_a_page():
    shown = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    unseen = {path.relative_to(DOCS).as_posix() for path in IMAGES if path not in shown}
    assert unseen == set()


def test_every_picture_has_a_command():
    table = (DOCS / "contributing.md").read_text(encoding="utf-8").split("| picture | command |")[1]
    named = re.findall(r"`([\w./-]+(?:\.png|/))`", table)
    pictures = [path.relative_to(DOCS / "images").as_posix() for path in IMAGES]
    assert [name for name in pictures if not name.startswith(tuple(named))] == []


@pytest.mark.parametrize(
    ("targets", "there"),
    [
        (["nowhere.md", "start.md#nowhere", "images/nowhere.png", "#nowhere", "../../x"], False),
        (["start.md#install", "images/demo.png", "../examples/plots.py", "#install"], True),
    ],
)
def test_the_check_sees_dead_and_live_links(targets, there):
    assert {is_there(DOCS / "start.md", target) for target in targets} == {there}


def test_the_architecture_names_the_layers_that_are_enforced():
    layers = runpy.run_path(str(ROOT / "tests" / "test_layers.py"))["LAYERS"]
    section = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## ")[1]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == list(layers)
