"""Diagnostics of a user's own draws, however they come: arrays, mappings from name to arrays, frames, posteriors.

An array has chains along its first axis and draws along its second (one chain may be one-dimensional); what follows are the
axes of the quantity, and the answer has their shape. A mapping is answered by a dict with the same names. A frame has a
column a quantity, its rows one chain, or several where a level of its index is called "chain". The numbers are those of
`markovia.inference.markov_chains.diagnostics` (Vehtari and others 2021; Geweke 1992).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.markov_chains import diagnostics
from markovia.inference.posterior_questions import element_name
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd

FEWEST = 4
"""Draws a chain below which halves of chains say nothing."""


def rhat(draws: Any, *, ranked: bool = True) -> Any:
    """Return split R-hat: how much wider all chains are together than each half of one; 1 if they agree.

    Parameters
    ----------
    draws
        Chains by draws (and the axes of the quantity), a mapping from name to such, a frame, or a posterior of draws.
    ranked
        Rank-normalise, and also compare spreads (2021); otherwise the classical split R-hat of the draws as they are.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> rhat(draws) < 1.01, rhat({"mu": draws + [[0], [0], [0], [3]]})["mu"] > 1.3
    (True, True)
    """
    return _answered(draws, lambda x: diagnostics.rhat(x, ranked=ranked))


def ess(draws: Any, kind: diagnostics.Kind = "bulk") -> Any:
    """Return the effective sample size: how many independent draws would do as well.

    Parameters
    ----------
    draws
        As in `rhat`.
    kind
        "bulk" (on normalised ranks, for means and medians), "tail" (the smaller one of the 5% and 95% quantiles), or "mean"
        (of the draws as they are, which the error of their mean needs).

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> bool((ess(draws) > 3000).all()), ess(draws, "tail").shape
    (True, (2,))
    """
    return _answered(draws, lambda x: diagnostics.ess(x, kind))


def mcse(draws: Any) -> Any:
    """Return the Monte Carlo standard error of the mean; draws as in `rhat`.

    Examples
    --------
    >>> 0.014 < mcse(np.random.default_rng(0).normal(size=(4, 1000))) < 0.018
    True
    """
    return _answered(draws, diagnostics.mcse)


def geweke(draws: Any, first: float = 0.1, last: float = 0.5) -> Any:
    """Return for each chain by how many standard errors the mean of its beginning differs from that of its end.

    Values beyond 2 or 3 in size say that the burn-in was too short.

    Parameters
    ----------
    draws
        As in `rhat`; of a single chain without an axis for chains, the answer is one number.
    first, last
        The shares of the chain that are compared.

    Examples
    --------
    >>> chains = np.random.default_rng(0).normal(size=(2, 2000))
    >>> chains[1] += np.linspace(3, 0, 2000)
    >>> (abs(geweke(chains)) > 3).tolist()
    [False, True]
    """

    def each(x: Array) -> Any:
        found = np.array([diagnostics.geweke(chain, first, last) for chain in np.atleast_2d(x)])
        return float(found[0]) if x.ndim == 1 else found

    return _answered(draws, each)


def autocorrelation(draws: Any, max_lag: int | None = None) -> Any:
    """Return the autocorrelation at lags 0, 1, ..., averaged over chains; lags are the last axis.

    Examples
    --------
    >>> autocorrelation([1.0, -1.0, 1.0, -1.0], max_lag=2).round(3).tolist()
    [1.0, -0.75, 0.5]
    """
    return _answered(draws, lambda x: diagnostics.autocorrelation(x, max_lag))


def burn_in(draws: Any) -> Any:
    """Return after how many draws every chain has reached its plateau, the mean of its second half.

    Examples
    --------
    >>> rise = np.minimum(np.arange(1000) / 100.0, 1.0) * 50 + np.random.default_rng(0).normal(size=1000)
    >>> 80 < burn_in(rise) < 110
    True
    """
    return _answered(draws, diagnostics.burn_in_advice)


def summary(draws: Any) -> "pd.DataFrame":
    """Return one row a scalar: mean, sd, Monte Carlo error, effective sample sizes, R-hat, Geweke's z, lag 1, burn-in.

    Of several chains Geweke's z is the one furthest from zero.

    Parameters
    ----------
    draws
        As in `rhat`; an array without a name is called x.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = summary({"mu": rng.normal(size=(4, 500)), "w": rng.normal(size=(4, 500, 2))})
    >>> list(table.index), list(table.columns)[2:6]
    (['mu', 'w[0]', 'w[1]'], ['mcse', 'ess_bulk', 'ess_tail', 'r_hat'])
    """
    rows = {}
    for name, values in _by_name(draws).items():
        for label, x in _scalars(name, _chains(values)):
            z = np.atleast_1d(geweke(x))
            rows[label] = {
                "mean": float(x.mean()),
                "sd": float(x.std(ddof=1)),
                "mcse": diagnostics.mcse(x),
                "ess_bulk": diagnostics.ess(x),
                "ess_tail": diagnostics.ess(x, "tail"),
                "r_hat": diagnostics.rhat(x),
                "geweke": float(z[np.abs(z).argmax()]),
                "lag_1": float(diagnostics.autocorrelation(x, 1)[-1]),
                "burn_in": diagnostics.burn_in_advice(x),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity")


def _answered(draws: Any, diagnose: Callable[[Array], Any]) -> Any:
    """Return a diagnostic of draws, in the form that they came in."""
    if hasattr(draws, "draws") or isinstance(draws, Mapping) or hasattr(draws, "columns"):
        return {name: _answered(values, diagnose) for name, values in _by_name(draws).items()}
    x = _chains(draws)
    if x.ndim <= 2:
        return diagnose(x)
    found = [np.asarray(diagnose(part)) for _, part in _scalars("x", x)]
    return np.stack(found).reshape(*x.shape[2:], *found[0].shape)


def _by_name(draws: Any) -> dict[str, Any]:
    """Return draws by name: of a mapping, a frame, or whatever has `draws`; else under the name x."""
    held = getattr(draws, "draws", draws)
    if isinstance(held, Mapping):
        return {str(name): values for name, values in held.items()}
    if hasattr(held, "columns"):
        chained = "chain" in held.index.names
        return {
            str(name): held[name].unstack("chain").to_numpy().T if chained else held[name].to_numpy()
            for name in held.columns
        }
    return {"x": held}


def _chains(draws: Any) -> Array:
    try:
        x = np.asarray(draws, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(
            "draws are numbers: an array of chains by draws, or a mapping from name to such"
        ) from None
    if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else 1] < FEWEST:
        raise InvalidArgument(
            f"draws are an array of chains by draws, at least {FEWEST} a chain, not of shape {x.shape}"
        )
    if not np.isfinite(x).all():
        raise InvalidArgument("some draws are NaN or infinite; leave those chains out, or mend the sampler")
    return x


def _scalars(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Give label and chains by draws of every scalar of a quantity."""
    for at in np.ndindex(*x.shape[2:]):
        yield element_name(name, at), x[(slice(None), slice(None), *at)] if x.ndim > 1 else x
