"""Grids: which graphs are grids, and that they are drawn row by row and straight."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt

import markovia as mk
from markovia.plotting import plot_graph
from markovia.plotting.grid_layout import find_grid, grid_layout
from markovia.plotting.layout import arrange, chosen
from markovia.plotting.stress_layout import stress_layout


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def grid(rows, columns, *, periodic=False):
    at = np.arange(rows * columns).reshape(rows, columns)
    edges = [*zip(at[:, :-1].flat, at[:, 1:].flat, strict=True), *zip(at[:-1].flat, at[1:].flat, strict=True)]
    if periodic:
        edges += [*zip(at[:, -1], at[:, 0], strict=True), *zip(at[0], at[-1], strict=True)]
    return [(int(a), int(b)) for a, b in edges]


def centres(ax):
    found = {}
    for patch in ax.patches:
        if (patch.get_gid() or "").startswith("node:"):
            extent = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
            found[patch.get_gid().removeprefix("node:")] = (extent.p0 + extent.p1) / 2
    return found


@pytest.mark.parametrize(
    ("model", "rows", "columns"),
    [
        (mk.generators.ising_grid(6, 6), 6, 6),
        (mk.generators.ising_grid(12, 11, periodic=True), 12, 11),
        (mk.generators.potts_grid(2, 5), 2, 5),
    ],
)
def test_grids_are_drawn_row_by_row_and_straight(model, rows, columns):
    at = centres(model.plot())
    for r in range(rows):
        for c in range(columns):
            # exactly the height of its row, and exactly under the top of its column
            assert at[f"x{r}_{c}"][1] == pytest.approx(at[f"x{r}_0"][1], abs=1e-9)
            assert at[f"x{r}_{c}"][0] == pytest.approx(at[f"x0_{c}"][0], abs=1e-9)
    assert (np.diff([at[f"x{r}_0"][1] for r in range(rows)]) < -0.5).all()
    assert (np.diff([at[f"x0_{c}"][0] for c in range(columns)]) > 0.5).all()


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 7), (5, 3), (6, 6)])
def test_a_grid_is_known_by_its_graph_whatever_its_names_and_numbers(rows, columns):
    n = rows * columns
    number = np.random.default_rng(rows + columns).permutation(n)
    edges = [(int(number[a]), int(number[b])) for a, b in grid(rows, columns)]
    cells = find_grid([f"node {chr(97 + k)}" for k in range(n)], edges)
    assert sorted(cells.max(axis=0) + 1) == sorted([rows, columns])
    assert len({tuple(cell) for cell in cells}) == n
    assert all(np.abs(cells[a] - cells[b]).sum() == 1 for a, b in edges)
    # numbered row by row it comes out in this order
    first = find_grid([f"{chr(97 + k)}" for k in range(n)], grid(rows, columns))
    assert (first[:, 0] * columns + first[:, 1] == np.arange(n)).all()


def test_what_is_no_grid_is_not_drawn_as_one():
    names = [f"x{r}_{c}" for r in range(3) for c in range(3)]
    assert find_grid(names, grid(3, 3)) is not None
    assert find_grid(names, [*grid(3, 3), (0, 4)]) is None
    assert find_grid(names, grid(3, 3)[:-1]) is None
    assert find_grid(list("abcdef"), [(k, (k + 1) % 6) for k in range(6)]) is None
    assert find_grid(names[:4], [(0, 1), (1, 2), (2, 3), (0, 3)]) is not None
    # a diamond of arrows stays in layers, though its skeleton is a square
    sprinkler = mk.examples.sprinkler()
    at = centres(sprinkler.plot())
    assert at["cloudy"][1] > at["rain"][1] == at["sprinkler"][1] > at["wet"][1]
    assert chosen("auto", names, grid(3, 3), downwards=True) == "grid"
    with pytest.raises(mk.errors.InvalidArgument, match="grid of at least"):
        plot_graph(mk.graphs.DAG([("a", "b")]), layout="grid")
    assert arrange(names, np.ones((9, 2)), grid(3, 3), "spring").centres[0, 1] != 0.0


def test_edges_around_a_periodic_grid_run_between_the_boxes():
    edges = grid(4, 5, periodic=True)
    names = [f"x{r}_{c}" for r in range(4) for c in range(5)]
    sizes = np.tile([0.6, 0.4], (20, 1))
    at, routes = grid_layout(sizes, find_grid(names, edges), edges)
    assert sum(route is not None for route in routes) == 4 + 5
    t = np.linspace(0, 1, 60)[:, None]
    for (a, b), route in zip(edges, routes, strict=True):
        if route is None:
            continue
        points = np.concatenate(
            [
                (1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t**2 * r + t**3 * s
                for p, q, r, s in (route[k : k + 4] for k in range(0, len(route) - 1, 3))
            ]
        )
        for c in set(range(20)) - {a, b}:
            assert not (np.abs(points - at[c]) < sizes[c] / 2 + 0.05).all(axis=1).any(), (a, b, c)


def test_springs_draw_a_grid_as_a_grid():
    points = stress_layout(9, [(3 * r + c, 3 * r + c + 1) for r in range(3) for c in range(2)]
                           + [(3 * r + c, 3 * r + c + 3) for r in range(2) for c in range(3)])  # fmt: skip
    cells = points.reshape(3, 3, 2)
    across, down = cells[:, 1:] - cells[:, :-1], cells[1:] - cells[:-1]
    axis = int(np.abs(across[0, 0]).argmax())
    assert (np.abs(across[..., axis]) > 5 * np.abs(across[..., 1 - axis])).all()
    assert (np.abs(down[..., 1 - axis]) > 5 * np.abs(down[..., axis])).all()
