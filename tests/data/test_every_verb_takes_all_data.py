"""Every verb that takes rows takes them in every form, with the answers that pandas rows get."""

from functools import cache

import numpy as np
import pytest

import markovia as mk
from data_backends import EAGER, LAZY, as_pandas, rows

NAMES = ["word", "digit", "flag", "grade"]
WHOLE = rows(120, gaps=False)[NAMES]
TORN = rows(120, gaps=True)[NAMES]


def chain():
    """Return a network over the columns, with tables from complete rows."""
    edges = [("word", "digit"), ("digit", "flag"), ("word", "grade")]
    return mk.BayesianNetwork(edges).fit(WHOLE, prior="bdeu")


def as_dask(frame, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


BN = chain()
BACKENDS = [b for b in [*EAGER, *LAZY, as_dask] if b is not as_pandas]


def tables_of(network):
    return np.concatenate([network[n].values.ravel() for n in network.variables])


def posteriors(tables):
    return np.hstack([t.to_numpy() for t in tables.values()])


def field():
    states = {n: BN.states(n) for n in ("word", "digit", "flag")}
    factors = [mk.Factor(["word", "flag"], np.ones((3, 2))), mk.Factor(["digit", "flag"], np.ones((4, 2)))]
    return mk.MarkovNetwork(states, factors)


VERBS = {
    "predict": lambda d: BN.predict(d, "grade").tolist(),
    "predict_several": lambda d: BN.predict(d, ["flag", "word"]).to_numpy().tolist(),
    "predict_proba": lambda d: BN.predict_proba(d, "digit").to_numpy(),
    "log_prob": lambda d: BN.log_prob(d),
    "log_likelihood": lambda d: BN.log_likelihood(d),
    "log_likelihood_by_row": lambda d: BN.log_likelihood(d, by="row"),
    "score": lambda d: BN.score(d),
    "impute": lambda d: BN.impute(d)[NAMES].astype(object).to_numpy().tolist(),
    "impute_modes": lambda d: BN.impute(d, "mode")[NAMES].astype(object).to_numpy().tolist(),
    "fit": lambda d: tables_of(chain().fit(d, missing="drop")),
    "fit_by_em": lambda d: tables_of(chain().fit(d, missing=mk.EM(max_iterations=50, tolerance=0.5))),
    "expected_counts": lambda d: mk.learning.expected_counts(BN, d).log_likelihood,
    "counts": lambda d: mk.counts(d, ["word", "flag"]).values,
}
"""What verbs answer to rows with missing cells."""
COMPLETE = {
    "partial_fit": lambda d: tables_of(chain().partial_fit(d)),
    "log_likelihood_by_family": lambda d: BN.log_likelihood(d, by="family").to_numpy(),
    "fit_field": lambda d: np.concatenate([f.values.ravel() for f in field().fit(d).factors]),
    "learn_structure": lambda d: sorted(mk.learn_structure(d, method="hill-climb").graph.edges),
    "score_graph": lambda d: mk.score_graph(BN.graph, d),
    "discretize": lambda d: (
        mk.Discretizer(2, columns=["digit"]).fit_transform(d)["digit"].to_numpy().tolist()
    ),
}
"""What verbs answer to complete rows."""
EVIDENCE = {
    "marginals": lambda d: posteriors(BN.marginals(given=d, targets=["flag", "grade"])),
    "log_evidence": lambda d: BN.log_evidence(given=d),
}
"""What verbs answer for whom a mapping is one case of evidence."""


def same(found, expected):
    if isinstance(expected, list):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


ASKS = {**VERBS, **COMPLETE, **EVIDENCE}


@cache
def of_pandas(verb):
    return ASKS[verb](WHOLE if verb in COMPLETE else TORN)


def pairs():
    """Yield every verb with every form: a third is always tried, in which all verbs and all forms come up often."""
    for i, verb in enumerate(ASKS):
        for j, backend in enumerate(BACKENDS):
            slow = (i + j) % 3 > 0 or backend is as_dask
            yield pytest.param(
                verb, backend, marks=[pytest.mark.slow] * slow, id=f"{verb}-{backend.__name__}"
            )


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "backend"), pairs())
def test_a_verb_answers_rows_of_any_form_as_it_answers_pandas(verb, backend, tmp_path):
    if verb in EVIDENCE and backend.__name__ == "as_mapping":
        pytest.skip("a mapping is one case of evidence")
    found = ASKS[verb](backend(WHOLE if verb in COMPLETE else TORN, tmp_path))
    same(found, of_pandas(verb))


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(b, marks=[pytest.mark.slow] * (b.__name__ == "as_dask"))
        for b in BACKENDS
        if "list" not in b.__name__ and "struct" not in b.__name__
    ],
    ids=lambda b: b.__name__,
)
def test_measures_of_association_take_rows_of_any_form(backend, tmp_path):
    numbers = WHOLE[["digit", "grade"]].assign(word=np.arange(len(WHOLE)) % 7)
    asked = backend(numbers, tmp_path) if "categorical" not in backend.__name__ else numbers
    found = mk.learning.partial_correlation(asked)
    np.testing.assert_allclose(found.values, mk.learning.partial_correlation(numbers).values, atol=1e-12)
