"""Settings of Sphinx; `python -m docs.build` makes the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import frontal

project = "frontal"
author = "the frontal developers"
copyright = "2026, the frontal developers"
version = release = frontal.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
]
exclude_patterns = ["**/.ipynb_checkpoints"]
default_role = "autolink"  # a link where `name` is one of ours, else emphasis
nitpicky = True
suppress_warnings = ["mystnb.unknown_mime_type"]

# pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_in_temp = True

# reference
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["torch"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"frontal {release}"
html_static_path = ["static"]
html_css_files = ["frontal.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "frontal"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
}
html_sidebars = {"index": [], "tutorial": [], "changelog": []}

linkcheck_timeout = 20
linkcheck_retries = 2

# names that docstrings mention, and that have no page here
nitpick_ignore_regex = [
    ("py:.*", r"(scipy|numpy|networkx|cupy|cupyx)\..*"),
    ("py:.*", r"frontal\.(machine|method|protocol|symbolic|factor|cpu|gpu\.(dense|sparse))\..*"),
    ("py:.*", r"frontal\.gpu\.dense\.batched|METHODS|analyses|patched"),
]
_NOT_CODE = re.compile(r"(``.*?``|`[^`]*`)")


def plain_bars(app, what, name, obj, options, lines: list[str]) -> None:
    """Escape bars in docstrings: |A| is a norm, not a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = _NOT_CODE.split(line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("autodoc-process-docstring", plain_bars, priority=400)  # before numpydoc
