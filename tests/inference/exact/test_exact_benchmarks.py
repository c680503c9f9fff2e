"""Exact engines on models nobody here wrote: 21 real networks against pyAgrum, UAI instances against their solutions.

The folder is the one `MARKOVIA_BENCHMARKS` names; without it everything here is skipped. An engine that says that a
problem is too large fails, unless the problem is one of the large ones and the machine has too little memory for these.
"""

import math
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import markovia as mk
from exact_checks import EXACT
from markovia.io.uai_results import read_evid, read_map, read_mar, read_pr
from markovia.runtime.memory_budget import default_budget
from places import BENCHMARKS

DATA = BENCHMARKS
UNLISTED = [name for name in EXACT if name != "enumeration"]
# conditioning trades memory, of which these models need little, for time
TREES = [name for name in UNLISTED if name != "conditioning"]
COMPILED = [name for name in TREES if name != "variable-elimination"]

TINY = ["asia", "cancer", "child", "earthquake", "sachs", "survey"]
SMALL = ["alarm", "andes", "hailfinder", "hepar2", "insurance", "win95pts"]
MEDIUM = ["barley", "diabetes", "mildew", "munin", "pathfinder", "pigs", "water"]
LARGE = ["munin1"]
TOO_LARGE_FOR_THE_PEER = "link"

# by the size of the tables that min-fill leads to: up to 2e7 entries, and up to 3e9
QUICK_UAI = [
    "Alchemy_11", "Pedigree_11", "Pedigree_13", "Promedus_15", "Promedus_27", "Promedus_31", "Segmentation_11",
    "Segmentation_13", "Segmentation_15",
]  # fmt: skip
SLOW_UAI = [
    "CSP_11", "CSP_13", "DBN_11", "DBN_13", "DBN_15", "Grids_11", "Grids_13", "Grids_15", "Grids_17",
    "ObjectDetection_11", "ObjectDetection_21", "ObjectDetection_31", "ObjectDetection_41", "ObjectDetection_51",
    "ObjectDetection_61", "Promedus_11", "Promedus_19", "Promedus_23",
]  # fmt: skip
TABLES_OF_SLOW_TESTS = 8 * 3e9
MAP_UAI = ["Segmentation_13", "Segmentation_19"]

pytestmark = pytest.mark.skipif(not (DATA / "bif").is_dir(), reason="the benchmark models are not here")


