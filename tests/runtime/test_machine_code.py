"""Machine code on disk is of this text of markovia, these versions and this processor, or it is not used."""

import shutil
from pathlib import Path

import pytest

from markovia.runtime import machine_code
from markovia.runtime.machine_code import ROOT, TRACE_NOTHING


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of markovia's text."""
    place = tmp_path_factory.mktemp("copy") / "markovia"
    return Path(shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns("__pycache__", "*.nb?", "static")))


TRACED = sorted({file.parent for file in ROOT.rglob("*.py") if "import jax" in file.read_text()})


@pytest.mark.parametrize("folder", TRACED, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_change_in_any_folder_that_jax_traces_is_compiled_again(copy, folder):
    file = sorted((copy / folder.relative_to(ROOT)).glob("*.py"))[-1]
    before = machine_code._sources.__wrapped__(copy)
    text = file.read_text()
    file.write_text(text.replace("return", "return ", 1) if "return" in text else text + "\n")
    assert machine_code._sources.__wrapped__(copy) != before


def test_where_the_text_lies_does_not_matter(tmp_path, copy):
    moved = shutil.copytree(copy, tmp_path / "elsewhere")
    assert machine_code._sources.__wrapped__(Path(moved)) == machine_code._sources.__wrapped__(copy)


def test_folders_that_are_left_out_know_nothing_of_jax():
    found = [f for name in TRACE_NOTHING for f in (ROOT / name).rglob("*.py") if "jax" in f.read_text()]
    assert not found
    assert {"inference", "factors", "learning", "models", "runtime"}.isdisjoint(TRACE_NOTHING)


@pytest.mark.parametrize("package", ["markovia", "jax", "jaxlib", "numpyro"])
def test_another_version_is_another_file(monkeypatch, package):
    key = ("name", "density", ())
    monkeypatch.setattr(machine_code, "_folder", lambda: Path("folder"))
    before = machine_code._file(key)
    said = machine_code.version
    monkeypatch.setattr(machine_code, "version", lambda p: "9.9" if p == package else said(p))
    monkeypatch.setattr(machine_code, "_machine", machine_code._machine.__wrapped__)
    assert machine_code._file(key) != before


def test_another_processor_is_another_file(monkeypatch):
    monkeypatch.setattr(
        machine_code, "version", lambda package: "1"
    )  # of metadata, which are read as text too
    before = machine_code._machine.__wrapped__()
    monkeypatch.setattr(Path, "read_text", lambda self, **_: "flags : sse2\n")
    assert machine_code._machine.__wrapped__() != before
