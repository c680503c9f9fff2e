"""One test of conditional independence, for people rather than for searches."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markovia.errors import InvalidArgument, check_known
from markovia.factors.tables.variable import State
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime.shown import html_text
from markovia.structure.ci_tests.ci_tests import bind_test
from markovia.structure.learn import with_alpha
from markovia.structure.task.settings import Reading


class IndependenceTest(NamedTuple):
    """What a test of conditional independence found.

    Attributes
    ----------
    statistic
        The test's statistic; NaN where it has none.
    p_value
        How likely a statistic as large is under independence.
    dof
        Degrees of freedom; NaN where there are none.
    independent
        Whether independence is accepted: the p-value is larger than the level.
    test
        The test's name.
    """

    statistic: float
    p_value: float
    dof: float
    independent: bool
    test: str

    def _repr_html_(self) -> str:
        return html_text(str(self))


def independence_test(
    data: Any,
    x: str,
    y: str,
    given: Names = (),
    *,
    test: Any = None,
    alpha: float | None = None,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "error",
) -> IndependenceTest:
    """Test whether two variables are independent given others.

    Parameters
    ----------
    data
        What `mk.learn_structure` takes. Only the columns that are named are looked at.
    x, y, given
        Names of variables.
    test
        "g2", "chi2", "cmi", "fisher-z", "mixed", "hsic", "kci", or a test from `mk.ci_tests`. By default the one for
        the kind of data: G2 for discrete, Fisher's z for continuous, "mixed" for both together.
    alpha
        The level of a test that is given by name; 0.05 by default.
    continuous, states, weights, missing
        As for `mk.learn_structure`.

    Returns
    -------
    IndependenceTest

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.independence_test(rows, "sprinkler", "rain").independent
    False
    >>> mk.independence_test(rows, "sprinkler", "rain", given="cloudy").independent
    True
    """
    wanted = [x, y, *as_names(given)]
    if len(set(wanted)) < len(wanted):
        twice = next(n for k, n in enumerate(wanted) if n in wanted[:k])
        raise InvalidArgument(f"{twice!r} is named twice; x, y and the given variables are different")
    mixed = Reading(wanted, continuous, states, weights, missing).complete(data)
    if alpha is not None:
        test = with_alpha(test, alpha)
    bound = bind_test(test, mixed, mixed.names)
    number = {n: k for k, n in enumerate(bound.names)}
    check_known(wanted, number, "the test")
    query = number[x], number[y], [number[z] for z in wanted[2:]]
    p = bound.p_value(*query)
    statistic, dof = bound.statistic(*query)
    return IndependenceTest(statistic, p, dof, p > bound.alpha, bound.name)
