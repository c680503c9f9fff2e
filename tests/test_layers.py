"""The architecture: a layer imports only from layers above it, and importing markovia is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import markovia

ROOT = Path(markovia.__file__).parent
LAYERS = ["kernels", "graphs", "factors", "inference", "learning", "models", "causal"]
OUTSIDE = {"io": set(), "plotting": set(), "cli": {"io", "plotting"}, "studio": set()}
FOUNDATION = {"errors", "ports", "progress", "seeds"}
HEAVY = {"pandas", "matplotlib", "networkx", "scipy", "jax", "numba", "typer", "rich", "pgmpy", "pyagrum"}


def imported_modules(tree, top_level_only=False):
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import at line {node.lineno}"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def source_files():
    return sorted(p for p in ROOT.rglob("*.py"))


def allowed_for(layer):
    if layer in LAYERS:
        return set(LAYERS[: LAYERS.index(layer) + 1]) | FOUNDATION
    return set(LAYERS) | {layer} | OUTSIDE[layer] | FOUNDATION | {"engines"}


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_layer_imports_only_from_layers_above_it(path):
    parts = path.relative_to(ROOT).parts
    if len(parts) == 1:
        return  # the composition root, the foundation and the front doors
    layer = parts[0]
    assert layer in LAYERS or layer in OUTSIDE, f"unknown layer {layer}"
    allowed = allowed_for(layer)
    for module, line in imported_modules(ast.parse(path.read_text(encoding="utf-8"))):
        pieces = module.split(".")
        if pieces[0] == "markovia" and len(pieces) > 1 and (ROOT / pieces[1]).exists():
            assert pieces[1] in allowed, f"{path.name}:{line} in {layer}/ imports {module}"


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_are_imported_inside_functions(path):
    layer = path.relative_to(ROOT).parts[0]
    if layer == "cli":
        return
    for module, line in imported_modules(ast.parse(path.read_text(encoding="utf-8")), top_level_only=True):
        heavy = module.split(".")[0] in HEAVY or module.startswith("markovia.kernels")
        assert not heavy or layer == "kernels", f"{path.name}:{line} imports {module} at the top"


def test_no_file_lacks_a_subject():
    for path in source_files():
        assert path.stem not in {"utils", "helpers", "misc", "common"}, path


def test_importing_markovia_loads_no_heavy_library():
    code = (
        "import sys, markovia as mk; bn = mk.examples.sprinkler(); bn.query('rain', given={'wet': 'yes'});"
        "print(' '.join(sorted(m for m in sys.modules if '.' not in m)))"
    )
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )
    assert not loaded & HEAVY
    assert "numpy" in loaded


def test_every_public_name_resolves():
    for name in markovia.__all__:
        assert getattr(markovia, name) is not None
    assert set(dir(markovia)) >= {"BayesianNetwork", "load", "engines", "examples"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        markovia.nonsense  # noqa: B018
