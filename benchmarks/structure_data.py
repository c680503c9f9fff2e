"""The data of the structure-learning benchmarks: rows sampled from real networks, columns shuffled, fixed seeds."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from stopwatch import benchmark_folder

import markovia as mk

NETWORKS = ("child", "insurance", "alarm", "hailfinder", "hepar2", "win95pts", "andes")


@cache
def network(name: str) -> Any:
    """Load one of the benchmark networks."""
    return mk.load(benchmark_folder() / "bif" / f"{name}.bif.gz")


@cache
def sampled(name: str, n_rows: int, seed: int = 1) -> pd.DataFrame:
    """Return rows of a network with its columns in random order; columns that happen to be constant stay."""
    rows = network(name).sample(n_rows, seed=seed)
    order = np.random.default_rng(seed).permutation(rows.shape[1])
    return rows.iloc[:, order]


def states_of(name: str, rows: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the network's own states for each column, so that every method counts the same parameters."""
    return {c: list(network(name).states(c)) for c in rows.columns}
