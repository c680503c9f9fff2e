"""Sphinx configuration: Markdown pages, API reference from docstrings, figures drawn at build time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import markovia  # noqa: E402
from markovia.factors.tables.variable import State  # noqa: E402

project = "markovia"
author = "The markovia developers"
copyright = "the markovia developers"
version = release = markovia.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"markovia {release}"
html_static_path: list[str] = []

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# docstrings mark code with single backticks; where the text names a documented object it becomes a link
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_rtype = False
python_maximum_signature_line_length = 88

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


ALIASES = {
    stringify_annotation(alias, "smart"): name
    for name, alias in {
        "ArrayLike": ArrayLike,
        "Array": NDArray[np.float64],
        "Codes": NDArray[np.int64],
        "State": State,
    }.items()
}


def draw_figures(_: Sphinx) -> None:
    """Draw the pictures of the guide before its pages are read."""
    from figures import draw_all

    draw_all(HERE / "_build" / "figures")


def show_indented_as_written(_: Sphinx, what: str, __: str, ___: Any, ____: Any, lines: list[str]) -> None:
    """Turn the indented blocks of module docstrings (formulas, sample files) into literal blocks."""
    if what != "module":
        return
    for i in range(len(lines) - 1, 0, -1):
        if lines[i].startswith("    ") and not lines[i - 1].strip() and not lines[i - 2].startswith("    "):
            lines[i:i] = ["::", ""]


def keep_colons(_: Sphinx, what: str, __: str, ___: Any, ____: Any, lines: list[str]) -> None:
    """Keep napoleon from reading the first half of a property's sentence as its type."""
    if what in ("attribute", "property"):
        # an empty comment: napoleon looks for "type: text" in the first line only
        lines[0:0] = ["..", ""]


def skip_routing(_: Sphinx, __: str, name: str, ___: Any, ____: bool, _____: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for its metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def name_types(
    _: Sphinx, __: str, ___: str, ____: Any, _____: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Call types by the names the sources use; Python has replaced these aliases by what they stand for."""
    for written, name in ALIASES.items():
        signature = signature and signature.replace(written, name)
        returns = returns and returns.replace(written, name)
    return signature, returns


def setup(app: Sphinx) -> None:
    """Register the drawing step and the reading of docstrings and signatures."""
    app.connect("builder-inited", draw_figures)
    app.connect("autodoc-process-docstring", show_indented_as_written)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-signature", name_types)