@pytest.fixture
def memory():
    """Let only one of the tests that need gigabytes run at a time, whatever the number of workers."""
    fcntl = pytest.importorskip("fcntl")
    with open(Path(tempfile.gettempdir()) / "markovia-large-tests.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def fitting(request):
    """Skip what is refused as too large where a slow test finds less memory free than its tables take."""
    try:
        yield
    except mk.errors.TooLarge as error:
        if request.node.get_closest_marker("slow") is None or default_budget() > TABLES_OF_SLOW_TESTS:
            raise
        pytest.skip(str(error))


# -- the Bayesian Network Repository --------------------------------------------------------------------------------


def load_network(name):
    """A network of the repository with rows that sum to one in double precision, not only to six digits.

    Otherwise the probability of evidence depends on whether a node that nobody asks about is summed out or dropped.
    """
    bn = mk.load(DATA / "bif" / f"{name}.bif.gz")
    exact = []
    for n in bn.variables:
        table = bn[n]
        rows = table.values / table.values.sum(axis=-1, keepdims=True)
        exact.append(mk.local.ConditionalTable.of(table.variable, table.parents, rows))
    return mk.BayesianNetwork.from_conditionals(exact, name=name)


def three_leaves(bn, seed=0):
    """Findings at up to three leaves, spread over the network, that one row drawn from it shows together."""
    leaves = [n for n in bn.variables if not bn.children(n)]
    chosen = leaves[:: max(1, len(leaves) // 3)][:3]
    row = bn.sample(1, seed=seed).iloc[0]
    return {n: row[n] for n in chosen}


def peer_answers(bn, given, pairs=()):
    """Marginals, pairwise joints and the log probability of the evidence by pyAgrum's lazy propagation."""
    gum = pytest.importorskip("pyagrum")
    theirs = mk.io.to_pyagrum(bn)
    inference = gum.LazyPropagation(theirs)
    codes = {n: bn.states(n).index(s) for n, s in given.items()}
    inference.setEvidence(codes)
    inference.makeInference()
    marginals = {n: np.array(inference.posterior(n).toarray()) for n in bn.variables}
    log_evidence = math.log(inference.evidenceProbability())
    joints = {}
    for pair in pairs:
        asked = gum.LazyPropagation(theirs)
        asked.setEvidence(codes)
        asked.addJointTarget(set(pair))
        tensor = asked.jointPosterior(set(pair))
        table = np.array(tensor.toarray())
        joints[pair] = table if tuple(reversed(tensor.names)) == pair else table.T
    return marginals, joints, log_evidence


def check_network(request, name, engines, pairs=0):
    bn = load_network(name)
    for given in ({}, three_leaves(bn)):
        free = [n for n in bn.variables if n not in given]
        rng = np.random.default_rng(0)
        asked = [tuple(str(n) for n in rng.choice(free, 2, replace=False)) for _ in range(pairs)]
        marginals, joints, log_evidence = peer_answers(bn, given, asked)
        for engine in engines:
            with fitting(request):
                found = bn.marginals(given=given, engine=engine)
            assert list(found) == free
            for n in free:
                np.testing.assert_allclose(
                    found[n].values, marginals[n], rtol=0, atol=1e-8, err_msg=f"{n} by {engine}"
                )
            assert bn.log_evidence(given=given, engine=engine) == pytest.approx(log_evidence, abs=1e-8)
            for pair, table in joints.items():
                joint = bn.query(list(pair), given=given, engine=engine)
                np.testing.assert_allclose(
                    joint.values, table, rtol=0, atol=1e-8, err_msg=f"{pair} by {engine}"
                )


@pytest.mark.parametrize("name", TINY)
def test_tiny_networks_agree_with_pyagrum(request, name):
    check_network(request, name, UNLISTED, pairs=3)


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_agree_with_pyagrum(request, name):
    check_network(request, name, TREES, pairs=3)


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", MEDIUM)
def test_larger_networks_agree_with_pyagrum(request, name):
    check_network(request, name, TREES)


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", LARGE)
def test_networks_that_take_pyagrum_a_minute_agree_with_it(request, name):
    check_network(request, name, COMPILED)


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("engine", COMPILED)
def test_link_agrees_with_pyagrum_on_the_parts_that_it_can_do(request, engine):
    """pyAgrum does not solve the whole network; it does solve what single answers depend on, for some targets."""
    bn = load_network(TOO_LARGE_FOR_THE_PEER)
    with fitting(request):
        found = bn.marginals(engine=engine)
    assert list(found) == bn.variables
    compared = 0
    for target in bn.variables[::11]:
        part = bn.relevant(target)
        if len(part) > 150:
            continue
        marginals, _, _ = peer_answers(part, {})
        for n in part.variables:
            np.testing.assert_allclose(found[n].values, marginals[n], rtol=0, atol=1e-8, err_msg=n)
        compared += len(part)
    assert compared > 200
    for posterior in found.values():
        assert posterior.values.sum() == pytest.approx(1.0, abs=1e-12)


# -- the UAI 2014 competition ---------------------------------------------------------------------------------------


def load_instance(name, task):
    home = next(f for f in (task, "MAR", "PR") if (DATA / "uai" / f / f"{name}.uai.gz").exists())
    (evidence,) = read_evid((DATA / "uai" / home / f"{name}.uai.evid").read_text())
    return mk.load(DATA / "uai" / home / f"{name}.uai.gz"), evidence


def check_partition_function(request, name, engine):
    model, evidence = load_instance(name, "PR")
    text = (DATA / "uai" / "PR" / f"{name}.uai.PR").read_text()
    published = read_pr(text).log10
    with fitting(request):
        found = model.log_partition(given=evidence, engine=engine) / math.log(10)
    # six digits are published, or twelve
    digits = len(text.split()[-1].lstrip("-").replace(".", ""))
    assert found == pytest.approx(published, abs=0, rel=3.5e-6 if digits <= 6 else 1e-10)


def check_published_marginals(request, name, engine):
    model, evidence = load_instance(name, "MAR")
    published = read_mar((DATA / "uai" / "MAR" / f"{name}.uai.MAR").read_text())
    with fitting(request):
        found = model.marginals(given=evidence, engine=engine)
    assert len(found) == len(model) - len(evidence)
    for n, p in zip(model.variables, published, strict=True):
        if n not in evidence:
            np.testing.assert_allclose(found[n].values, p, rtol=0, atol=1.1e-6, err_msg=n)


@pytest.mark.parametrize("name", QUICK_UAI)
@pytest.mark.parametrize("engine", TREES)
def test_partition_functions_are_the_published_ones(request, engine, name):
    check_partition_function(request, name, engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK_UAI)
@pytest.mark.parametrize("engine", TREES)
def test_marginals_are_the_published_ones(request, engine, name):
    check_published_marginals(request, name, engine)


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", [*SLOW_UAI, "c880.isc.cnf"])
@pytest.mark.parametrize("engine", COMPILED)
def test_partition_functions_of_larger_instances_are_the_published_ones(request, engine, name):
    check_partition_function(request, name, engine)


@pytest.mark.slow
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", SLOW_UAI)
@pytest.mark.parametrize("engine", COMPILED)
def test_marginals_of_larger_instances_are_the_published_ones(request, engine, name):
    check_published_marginals(request, name, engine)


@pytest.mark.parametrize("name", MAP_UAI)
@pytest.mark.parametrize("engine", TREES)
def test_the_best_configuration_is_at_least_as_good_as_the_best_known_one(engine, name):
    model, evidence = load_instance(name, "MAP")
    known = read_map((DATA / "uai" / "MAP" / f"{name}.uai.MAP").read_text())
    best = model.map(given=evidence, engine=engine)
    found = {**evidence, **best}
    score = log_weight(model, found)
    assert score >= log_weight(model, dict(zip(model.variables, known, strict=True))) - 1e-6
    assert best.log_prob + model.log_partition(engine=engine) == pytest.approx(score, rel=1e-10)


def log_weight(model, states):
    return sum(math.log(f.values[tuple(states[n] for n in f.names)]) for f in model.factors)
