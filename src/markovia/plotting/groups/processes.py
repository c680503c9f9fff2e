"""Pictures of draws from random partitions, measures and matrices, and of latent features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.processes.beta_process import BetaProcess
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.dirichlet import Dirichlet, PolyaUrn
from markovia.factors.processes.dirichlet_process import PitmanYor
from markovia.factors.processes.distance_dependent import DistanceDependentRestaurant
from markovia.factors.processes.franchise import ChineseRestaurantFranchise, HierarchicalDirichletProcess
from markovia.factors.processes.gamma_process import GammaProcess, InfiniteGammaPoisson
from markovia.factors.processes.indian_buffet import IndianBuffet
from markovia.factors.processes.nested_restaurant import NestedChineseRestaurant
from markovia.factors.processes.stick_breaking import GEM
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWS = 6
"""Draws shown beside each other."""


def plot_process(
    law: Any, n: int | None = None, *, seed: Seed = 0, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw one picture of draws from a law of `mk.processes`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> mk.processes.ChineseRestaurant(2.0).plot(50).get_title()
    '50 customers, 7 tables'
    """
    check_axes(ax)
    check_count("n", n, 1, none=True)
    ax = plain_axes(ax, 5.4, 3.2)
    for kinds, drawn in _PICTURES:
        if isinstance(law, kinds):
            said = drawn(law, n, generator(seed), ax)
            ax.set_title(said if title is None else title, fontsize=style.FONT_SIZE, parse_math=False)
            return ax
    raise InvalidArgument(f"{type(law).__name__} is no law of mk.processes")


