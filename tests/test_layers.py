"""The architecture: layers and their rooms import in one order, without circles, and importing markovia is light."""

import ast
import pydoc
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

import markovia
from markovia import plotting
from markovia.runtime import ports
from places import PROJECT

ROOT = Path(markovia.__file__).parent
LAYERS = [
    ("errors",), ("runtime",), ("kernels",), ("graphs",), ("factors",), ("optimise",), ("inference",), ("data",),
    ("learning",), ("structure",), ("models",), ("causal", "control", "forecasting"), ("io", "plotting", "studio"), ("cli",),
]  # fmt: skip
"""A layer imports only from those before it; layers that share a line do not know each other."""
ROOMS = {
    "kernels": [("",), (
        "clique_trees", "flat_graphs", "messages", "maximising", "sampling", "incomplete", "fields", "structure",
        "sparse_matrices", "sequences", "collapsed", "cuda",
    )],
    "factors": [
        ("distributions",), ("processes", "networks"), ("tables",), ("quantities",),
        ("local_models", "gaussian", "functions"), ("potentials", "covariances", "decisions"), ("",),
    ],
    "inference": [
        ("",),
        ("exact", "flat_graphs"),
        ("sliced",),
        ("message_passing", "weighted_draws", "map_bounds", "local_search", "choosing", "questions"),
        ("sequences", "collapsed", "circuits"),
        ("decisions/diagrams", "decisions/processes"),
        ("decisions/beliefs", "decisions/numbers"),
        ("variational", "markov_chains", "theory", "gaussian"),
        ("densities/program",),
        ("densities/draws",),
        ("densities/engines",),
        ("densities/closed_forms", "particles"),
    ],
    "learning": [
        ("association", "regression", "conditional_fields"),
        ("tables",), ("incomplete", "prediction"), ("components", "fields"), ("gaussian", "sequences"),
        ("latent", "neural", "processes"), ("control",), ("",),
    ],
    "structure": [
        ("task",),
        ("scores", "ci_tests", "undirected"),
        ("", "trees", "dag_search", "classes_and_orders", "constraint", "functional", "changing"),
        ("exact", "incomplete", "confidence"),
    ],
    "graphs": [("kinds",), ("separation", "triangulation"), ("comparison", "causal"), ("",)],
    "data": [("tables",), ("sequences",), ("text",), ("",)],
    "causal": [
        ("",), ("identification", "counterfactuals"), ("estimation/adjustment",), ("estimation",),
        ("estimation/designs", "estimation/checks"),
    ],
    "models": [
        ("graphical",), ("temporal/hidden_states",), ("temporal", "crf", "classifiers"), ("mixtures",),
        ("gaussian", "bayesopt"),
        ("topics",), ("deep",), ("gallery",), ("",),
    ],
    "studio": [("documents",), ("jobs", "sharing", "http"), ("",)],
    "cli": [("terminal",), ("",)],
}  # fmt: skip
"""The rooms of a layer, in the order in which they may import each other; "" is the layer's own folder."""
FRONT_DOORS = {
    "__init__", "__main__", "ci_tests", "engines", "exponential", "monte_carlo", "scores", "variational",
    "diagnostics", "networks", "objectives", "deep", "flows", "guides", "covariances", "bayesopt", "gp",
    "local", "results", "distributions", "processes",
    "series", "crf", "topics", "mixtures", "classifiers", "regression",
}  # fmt: skip
HEAVY = {
    "pandas", "matplotlib", "networkx", "scipy", "jax", "cupy", "numpyro", "optax", "arviz", "numba", "typer", "rich",
    "pgmpy", "pyagrum", "starlette", "uvicorn",
}  # fmt: skip


def source_files():
    return sorted(ROOT.rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(p): p for p in source_files()}


