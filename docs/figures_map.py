"""The pictures of the page on MAP and image labelling, drawn by the programs in `examples/`."""

import importlib.util
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "examples"


def denoising() -> Any:
    """Show a noisy drawing, iterated conditional modes and the graph cut."""
    with redirect_stdout(io.StringIO()):
        return _example("denoising").denoising_figure()


def segmentation() -> Any:
    """Show a noisy picture divided into regions in three ways."""
    with redirect_stdout(io.StringIO()):
        return _example("segmentation").segmentation_figure()


def cutouts() -> Any:
    """Show an object cut out of a picture, and a montage of three."""
    with redirect_stdout(io.StringIO()):
        return _example("cutout_montage").cutout_montage_figure()


def _example(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


FIGURES: tuple[Callable[[], Any], ...] = (denoising, segmentation, cutouts)
