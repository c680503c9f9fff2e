"""Simulation-based calibration: whether an engine's posterior holds what it promises, on this model.

Parameters are drawn from the prior, data from the model given them, and the engine is asked for the posterior given those
data. Where it is right, the rank of the true value among draws of the posterior is uniform: below them all as often as in
the middle. A hill means too wide a posterior, a bowl too narrow a one, a slope a bias. Reference: Talts, Betancourt,
Simpson, Vehtari and Gelman (2018). Cost: one answer a simulation; data of one shape are compiled once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.engine import Engine, get_engine
from markovia.models.graphical.arguments import list_of_names
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime import ports
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Whole, check
from markovia.runtime.keyword_advice import guided
from markovia.runtime.progress import progress_bar
from markovia.runtime.seeds import generator
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEAST = 20
"""Simulations below which nothing can be said."""


@dataclass(frozen=True, eq=False)
class EngineCalibration(InNotebooks):
    """Ranks of true values among posterior draws.

    Attributes
    ----------
    ranks
        By name of a number, one rank a simulation, from 0 to `draws`.
    draws
        How many posterior draws each value was ranked among.
    engine
        Who was asked.
    """

    ranks: Mapping[str, Ints]
    draws: int
    engine: str

    def p_values(self) -> dict[str, float]:
        """Return, by name, how probable ranks as uneven as these are if the posterior is right (a chi-squared test)."""
        from scipy.stats import chi2

        found = {}
        for name, ranks in self.ranks.items():
            bins = max(2, min(20, len(ranks) // 5, self.draws + 1))
            edges = np.linspace(0, self.draws + 1, bins + 1)
            seen, _ = np.histogram(ranks + 0.5, edges)
            values = np.arange(self.draws + 1) + 0.5
            expected = np.histogram(values, edges)[0] * len(ranks) / (self.draws + 1)
            found[name] = float(chi2.sf(((seen - expected) ** 2 / expected).sum(), bins - 1))
        return found

    @property
    def calibrated(self) -> bool:
        """Whether no number's ranks are uneven, at one in a hundred for all of them together."""
        found = self.p_values().values()
        return min(found, default=1.0) > 0.01 / max(1, len(self.ranks))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the ranks, one row a simulation and one column a number."""
        import pandas as pd

        return pd.DataFrame(dict(self.ranks))

    def plot(self, *, bins: int = 20, ax: "Axes | None" = None) -> Any:
        """Draw a histogram of the ranks for each number, with the band that most bars should end in."""
        return ports.call("plot-ranks", self, bins=bins, ax=ax)

    def __str__(self) -> str:
        rows = [[name, f"{p:.3g}"] for name, p in self.p_values().items()]
        return aligned(["quantity", "p"], rows)

    def __repr__(self) -> str:
        n = len(next(iter(self.ranks.values())))
        said = "calibrated" if self.calibrated else "NOT calibrated"
        return f"{self}\n[{self.engine}, {n:,} simulations, ranks among {self.draws} draws: {said}]"


@guided
def calibrate(
    model: BayesianNetwork,
    observed: str | Iterable[str],
    *,
    given: Mapping[str, Any] | None = None,
    targets: str | Iterable[str] | None = None,
    simulations: int = 200,
    draws: int = 99,
    engine: str | Engine = "auto",
    seed: Any = 0,
    progress: bool | None = None,
) -> EngineCalibration:
    """Check an engine on a model by simulated data.

    Parameters
    ----------
    model
        A model with quantities, all of whose priors can be drawn from.
    observed
        The nodes that are data.
    given
        Constants, covariates and lengths of plates, as in `query`.
    targets
        The numbers to look at; by default all that are neither observed nor inputs.
    simulations
        How many data sets.
    draws
        Posterior draws that a true value is ranked among; taken evenly from those that the engine makes.
    engine, seed, progress
        Who is asked (with another seed each time), the seed of it all, and whether to show a progress bar.

    Returns
    -------
    the calibration
        Ranks, with `p_values()`, `calibrated` and `plot()`.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("mu", dist.Normal(0, 1))
    >>> m.add("y", lambda mu: dist.Normal(mu, 1), plate="row")
    >>> mk.calibrate(m, "y", given={"row": 5}, simulations=100).calibrated
    True
    """
    if not model.has_quantities:
        raise InvalidArgument("calibrate() is for models with quantities; tables are answered exactly")
    check("simulations", simulations, Whole(LEAST))
    data_nodes = list_of_names(observed, "observed")
    for name in data_nodes:
        model.variable(name)
    rng = generator(seed)
    prior: Any = model.sample(simulations, given=given, seed=rng)
    numbers = [n for n in _numbers(model, data_nodes) if n in prior]  # functions have no one value
    wanted = numbers if targets is None else list_of_names(targets, "targets")
    usual: Any = get_engine(engine)
    columns: dict[str, list[int]] = {}
    chosen = ""
    with progress_bar(progress, simulations, name="calibrating") as advance:
        for i in range(simulations):
            data = {n: np.asarray(prior[n])[i] for n in data_nodes}
            # draws made of the same random numbers each time would be uneven in the same way each time
            asked = replace(usual, seed=int(rng.integers(2**31))) if hasattr(usual, "seed") else usual
            post: Any = model.query(wanted, given={**(given or {}), **data}, engine=asked)
            chosen = post.info.engine
            kept = _draws(post, wanted, draws, rng)
            for name in wanted:
                truth = np.ravel(np.asarray(prior[name])[i])
                below = (kept[name].reshape(draws, -1) < truth).sum(axis=0)
                for k, rank in enumerate(below):
                    label = name if len(truth) == 1 else f"{name}[{k}]"
                    columns.setdefault(label, []).append(int(rank))
            advance(1)
    return EngineCalibration({n: np.array(r, dtype=np.int64) for n, r in columns.items()}, draws, chosen)


def _numbers(model: BayesianNetwork, observed: list[str]) -> list[str]:
    return [
        n
        for n in model.variables
        if n not in observed
        and isinstance(v := model.variable(n), Quantity)
        and v.domain != "input"
        and not v.labels
    ]


def _draws(post: Any, names: list[str], n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return n draws of each name: spread evenly over chains of draws, or made by a posterior in closed form."""
    if post.info.exact:
        found = post.sample(n, seed=rng)
        return {k: np.asarray(found[k]).reshape(n, -1) for k in names}
    whole = {k: np.asarray(post.draws[k]) for k in names}
    chains, length = next(iter(whole.values())).shape[:2]
    at = np.unravel_index(np.linspace(0, chains * length - 1, n).astype(int), (chains, length))
    return {k: v[at].reshape(n, -1) for k, v in whole.items()}
