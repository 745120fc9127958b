"""axe-core: what of a page keeps people from using it."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("axe_selenium_python", reason="axe-core comes with axe-selenium-python-nhsuk")

# By the driver, which the policy of a page does not bind. Rows of a table are alike, and so are the parts of a figure,
# which is an image with a name: without most of them it takes a third of the time.
RUN = """
const done = arguments[arguments.length - 1];
document.getAnimations().forEach((animation) => animation.finish());
const alike = "tbody tr:nth-child(n+4), figure svg[role=img] > :not(title)";
document.querySelectorAll(alike).forEach((part) => part.remove());
const serious = ({ impact }) => impact === "serious" || impact === "critical";
const told = ({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary}`);
axe.run(document, { resultTypes: ["violations"] }).then(
  ({ violations }) => done(violations.filter(serious).flatMap(told)),
  (error) => done([String(error)]));
"""


def barriers(browser: Any) -> list[str]:
    """The serious and critical findings of axe-core in a page as it is: the rule, the element, and what is wrong.

    It leaves the page without most rows of its tables and parts of its figures.
    """
    source = (
        files("axe_selenium_python").joinpath("node_modules", "axe-core", "axe.min.js").read_text(encoding="utf-8")
    )
    return browser.execute_async_script(source + RUN)
