"""Settings of the documentation site: ``sphinx-build -W -n docs build/site``."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from air_recsys import __version__  # noqa: E402

project = "air_recsys"
author = "The air_recsys developers"
copyright = author
release = version = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "mathml",
    "docstrings",
    "reports",
    "story",
]
exclude_patterns = ["_*"]
html_math_renderer = "mathml"
nitpicky = True
# Single backticks in docstrings name a thing: a link where the reference has it, else code.
default_role = "py:obj"
# Types in signatures are linked where the reference has them; tests/docs checks the roles that the pages use.
nitpick_ignore_regex = [("py:obj|py:class", r".*"), ("py:exc", r"(?!air_recsys).*")]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
# Pages with the kernel "python3" run from top to bottom; an error ends the build.
nb_execution_mode = "auto"
nb_execution_in_temp = True
os.environ["TQDM_DISABLE"] = "1"  # in the kernels of the pages: a slow machine would add bars to what they show
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
highlight_language = "none"

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "air_recsys"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": [], "start": [], "changelog": []}
html_copy_source = False
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "air_recsys"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
