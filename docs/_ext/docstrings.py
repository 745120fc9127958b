"""What the docstrings are to the reference: which members are shown, bars that mean norms, and sources."""

from __future__ import annotations

import re
from typing import Any

from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx

_QUOTED = re.compile(r"(``.*?``|`[^`]*`)")
_SOURCE = re.compile(r"Sources?( of the \w+)?: ")
# What the reference shows of models and of what they return, besides fitted attributes.
_CALLED = """
auto for_completion for_interactions for_likes for_ratings fit partial_fit forget fold_in learn_lists complete
predict predict_interval predict_proba predict_table uncertainty recommend new_interactions held_out
explain feature_effects similar_items similar_users score memory_plan get_params set_params save load to_faiss
queries search parts prose to_dict total others likes dislikes users items edges close
"""
PEOPLE_CALL = frozenset(_CALLED.split())
_LEARNED_INSIDE = {"carried_", "carried_errors_", "factors_", "knows_deviations_", "open_scores_", "transform_graphs_"}
_OF_DATA = "alike among checked divided on_scale over taking strongest_first times_to_csr without_ratings"
_INSIDE_DATA = frozenset(_OF_DATA.split())


def skip(app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: object) -> bool | None:
    """Return True for what a class has from scikit-learn or a host, aliases of fields and internals; else None."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(function, "__module__", None) or "air_recsys"
    alias = (getattr(member, "__doc__", None) or "").startswith("Alias for field number")
    inside = what == "class" and not app.env.docname.startswith("making/") and is_inside(name, module)
    return True if alias or inside or not module.startswith("air_recsys") else None


def is_inside(name: str, module: str) -> bool:
    """Return whether nobody but the library calls a member of a class, defined in a module.

    Examples
    --------
    >>> [is_inside(name, "air_recsys.models.air") for name in ("fit", "engine", "item_graph_", "factors_")]
    [False, True, False, True]
    """
    if module.startswith("air_recsys.models."):
        return name in _LEARNED_INSIDE or not (name in PEOPLE_CALL or name.endswith("_"))
    return name in _INSIDE_DATA


def escape_bars(lines: list[str]) -> list[str]:
    r"""Return a docstring in which `|x|^2` is a norm and no substitution of reStructuredText.

    Examples
    --------
    >>> escape_bars(["The norm |x|^2, ``|y|``."])
    ['The norm \\|x\\|^2, ``|y|``.']
    """
    escaped, equation = [], None  # the indent of the directive that the line is in
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and equation is not None and indent <= equation:
            equation = None
        if line.lstrip().startswith(".. math::"):
            equation = indent
        if equation is not None or line.lstrip().startswith((">>>", "...")):
            escaped.append(line)
        else:
            parts = _QUOTED.split(line)
            escaped.append("".join(part if n % 2 else part.replace("|", r"\|") for n, part in enumerate(parts)))
    return escaped


def head_source(lines: list[str]) -> list[str]:
    """Return a docstring whose last paragraph "Source: ..." is a section, and not one more parameter.

    Examples
    --------
    >>> head_source(["Parameters", "----------", "k : int", "", "Source: a paper."])[-4:]
    ['References', '----------', '', 'Source: a paper.']
    """
    headed = []
    for line in lines:
        if _SOURCE.match(line):
            headed += ["References", "----------", ""]
        headed.append(line)
    return headed


def rewrite(app: Sphinx, what: str, name: str, member: object, options: object, lines: list[str]) -> None:
    """Make a docstring what reStructuredText and numpydoc read as it is meant, in place."""
    lines[:] = escape_bars(lines)
    if what != "module":  # a module's has no parameters
        lines[:] = head_source(lines)


def keep_attributes() -> None:
    """Let numpydoc show what a class says of an attribute, and not the first line of the property behind it."""
    process = SphinxDocString._process_param

    def keep(self: SphinxDocString, name: str, text: list[str], summary: bool) -> Any:
        return process(self, name, text, summary and not text)

    SphinxDocString._process_param = keep


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to autodoc; before numpydoc, which makes directives of sections."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    keep_attributes()
    return {"parallel_read_safe": True, "parallel_write_safe": True}
