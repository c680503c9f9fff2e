"""The ways of computing with a Gaussian process by name, and which of them `method="auto"` takes."""

# ruff: noqa: N803 (letters of the literature)

from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, did_you_mean
from markovia.factors.covariances.algebra import split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.learning.processes.evidence_method import EvidenceMethod
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import default_budget, readable
from markovia.runtime.registry import resolve

METHODS: dict[str, str] = {
    "exact": "markovia.learning.processes.exact_evidence:ExactEvidence",
    "state-space": "markovia.learning.processes.state_space_evidence:StateSpaceEvidence",
    "kronecker": "markovia.learning.processes.grid_evidence:KroneckerEvidence",
    "toeplitz": "markovia.learning.processes.grid_evidence:ToeplitzEvidence",
    "sgpr": "markovia.learning.processes.inducing_points:SGPR",
    "fitc": "markovia.learning.processes.inducing_points:FITC",
    "dtc": "markovia.learning.processes.inducing_points:DTC",
    "sor": "markovia.learning.processes.inducing_points:SoR",
    "svgp": "markovia.learning.processes.stochastic_inducing:SVGP",
    "fourier": "markovia.learning.processes.feature_evidence:FourierProcess",
    "kitchen-sinks": "markovia.learning.processes.feature_evidence:KitchenSinks",
    "fastfood": "markovia.learning.processes.feature_evidence:FastfoodProcess",
    "hilbert": "markovia.learning.processes.feature_evidence:HilbertProcess",
    "kiss": "markovia.learning.processes.interpolated_evidence:KISS",
    "msgp": "markovia.learning.processes.interpolated_evidence:MSGP",
    "cg": "markovia.learning.processes.iterative_evidence:ConjugateGradients",
    "blocked": "markovia.learning.processes.blocked_evidence:BlockedEvidence",
    "laplace": "markovia.learning.processes.laplace_evidence:LaplaceEvidence",
    "ep": "markovia.learning.processes.ep_evidence:ExpectationPropagation",
    "variational": "markovia.learning.processes.variational_evidence:VariationalEvidence",
}
"""Where each method lives, by the word of `method=`; a class made with `(X, y, **settings)` (`EvidenceMethod`)."""
MOST_EXACT = 6_000
"""Rows up to which "auto" computes exactly: a value of the evidence takes some seconds there."""
ENOUGH_FOR_STATES = 2_000
"""Rows from which "auto" goes through a state space, in linear time; with fewer, all pairs of rows need no compiled code."""
MOST_SGPR = 200_000
"""Rows up to which "auto" climbs the bound of inducing points with all rows at once."""
MATRICES = 6
"""Matrices of all pairs of rows that an exact value of the evidence and its gradient hold at once."""
SEVERAL_FUNCTIONS = frozenset({"heteroscedastic", "categorical"})
"""Likelihoods of more than one function, which inducing points do not take."""
EVEN = 1e-6
"""How much steps of a grid may differ, as a share of a step."""


class Chosen(NamedTuple):
    """A method, and one sentence why."""

    name: str
    why: str


def exact_bytes(n: int) -> float:
    """Return about how much memory an exact fit of n rows takes."""
    return MATRICES * 8.0 * n * n