class Source:
    """What the tests need to know of a file, read in one walk; its syntax tree would slow down all tests that follow."""

    def __init__(self, path):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = {id(node) for node in tree.body}
        self.imports, self.at_the_top, self.for_types, self.homes, self.ports = [], [], set(), set(), set()
        self.classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found = list(_imported(node, path))
                self.imports += found
                if id(node) in top:
                    self.at_the_top += found
            elif isinstance(node, ast.Call) and _is_a_port(node.func):
                self.ports.add(node.args[0].value)
            elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
                self.for_types.update(range(node.lineno, node.end_lineno + 1))
            elif (
                isinstance(node, ast.Constant)
                and str(node.value).startswith("markovia.")
                and node.value.partition(":")[2].isidentifier()
            ):
                self.homes.add(node.value)


def _is_a_port(called):
    """Return whether it is `ports.call`, `ports.draw` or `ports.resolve` that is called."""
    return (
        getattr(called, "attr", "") in ("call", "draw", "resolve")
        and getattr(called.value, "id", "") == "ports"
    )


def _imported(node, path):
    """Yield (module, name in it or None, line) of every import; modules of ours are files."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, None, node.lineno) for alias in node.names)
        return
    assert node.level == 0, f"relative import at {path.name}:{node.lineno}"
    for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        yield (inner, None, node.lineno) if inner in MODULES else (node.module, alias.name, node.lineno)


@cache
def source(path):
    return Source(path)


def room_of(module):
    """Return (layer, room) of a module of ours."""
    parts = module.split(".")[1:]
    is_package = MODULES[module].name == "__init__.py"
    inside = parts if is_package else parts[:-1]
    if not inside:
        return (parts[0] if parts else "__init__"), ""
    known = set(chain.from_iterable(ROOMS.get(inside[0], ())))
    nested = "/".join(inside[1:3])
    return inside[0], (nested if nested in known else inside[1] if len(inside) > 1 else "")


def position(groups, name):
    found = [k for k, group in enumerate(groups) if name in group]
    assert found, f"no place is known for {name!r}"
    return found[0]


def imports_of_ours():
    """Yield (file, its module, the module it imports, the name in that or None, where) for every import of ours.

    What is imported for the eyes of a type checker alone counts between layers, not between the rooms of one.
    """
    for path in source_files():
        for module, name, line in source(path).imports:
            same_layer = module in MODULES and room_of(module)[0] == room_of(module_of(path))[0]
            if module.split(".")[0] == "markovia" and not (same_layer and line in source(path).for_types):
                yield (
                    path,
                    module_of(path),
                    module,
                    name,
                    f"{path.relative_to(ROOT)}:{line} imports {module} {name or ''}",
                )


def test_layers_and_rooms_import_only_from_those_before_them():
    wrong = []
    for _, here, module, _, where in imports_of_ours():
        (layer, room), (there, other) = room_of(here), room_of(module)
        if (
            layer in FRONT_DOORS
            or there == "__init__"
            or (there in ("engines", "distributions", "covariances") and layer in ("cli", "io", "studio"))
        ):
            continue
        if there != layer:
            fine = position(LAYERS, there) < position(LAYERS, layer)
        elif room != other and layer in ROOMS:
            fine = position(ROOMS[layer], other) < position(ROOMS[layer], room)
        else:
            fine = True
        if not fine:
            wrong.append(where)
    assert not wrong


def tables_of_contributing():
    """Return what CONTRIBUTING has to say: the folders of the layer table in their order, and the table of rooms."""
    there = [[folder for folder in layer if (ROOT / folder).is_dir()] for layer in LAYERS]
    folders = [", ".join(f"`{folder}/`" for folder in layer) for layer in there if layer]
    rows = [
        f"| {layer} | {' < '.join(', '.join(room or 'its own files' for room in group) for group in groups)} |"
        for layer, groups in sorted(ROOMS.items(), key=lambda item: position(LAYERS, item[0]))
    ]
    return folders, "\n".join(["| layer | rooms |", "|---|---|", *rows])


def test_contributing_has_the_layers_and_rooms_in_their_order():
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders, rooms = tables_of_contributing()
    layers = text.partition("## Layers")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (`[^|]*/`) \|", layers, re.MULTILINE) == folders
    assert rooms in layers


def test_every_room_is_a_folder_and_every_folder_has_a_room():
    for layer, groups in ROOMS.items():
        listed = {room for room in chain.from_iterable(groups) if room}
        assert not [room for room in listed if not (ROOT / layer / room).is_dir()]
        folders = {f.name for f in (ROOT / layer).iterdir() if (f / "__init__.py").exists()}
        assert folders <= {room.split("/")[0] for room in listed}


def test_rooms_have_no_import_circles():
    arrows = nx.DiGraph()
    for module, path in MODULES.items():
        for other, _, line in source(path).imports:
            if (
                other in MODULES
                and line not in source(path).for_types
                and room_of(other) != room_of(module)
                and room_of(module)[0] not in FRONT_DOORS
            ):
                arrows.add_edge(room_of(module), room_of(other))
    assert nx.is_directed_acyclic_graph(arrows), nx.find_cycle(arrows)


def test_no_file_imports_itself_through_others_even_inside_functions():
    arrows = nx.DiGraph()
    for module, path in MODULES.items():
        kept = source(path)
        arrows.add_edges_from(
            (module, o) for o, _, line in kept.imports if o in MODULES and line not in kept.for_types
        )
    assert nx.is_directed_acyclic_graph(arrows), nx.find_cycle(arrows)


def test_nothing_private_is_imported_across_packages():
    wrong = []
    for path, here, module, name, where in imports_of_ours():
        home = here if path.name == "__init__.py" else here.rpartition(".")[0]
        package, _, last = module.rpartition(".")
        private = name is not None and name.startswith("_") and not name.startswith("__") and package != home
        if private or (last.startswith("_") and package != home and not home.startswith(f"{package}.")):
            wrong.append(where)
    assert not wrong


def test_every_port_that_is_called_leads_to_a_function():
    called = set().union(*(source(p).ports for p in source_files()))
    assert len(called) > 50
    assert [port for port in called if not callable(ports.resolve(port))] == []
    assert [
        p
        for p in called
        if p.startswith("plot-") and f"plot_{p[5:].replace('-', '_')}" not in plotting.__all__
    ] == []
    unused = {port for port in ports._targets if not any(fnmatch(p, port) for p in called)}
    assert not unused


def test_every_registry_string_resolves():
    found = set().union(*(source(p).homes for p in source_files()))
    assert len(found) > 80
    for home in found:
        module, _, name = home.partition(":")
        assert hasattr(import_module(module), name), home


def test_benchmarks_and_examples_import_what_is_there():
    wrong = []
    for path in chain(*((PROJECT / folder).rglob("*.py") for folder in ("benchmarks", "examples", "docs"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "markovia":
                wrong += [
                    f"{path.name}: {node.module} {a.name}"
                    for a in node.names
                    if f"{node.module}.{a.name}" not in MODULES
                    and not (node.module in MODULES and hasattr(import_module(node.module), a.name))
                ]
    assert not wrong


def test_presets_of_deep_models_hold_no_mathematics():
    wrong = [
        f"{path.name}:{line} imports {module} {name}"
        for path in sorted((ROOT / "models" / "deep").glob("*.py"))
        for module, name, line in source(path).imports
        if {module.split(".")[0], name} & {"jax", "jnp", "optax", "numpyro"}
    ]
    assert not wrong


def test_heavy_libraries_are_imported_inside_functions():
    wrong = []
    for path in source_files():
        if path.relative_to(ROOT).parts[0] in ("cli", "kernels"):
            continue
        for module, _, line in source(path).at_the_top:
            compiled = module.startswith("markovia.kernels.") and not module.endswith(
                (".compiled_code", ".flat_graph", ".plain_code", ".program_sections", "_records")
            )
            if module.split(".")[0] in HEAVY or compiled:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module} at the top")
    assert not wrong


WIRE = {
    f"markovia.studio.{room}"
    for room in (
        "documents.messages",
        "documents.decision_messages",
        "documents.edit_messages",
        "jobs.orders",
        "jobs.tables",
    )
}
"""Messages of the studio: their classes are the words of the page, whatever the library calls such a thing."""
IN_SEVERAL_DOORS = {
    "BDeu", "Dirichlet", "Estimate", "Gaussian", "JunctionTree", "Problem", "Sensitivity", "Study", "Sum", "Product",
    "Bernoulli", "Categorical", "Multinomial", "Poisson", "StudentT",
}  # fmt: skip
"""Public names that mean what the door says: a prior and a score, a distribution and an engine, a graph and an engine."""


def test_no_class_name_stands_in_two_files():
    homes = {}
    for module, path in MODULES.items():
        for name in source(path).classes if module not in WIRE else ():
            homes.setdefault(name, []).append(module)
    several = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {n: m for n, m in several.items() if n not in IN_SEVERAL_DOORS} == {}
    assert set(several) == IN_SEVERAL_DOORS  # nothing is excused that is not there


def test_no_file_lacks_a_subject_and_no_folder_is_crowded():
    for path in source_files():
        assert path.stem not in {"utils", "helpers", "misc", "common"}, path
    folders = {p.parent for p in source_files()}
    assert max(len(list(folder.glob("*.py"))) for folder in folders) <= 30


def test_tests_lie_where_the_code_they_test_lies():
    here = Path(__file__).parent
    for path in here.rglob("test_*.py"):
        folder = path.parent.relative_to(here)
        assert (ROOT / folder).is_dir(), path


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


def test_front_doors_load_only_what_is_asked_of_them():
    doors = [stub.stem for stub in stubs() if stub.parent == ROOT and stub.stem != "__init__"]
    assert {"engines", "scores", "local", "results"} <= set(doors)
    code = (
        f"import sys, markovia as mk; before = set(sys.modules); [getattr(mk, door) for door in {doors}]; "
        "print(len(set(sys.modules) - before)); mk.engines.Gibbs; "
        "print('markovia.structure' in sys.modules, 'jax' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert said == [str(len(doors)), "False", "False"]


def stubs():
    return sorted(ROOT.rglob("*.pyi"))


@pytest.mark.parametrize("stub", stubs(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_public_name_resolves(stub):
    package = import_module(module_of(stub.with_suffix(".py")))
    names = chain.from_iterable(
        n.names for n in ast.parse(stub.read_text()).body if isinstance(n, ast.ImportFrom)
    )
    listed = [alias.asname for alias in names]
    assert listed
    assert sorted(package.__all__) == sorted(listed)
    for name in listed:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_a_misspelt_public_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'BayesianNetwork'"):
        markovia.BayesNetwork  # noqa: B018


@pytest.mark.parametrize(
    "home", ["local.NoisyOr", "errors.TooLarge", "results.Posterior", "graphs.DAG", "io.from_pgmpy"]
)
def test_a_name_that_lives_in_a_module_of_markovia_is_answered_with_that_module(home):
    with pytest.raises(AttributeError, match=f"it is markovia.{home}$"):
        getattr(markovia, home.partition(".")[2])


def test_a_model_behind_the_door_of_its_family_answers_at_the_top_too_though_unlisted():
    assert markovia.StructuralSeries is markovia.series.StructuralSeries
    assert markovia.GridCRF is markovia.crf.GridCRF
    assert not {"StructuralSeries", "GridCRF"} & {*dir(markovia), *markovia.__all__}


def test_help_on_the_package_fits_on_a_few_screens_and_names_every_public_name():
    text = pydoc.plain(pydoc.render_doc(markovia))
    assert len(text.splitlines()) < 145
    described = text.partition("PACKAGE CONTENTS")[0]
    assert not [name for name in markovia.__all__ if not re.search(rf"\b{name}\b", described)]


def test_the_top_of_the_package_holds_only_what_is_typed_first():
    assert (
        sum(not isinstance(getattr(markovia, name), ModuleType) for name in markovia.__all__) < 70
    )  # doors aside
    for name in markovia.__all__:
        value = getattr(markovia, name)
        assert not (isinstance(value, type) and issubclass(value, Exception)) or name == "MarkoviaError"


def test_no_pattern_has_a_possessive_group():
    # Python before 3.11.5, which Debian 12 has, matches them wrongly; of single characters they are right
    for path in ROOT.rglob("*.py"):
        assert not re.search(r"\)(\*\+|\+\+|\?\+)", path.read_text("utf-8")), path
