"""Compiling beforehand what engines and learners need, so that no first use waits: `mk.compile()`, `markovia compile`.

Each engine is asked tiny questions and each learner fits tiny data, in as many processes as there are processors; what they
compile stays on disk. Cost: about 180 seconds of processor for everything, once an installation; a few seconds where
the code is there already.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, did_you_mean
from markovia.inference.choosing.auto import load_kernels
from markovia.inference.choosing.kernel_loading import load_engines
from markovia.inference.engine import engine_names
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.threads import thread_count


def compile(  # noqa: A001 (it is mk.compile)
    what: str | Sequence[str] = "all", *, jobs: int | None = None, progress: bool | None = None
) -> float:
    """Compile what engines and learners need and keep it on disk; return the seconds it took.

    Nothing needs this: whatever is missing is compiled when it is first used. It is for places where every run is a first
    run (containers, continuous integration) and for those who would rather wait once.

    Parameters
    ----------
    what
        "all", or names: of engines (`mk.engines.engine_names()`) and of learners ("tables", "em", "fields", "crf",
        "sequences", "groups", "topics", "scores", "tests", "orders", "exact-search", "sparse-graphs", "changing-graphs",
        "lingam").
    jobs
        Processes; as many as there are processors by default.
    progress
        Whether to show a bar; by default on a terminal, once it takes long.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.compile("enumeration") >= 0.0  # needs no compiled code
    True
    """
    start = perf_counter()
    names = _names(what)
    jobs = min(len(names), thread_count() if jobs is None else jobs)
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, which compiling makes it do
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        for _ in task_results(_use, names, n_jobs=jobs, progress=progress, unit="part"):
            pass
    return perf_counter() - start


def _names(what: str | Sequence[str]) -> list[str]:
    known = [n for n in engine_names() if n != "auto"] + [*LEARNERS]
    if isinstance(what, str):
        if what == "all":
            return known
        what = [what]
    if not isinstance(what, Iterable):
        raise InvalidArgument(f"what to compile is 'all' or names, not {what!r}")
    names = list(what)
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise InvalidArgument(
                f"nothing to compile is called {name!r}{near}; there are {', '.join(known)}"
            )
    if not names:
        raise InvalidArgument("name at least one engine or learner to compile, or 'all'")
    return names


def _use(name: str) -> None:
    """Use an engine or a learner for a moment."""
    from markovia.kernels.compiled_code import preferred

    with warnings.catch_warnings(), preferred():
        warnings.simplefilter("ignore")
        if name == "junction-tree":
            load_kernels()
        elif name == "gaussian":
            _gaussian()
        elif name in LEARNERS:
            LEARNERS[name]()
        else:
            load_engines(name)


def _gaussian() -> None:
    from scipy.sparse import diags

    from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork

    chain = GaussianMarkovNetwork(diags([np.ones(399), np.full(400, 3.0), np.ones(399)], [-1, 0, 1]))
    chain.marginals(given={"x7": 1.0})
    chain.sample(1, given={"x7": 1.0}, seed=0)


def _bits(rows: int = 200, columns: int = 13) -> Any:
    return (np.cumsum(np.random.default_rng(0).normal(size=(rows, columns)), axis=1) > 0).astype(int)


def _columns() -> dict[str, list[Any]]:
    return {n: column.tolist() for n, column in zip("abc", _bits(40, 3).astype(object).T, strict=True)}


def _tables() -> None:
    import_module("markovia.kernels.counting").load()


def _em() -> None:
    from markovia.learning.incomplete.em import EM
    from markovia.models.graphical.bayesian_network import BayesianNetwork

    rng = np.random.default_rng(0)
    holes = {n: [None if rng.random() < 0.3 else cell for cell in column] for n, column in _columns().items()}
    network = BayesianNetwork("a->b; a->c; b->c", states=dict.fromkeys("abc", 2))
    network.fit(holes, missing=EM(max_iterations=3, seed=0, progress=False), prior="bdeu")
    network.impute(holes)


def _fields() -> None:
    from markovia.factors.tables.factor import Factor
    from markovia.factors.tables.variable import Variable
    from markovia.models.graphical.markov_network import MarkovNetwork

    a, b, c = (Variable(n, 2) for n in "abc")
    field = MarkovNetwork(factors=[Factor.of(pair, np.ones((2, 2))) for pair in ((a, b), (b, c), (a, c))])
    for method in ("pseudo-likelihood", "cd"):
        field.copy().fit(_columns(), method=method)
    seen = {n: column for n, column in _columns().items() if n != "b"}
    for method in ("pcd", "mean-field"):
        field.copy().fit(seen, latent="b", method=method, max_iterations=2)


def _crf() -> None:
    from markovia.models.crf.crf import CRF

    rng = np.random.default_rng(0)
    chain = [rng.normal(size=(4, 2)) for _ in range(3)]
    ring = [(x, [(0, 1), (1, 2), (2, 3), (0, 3)]) for x in chain]
    labels = [rng.integers(0, 2, 4) for _ in chain]
    CRF(max_iter=2, progress=False).fit(chain, labels).predict(chain)
    for how in ("exact", "loopy-bp", "mean-field", "pseudo-likelihood", "gibbs"):
        solver = "sgd" if how == "gibbs" else "lbfgs"
        crf = CRF(None, inference=how, solver=solver, max_iter=2, random_state=0, progress=False)  # type: ignore[arg-type]
        crf.fit(ring, labels).predict(ring)


def _sequences() -> None:
    from markovia.models.temporal.arima import ARIMA
    from markovia.models.temporal.context_free_grammar import ContextFreeGrammar
    from markovia.models.temporal.hmm import HMM
    from markovia.models.temporal.linear_state_space import LinearStateSpace

    hmm = HMM(2, max_iter=1, random_state=0, progress=False).fit(list(_bits(5, 4)))
    hmm.decode([[0, 1]])
    hmm.decode([[0, 1]], beam=1)
    hmm.k_best([[0, 1]], 2)
    hmm.sample_paths([[0, 1]], seed=0)
    numbers = np.random.default_rng(0).normal(size=(20, 2))
    HMM(2, emission="gaussian", max_iter=1, random_state=0, progress=False).fit(numbers)
    level = LinearStateSpace(1, 1, 1, 1, initial_cov=1).smooth(numbers[:, 0])
    level.mean, level.cov  # noqa: B018 (found when asked for)
    ARIMA((1, 0, 0), max_iter=1).fit(numbers[:, 0])
    grammar = ContextFreeGrammar("S -> S S | 'a' | S", max_iter=1).fit(["a a"])
    grammar.parse("a a")
    grammar.spans("a a")
    grammar.sample(seed=0)


def _groups() -> None:
    from markovia.models.mixtures.dirichlet_process import DirichletProcessMixture
    from markovia.models.mixtures.k_means import KMeans
    from markovia.models.mixtures.latent_features import LatentFeatures
    from markovia.models.mixtures.named_mixtures import GaussianMixture
    from markovia.models.mixtures.sum_product_network import SumProductNetwork
    from markovia.models.temporal.infinite_hmm import InfiniteHMM

    numbers = _numbers()
    for method in ("collapsed-gibbs", "algorithm-8"):
        DirichletProcessMixture(method=method, max_iter=3, random_state=0).fit(numbers).score_samples(numbers)
    GaussianMixture(2, max_iter=2, random_state=0).fit(numbers)
    KMeans(2, random_state=0).fit(numbers)
    for method in ("collapsed", "gibbs"):
        LatentFeatures(method=method, max_iter=3, n_init=1, random_state=0).fit(numbers)  # type: ignore[arg-type]
    InfiniteHMM("gaussian", max_iter=3, random_state=0).fit(numbers[:, 0])
    spn = SumProductNetwork(max_iter=1, random_state=0).fit(numbers)
    spn.marginals()
    spn.sample(seed=0)


def _topics() -> None:
    from markovia.models.topics.hdp import HDP
    from markovia.models.topics.hierarchical_lda import HierarchicalLDA
    from markovia.models.topics.hmm_lda import HMMLDA
    from markovia.models.topics.labelled import LabelledLDA
    from markovia.models.topics.lda import LDA
    from markovia.models.topics.plsi import PLSI

    texts = [["a", "b", "a", "c"], ["b", "c", "d", "d"]] * 4
    lda = LDA(2, max_iter=2).fit(texts)
    lda.transform(texts)
    lda.log_prob(texts, particles=1)
    lda.log_prob(texts, method="ep")
    for model in (
        LDA(2, method="uncollapsed", max_iter=2), LDA(2, method="vb", max_iter=2), HDP(2), HDP(2, method="franchise"),
        HDP(1, method="online"), HierarchicalLDA(2, max_iter=1, n_init=1), HMMLDA(2, 2, max_iter=1), PLSI(2, max_iter=2),
    ):  # fmt: skip
        model.fit(texts)
    LabelledLDA(max_iter=1).fit(texts, ["x", "y"] * 4)


def _learn(data: Any, *methods: str, **options: Any) -> None:
    from markovia.structure.learn import learn_structure

    for method in methods:
        learn_structure(data, method, progress=False, **options)


def _scores() -> None:
    import_module("markovia.kernels.structure.edge_steps").load()
    import_module("markovia.kernels.structure.family_scores").load()


def _tests() -> None:
    import_module("markovia.kernels.structure.table_tests").load()


def _orders() -> None:
    _learn(_bits(), "boss", seed=0)
    _learn(_bits(), "boss", seed=0, required=[("x0", "x1")])


def _exact_search() -> None:
    for algorithm in ("dynamic-programming", "a-star"):
        _learn(_bits(), "exact", algorithm=algorithm, max_parents=2)


def _sparse_graphs() -> None:
    _learn(_bits(columns=4), "ising")
    _learn(_numbers(), "graphical-lasso", "neighbourhood")


def _changing_graphs() -> None:
    _learn(_bits(columns=4), "kernel-weighted", times=np.arange(200.0))
    _learn(_bits(columns=4), "tesla", times=np.arange(200) // 100, tolerance=1e-2)


def _lingam() -> None:
    _learn(_numbers(), "direct-lingam")


def _markov_processes() -> None:
    from markovia.factors.covariances.algebra import Scaled, White
    from markovia.factors.covariances.radial import Matern32
    from markovia.learning.processes.state_space_evidence import StateSpaceEvidence

    rows = np.arange(9.0).reshape(-1, 1)
    covariance = (Scaled(1.0, Matern32()) + White(0.1)).started(rows, rows)
    method = StateSpaceEvidence(rows, rows)
    method.evidence(covariance)
    post = method.posterior(covariance)
    post.at(rows).cov()
    post.draws(1, seed=0)(rows + 0.5)


def _numbers() -> Any:
    return np.cumsum(np.random.default_rng(0).uniform(-1.0, 1.0, (200, 4)), axis=1)


LEARNERS: dict[str, Callable[[], None]] = {
    "tables": _tables,
    "em": _em,
    "fields": _fields,
    "crf": _crf,
    "sequences": _sequences,
    "groups": _groups,
    "topics": _topics,
    "scores": _scores,
    "tests": _tests,
    "orders": _orders,
    "exact-search": _exact_search,
    "sparse-graphs": _sparse_graphs,
    "changing-graphs": _changing_graphs,
    "lingam": _lingam,
    "markov-processes": _markov_processes,
}
"""What learners need, by name."""
