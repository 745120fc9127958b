"""Equations as MathML, which browsers draw themselves: no script, no font and no address is needed to read them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# What docutils does not know, in words that it knows; MathML sizes its brackets by itself.
_SPELLINGS = (
    (r"\\[bB]igg?[lrm]?(?![A-Za-z])", ""),
    (r"\\dots(?![A-Za-z])", r"\\ldots"),
    (r"\\([dt]?frac)(\d)(\d)", r"\\\1{\2}{\3}"),
)
# What it writes in a way that browsers draw badly: bars of a norm, and the index of a letter with a hat.
_REPAIRS = (
    ("<mo>‖</mo>", '<mo stretchy="false">‖</mo>'),
    (
        r"<munderover>\s*(<mi>\w+</mi>)\s*(<mrow>.*?</mrow>|<m[ino]>\w+</m[ino]>)\s*(<mo[^>]*>ˆ</mo>)\s*</munderover>",
        r'<msub><mover accent="true">\1\3</mover>\2</msub>',
    ),
)


def mathml(latex: str, *, block: bool) -> str:
    r"""Return an equation as a ``math`` element.

    Examples
    --------
    >>> mathml(r"\tfrac12", block=False).count("<mn>")
    2
    >>> "msub" in mathml(r"\hat y_{ij}", block=True)
    True
    """
    for pattern, spelling in _SPELLINGS:
        latex = re.sub(pattern, spelling, latex)
    markup = tex2mathml(latex, as_block=block)
    for pattern, repaired in _REPAIRS:
        markup = re.sub(pattern, repaired, markup, flags=re.DOTALL)
    return markup


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write an equation in a line."""
    translator.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write an equation of its own, with its number where it has one."""
    number = f'<span class="number">({node["number"]})</span>' if node.get("number") else ""
    translator.body.append(translator.starttag(node, "div", CLASS="equation"))
    translator.body.append(f'<div class="drawn">{mathml(node.astext(), block=True)}</div>{number}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Take the place of MathJax."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