def _restaurant(law: ChineseRestaurant, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    n = n or 100
    labels = law.sample(n, rng)
    sizes = np.bincount(labels)
    shown = np.arange(sizes.size)
    ax.bar(shown, sizes, color=[style.series(int(k)) for k in shown])
    ax.set(xlabel="table, in order of opening", ylabel="customers")
    return f"{n} customers, {np.unique(labels).size} tables"


def _sticks(law: GEM | Dirichlet, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    n = n or DRAWS
    rows = law.sample(n, rng)
    _stacked(ax, rows, [str(i + 1) for i in range(n)])
    ax.set(xlabel="weight", ylabel="draw")
    return f"{n} draws of {'sticks' if isinstance(law, GEM) else 'probabilities'}"


def _polya(law: PolyaUrn, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    n = n or 300
    for i in range(DRAWS):
        share = np.cumsum(law.sample(n, rng) == 0) / np.arange(1, n + 1)
        ax.plot(np.arange(1, n + 1), share, color=style.series(i), linewidth=1.2)
    ax.set(xlabel="draws from the urn", ylabel="share of the first colour", ylim=(0, 1))
    return f"{DRAWS} urns"


def _measure(law: PitmanYor, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    found = law.measure(rng, n or 200)
    _stems(ax, found.atoms, found.weights)
    ax.set(xlabel="atom", ylabel="weight")
    return "a random measure"


def _groups(
    law: ChineseRestaurantFranchise | HierarchicalDirichletProcess,
    n: int | None,
    rng: np.random.Generator,
    ax: "Axes",
) -> str:
    franchise = law.franchise if isinstance(law, HierarchicalDirichletProcess) else law
    n = n or 60
    labels = franchise.sample([n] * DRAWS, rng).labels()
    k = max(int(g.max()) for g in labels) + 1
    _stacked(
        ax, np.array([np.bincount(g, minlength=k) / n for g in labels]), [str(j + 1) for j in range(DRAWS)]
    )
    ax.set(xlabel="share of each atom", ylabel="group")
    return f"{DRAWS} groups share {k} atoms"


def _tree(law: NestedChineseRestaurant, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    n = n or 40
    paths = law.sample(n, rng)
    paths = paths[np.lexsort(paths.T[::-1])]  # items by leaf: a node stands above the middle of its items
    at = {(): (n - 1) / 2.0}
    for level in range(1, law.depth + 1):
        for prefix in dict.fromkeys(map(tuple, paths[:, :level].tolist())):
            inside = np.flatnonzero((paths[:, :level] == prefix).all(axis=1))
            at[prefix] = float(inside.mean())
            ax.plot(
                [at[prefix[:-1]], at[prefix]], [1 - level, -level], color=style.EDGE, linewidth=1.0, zorder=1
            )
            ax.scatter(at[prefix], -level, s=14 + 8 * inside.size, color=style.series(prefix[0]), zorder=2)
    ax.scatter(at[()], 0, s=14 + 8 * n, color=style.EDGE, zorder=2)
    ax.set_axis_off()
    ax.margins(0.06, 0.12)
    return f"{n} paths, {len(set(map(tuple, paths.tolist())))} leaves"


def _matrix(
    law: IndianBuffet | InfiniteGammaPoisson, n: int | None, rng: np.random.Generator, ax: "Axes"
) -> str:
    n = n or 40
    z = law.sample(n, rng)
    ax.imshow(z if z.size else np.zeros((n, 1)), cmap=style.ramp(), aspect="auto", interpolation="nearest")
    ax.set(xlabel="feature, in order of appearance", ylabel="item")
    ax.locator_params(axis="x", integer=True)
    return f"{n} items, {int(z.any(axis=0).sum())} features"


def _chances(law: BetaProcess | GammaProcess, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    n = n or 30
    drawn = law.sample(1, rng, n)[0]
    beta = isinstance(law, BetaProcess)
    shown = drawn if beta else drawn[:-1]
    _stems(ax, np.arange(1.0, shown.size + 1), shown)
    ax.set(xlabel="feature", ylabel="chance" if beta else "rate")
    return f"{shown.size} chances" if beta else f"{shown.size} rates"


def _links(law: DistanceDependentRestaurant, n: int | None, rng: np.random.Generator, ax: "Axes") -> str:
    from matplotlib.patches import Arc

    links = law.sample(1, rng)[0]
    tables = law.tables(links)
    for i, j in enumerate(links.tolist()):
        colour = style.series(int(tables[i]))
        if i != j:
            ax.add_patch(Arc(((i + j) / 2, 0), abs(i - j), abs(i - j), theta1=0, theta2=180, color=colour))
        ax.scatter(i, 0, color=colour, zorder=2, s=24)
    longest = int(np.abs(links - np.arange(links.size)).max(initial=1))
    ax.set(
        xlabel="item",
        yticks=[],
        xlim=(-0.8, links.size - 0.2),
        ylim=(-0.08 * longest - 0.1, 0.56 * longest + 0.2),
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    return f"links connect {links.size} items to {int(tables.max()) + 1} tables"


_PICTURES: tuple[tuple[Any, Any], ...] = (
    (ChineseRestaurant, _restaurant),
    ((GEM, Dirichlet), _sticks),
    (PolyaUrn, _polya),
    (PitmanYor, _measure),
    ((ChineseRestaurantFranchise, HierarchicalDirichletProcess), _groups),
    (NestedChineseRestaurant, _tree),
    ((IndianBuffet, InfiniteGammaPoisson), _matrix),
    ((BetaProcess, GammaProcess), _chances),
    (DistanceDependentRestaurant, _links),
)


def _stacked(ax: "Axes", rows: Array, names: Sequence[str]) -> None:
    """Draw rows of weights as bars cut in pieces, a colour for each column."""
    left = np.zeros(len(rows))
    for k in range(rows.shape[1]):
        ax.barh(
            range(len(rows)),
            rows[:, k],
            left=left,
            color=style.series(k),
            edgecolor=style.BACKGROUND,
            linewidth=0.6,
        )
        left += rows[:, k]
    ax.barh(range(len(rows)), np.maximum(1.0 - left, 0.0), left=left, color=style.SEPARATOR_FILL)
    ax.set_yticks(range(len(rows)), names)
    ax.set_xlim(0.0, 1.0)
    ax.invert_yaxis()


def _stems(ax: "Axes", at: Array, heights: Array) -> None:
    ax.vlines(at, 0.0, heights, color=style.NODE_BORDER, linewidth=1.4)
    ax.set_ylim(0.0, None)


def plot_latent_features(
    model: Any, *, shape: tuple[int, int] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the features of a `LatentFeatures`: side by side as pictures of a shape, else as lines over the columns."""
    check_axes(ax)
    values, k = model.components_, model.n_components_
    if shape is not None and shape[0] * shape[1] != values.shape[1]:
        raise InvalidArgument(
            f"shape= has {values.shape[1]} places, one for each column, not {shape[0]} x {shape[1]}"
        )
    ax = plain_axes(ax, *((1.5 * max(k, 1) + 0.4, 2.0) if shape else (5.4, 3.2)))
    if shape is None:
        for i, feature in enumerate(values):
            ax.plot(feature, color=style.series(i), marker="o", markersize=3)
        ax.set(xlabel="column", ylabel="value")
    else:
        high, wide = shape
        panel = np.full((high, max(k, 1) * (wide + 1) - 1), np.nan)
        for i, feature in enumerate(values):
            panel[:, i * (wide + 1) : i * (wide + 1) + wide] = feature.reshape(shape)
        most = float(np.abs(values).max(initial=1e-12))
        ax.imshow(panel, cmap=style.spread(), vmin=-most, vmax=most)
        ax.set_axis_off()
    ax.set_title(f"{k} features", fontsize=style.FONT_SIZE)
    return ax
