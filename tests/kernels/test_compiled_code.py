"""Whether a kernel is in memory or on disk is asked of the kernel itself, and compiled code is as new as its sources."""

import ast
import os
import subprocess
import sys

import numpy as np
import pytest

from markovia.kernels import ROOMS, compiled_code, kernel

MODULES = sorted(
    ".".join(p.relative_to(compiled_code.ROOT.parents[1]).with_suffix("").parts)
    for p in compiled_code.ROOT.rglob("*.py")
    if p.name != "__init__.py"
)


def sources_by_syntax(module):
    """Return the kernel modules that a module imports, directly or not, read off its syntax tree."""
    seen, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in MODULES:
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(compiled_code._source(name).decode())):
            if isinstance(node, ast.ImportFrom):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        waiting += [
            m for m in MODULES if m.endswith("_records") and m.rpartition(".")[0] == name.rpartition(".")[0]
        ]
    return seen


@pytest.mark.parametrize("module", MODULES)
def test_all_sources_of_a_kernel_are_found(module):
    found = {}
    compiled_code._gather(module, found)
    assert {m for m in found if m in MODULES} == sources_by_syntax(module)


def test_a_change_in_an_imported_kernel_makes_compiled_code_stale_and_no_other_does(monkeypatch):
    module = "markovia.kernels.clique_trees.propagation"
    needed = sources_by_syntax(module) - {module}
    other = next(m for m in MODULES if m not in needed and m != module)
    before = compiled_code.digest(module)
    texts = {m: compiled_code._source(m) for m in MODULES}
    for changed, stale in [(next(iter(needed)), True), (module, True), (other, False)]:
        monkeypatch.setattr(
            compiled_code,
            "_source",
            lambda m, changed=changed: texts[m] + b"#" if m == changed else texts.get(m),
        )
        assert (compiled_code.digest.__wrapped__(module) != before) == stale, changed


def test_a_change_of_a_record_makes_the_kernels_that_take_it_stale(monkeypatch):
    module, texts = "markovia.kernels.sequences.kalman", {m: compiled_code._source(m) for m in MODULES}
    before = compiled_code.digest(module)
    changed = "markovia.kernels.sequences.kalman_records"
    monkeypatch.setattr(compiled_code, "_source", lambda m: texts[m] + b"#" if m == changed else texts.get(m))
    assert compiled_code.digest.__wrapped__(module) != before


def test_kernels_of_every_room_say_what_they_are():
    rooms = {m.split(".")[2] for m in MODULES if "\n@kernel" in compiled_code._source(m).decode()}
    assert rooms == set(ROOMS)


USED = """
import numpy as np, markovia as mk
from markovia.kernels.compiled_code import loaded
mk.learn_structure(np.random.default_rng(0).normal(size=(50, 3)), "graphical-lasso", progress=False)
from markovia.kernels.structure import graphical_lasso
homes = [f"{graphical_lasso.__name__}:{n}" for n, f in vars(graphical_lasso).items() if hasattr(f, "overloads")]
print(next(h for h in homes if loaded(h)))
"""
ASKED = """
import sys
from markovia.kernels.compiled_code import loaded, on_disk, worth_loading
print(loaded(sys.argv[1]), on_disk(sys.argv[1]), worth_loading(sys.argv[1], plain=1.0, load=0.5, compiling=2.0))
assert "numba" not in sys.modules
"""


def test_a_kernel_is_found_in_memory_and_by_the_next_process_on_disk(tmp_path):
    def said(code, *words, cache="used"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / cache)}
        return subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, env=environment
        ).stdout.split()

    (home,) = said(USED)
    assert said(ASKED, home) == ["False", "True", "True"]
    assert said(ASKED, home, cache="empty") == ["False", "False", "False"]


@pytest.mark.parametrize("known", [kernel.KNOWN, ((0, 0), (0, 0))], ids=["parts", "as Numba does by itself"])
def test_inner_functions_are_called_by_kernels_with_a_known_and_an_unknown_numba(monkeypatch, known):
    from numba import njit

    monkeypatch.setattr(kernel, "KNOWN", known)

    @kernel.inner
    def deepest(x, n):
        total = np.zeros(n)  # what is allocated inside is let go again
        for i in range(n):
            total[i] = x[i] / (i - 1)  # dividing by zero is no error
        return total

    @kernel.inner
    def middle(x):
        return deepest(x, len(x)) + 1.0

    @njit(error_model="numpy")
    def outer(x):
        return middle(x) + deepest(x, 2)[0]

    x = np.array([1.0, 2.0, 3.0])
    assert outer(x).tolist() == [-1.0, np.inf, 3.0]