def choose(
    X: Array, covariance: Covariance, likelihood: Any = "normal", *, memory: float | None = None, exact_only: bool = False,
    inducing: bool = False, features: bool = False,
) -> Chosen:  # fmt: skip
    """Return the method that `method="auto"` stands for, and why.

    Parameters
    ----------
    X
        Rows of inputs: how many, and whether they are a grid.
    covariance
        Its numbers known or started; one that is a state space of one input, or a product over columns, has methods of its
        own.
    likelihood
        "normal", or what else targets are distributed as: a `Likelihood`, which knows its methods.
    memory
        Bytes that may be taken; by default most of what is free.
    exact_only
        Whether targets (several columns of them, or errors of rows) are such as only "exact" takes.
    inducing, features
        Whether a number of inducing points or of features was said.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> choose(np.zeros((500, 3)), mk.covariances.RBF(1.0))
    Chosen(name='exact', why='500 rows are few enough to be exact')
    >>> choose(np.random.default_rng(0).random((9_000, 1)), mk.covariances.Matern32(1.0)).name
    'state-space'
    """
    n, d = X.shape
    budget = default_budget() if memory is None else memory
    need = exact_bytes(n)
    few = n <= MOST_EXACT and need <= budget
    rows = f"{n:,} rows"
    if likelihood != "normal":
        word, first = likelihood.word, likelihood.ways[0]
        points = word not in SEVERAL_FUNCTIONS
        if inducing and points:
            return Chosen("svgp", "inducing= was said")
        if (n <= MOST_EXACT // 2 and need <= budget) or not points:
            why = "few enough for all pairs" if few else f"many, but only {first} takes such targets"
            return Chosen(first, f"targets are {word}, and {rows} are {why}")
        return Chosen("svgp", f"targets are {word}, and {rows} are many: inducing points, in batches")
    if exact_only:
        return Chosen(
            "exact", "several columns of targets, or known errors of rows, are for the exact process"
        )
    if inducing or features:
        return Chosen(
            "sgpr" if inducing else "fourier", f"{'inducing' if inducing else 'features'}= was said"
        )
    rest, _ = split_white(covariance)
    assert rest is not None
    if d == 1 and n > ENOUGH_FOR_STATES and rest.state_space() is not None:
        return Chosen("state-space", f"{rows} of one input and a Markov covariance: exact in linear time")
    if few:
        return Chosen("exact", f"{rows} are few enough to be exact")
    many = f"{rows} are many (all pairs take {readable(need)})"
    if d == 1 and rest.stationary and n <= 10 * MOST_EXACT and has_even_steps(X):
        return Chosen("toeplitz", f"{many}, and their steps are equal: exact")
    if d > 1 and is_grid(X) and rest.factors_over_columns(d) is not None:
        return Chosen("kronecker", f"{many}, and they are the cells of a grid: exact")
    if n <= MOST_SGPR:
        return Chosen("sgpr", f"{many}: inducing points, which approximate")
    return Chosen("svgp", f"{many}: inducing points, which approximate, in batches")


def is_grid(X: Array) -> bool:
    """Say whether rows are all combinations of the numbers of their columns, each once.

    Examples
    --------
    >>> import numpy as np
    >>> is_grid(np.array([[0, 1], [0, 2], [5, 2], [5, 1]])), is_grid(np.array([[0, 1], [0, 2], [5, 2]]))
    (True, False)
    """
    sizes = [len(np.unique(column)) for column in X.T]
    return bool(np.prod(sizes, dtype=float) == len(X) and len(np.unique(X, axis=0)) == len(X))


def has_even_steps(X: Array) -> bool:
    """Say whether the rows of one input lie in equal steps.

    Examples
    --------
    >>> import numpy as np
    >>> has_even_steps(np.array([[0.2], [0.1], [0.3]])), has_even_steps(np.array([[0.0], [1.0], [3.0]]))
    (True, False)
    """
    steps = np.diff(np.sort(X[:, 0]))
    return len(steps) > 0 and bool(steps.min() > 0.0 and np.ptp(steps) <= EVEN * steps.mean())


def method_of(name: str, X: Any, y: Any, **options: Any) -> EvidenceMethod:
    """Return a method by its name at some rows and targets, or say which of the options it does not have.

    Examples
    --------
    >>> method_of("exact", [[0.0]], [1.0], inducing=3)
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidArgument: method='exact' takes no inducing=; it takes errors=, memory=
    """
    made = method_class(name)
    known = {
        option.name for kind in made.__mro__ if "__init__" in vars(kind) and kind is not object
        for option in signature(vars(kind)["__init__"]).parameters.values() if option.kind is option.KEYWORD_ONLY
    }  # fmt: skip
    for option in options:
        if option not in known:
            takes = f"takes {', '.join(f'{word}=' for word in sorted(known))}" if known else "has no options"
            raise InvalidArgument(f"method={name!r} takes no {option}=; it {takes}")
    return made(X, y, **options)


def method_class(name: str) -> type[EvidenceMethod]:
    """Import the class behind a name of `METHODS`."""
    if name not in METHODS:
        raise InvalidArgument(
            f"there is no method {name!r}; there are auto, {', '.join(METHODS)}{did_you_mean(name, METHODS)}"
        )
    found: type[EvidenceMethod] = resolve(METHODS[name])
    return found
