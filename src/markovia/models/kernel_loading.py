"""Compiling the kernels of learning beforehand, by tiny fits of each kind.

Counting is loaded with the junction tree (`markovia.engines.load_kernels`); here are expectation-maximisation, undirected
models, conditional random fields and structure learning. Cost: a minute or two the first time, seconds
once the code is on disk.
"""

import warnings

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.models.crf.crf import CRF
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork


def load_learning() -> None:
    """Fit tiny models in every way that has compiled code of its own."""
    from markovia.kernels.counting import load
    from markovia.learning.incomplete.em import EM

    load()  # type: ignore[no-untyped-call]
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (40, 3)).astype(object)
    rows = {n: table[:, k].tolist() for k, n in enumerate("abc")}
    holes = {n: [None if rng.random() < 0.3 else cell for cell in column] for n, column in rows.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = BayesianNetwork("a->b; a->c; b->c", states=dict.fromkeys("abc", 2))
        network.fit(holes, missing=EM(max_iterations=3, seed=0, progress=False), prior="bdeu")
        network.impute(holes)
        a, b, c = (Variable(n, 2) for n in "abc")
        field = MarkovNetwork(factors=[Factor.of(pair, np.ones((2, 2))) for pair in ((a, b), (b, c), (a, c))])
        for method in ("pseudo-likelihood", "cd"):
            field.copy().fit(rows, method=method)
        chain = [rng.normal(size=(4, 2)) for _ in range(3)]
        ring = [(x, [(0, 1), (1, 2), (2, 3), (0, 3)]) for x in chain]
        labels = [rng.integers(0, 2, 4) for _ in chain]
        fitted = CRF(max_iter=2, progress=False).fit(chain, labels)
        fitted.predict(chain)
        for how in ("exact", "loopy-bp", "mean-field", "pseudo-likelihood", "gibbs"):
            solver = "sgd" if how == "gibbs" else "lbfgs"
            crf = CRF(None, inference=how, solver=solver, max_iter=2, random_state=0, progress=False)  # type: ignore[arg-type]
            crf.fit(ring, labels).predict(ring)


def load_structure() -> None:
    """Learn tiny graphs in every way that has compiled code of its own."""
    from importlib import import_module

    from markovia.kernels.structure import edge_steps, family_scores, table_tests
    from markovia.structure.learn import learn_structure

    edge_steps.load()  # type: ignore[no-untyped-call]
    family_scores.load()  # type: ignore[no-untyped-call]
    table_tests.load()  # type: ignore[no-untyped-call]
    import_module(
        "markovia.kernels.structure.residual_entropies"
    )  # once it is there, few rows take the compiled way too
    rng = np.random.default_rng(0)
    bits = (np.cumsum(rng.normal(size=(200, 13)), axis=1) > 0).astype(int)
    numbers = np.cumsum(rng.uniform(-1.0, 1.0, (200, 4)), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, options in (
            ("boss", {}),
            ("boss", {"required": [("x0", "x1")]}),
            ("exact", {"algorithm": "dynamic-programming", "max_parents": 2}),
            ("exact", {"algorithm": "a-star", "max_parents": 2}),
        ):
            learn_structure(bits, method, seed=0, progress=False, **options)
        few = bits[:, :4]
        learn_structure(few, "ising", progress=False)
        learn_structure(few, "kernel-weighted", times=np.arange(200.0), progress=False)
        learn_structure(few, "tesla", times=np.arange(200) // 100, tolerance=1e-2, progress=False)
        for method in ("direct-lingam", "graphical-lasso", "neighbourhood"):
            learn_structure(numbers, method, progress=False)


if __name__ == "__main__":
    load_learning()
    load_structure()
