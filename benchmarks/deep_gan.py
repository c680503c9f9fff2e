"""WGAN-GP on a ring of eight Gaussians with the preset's defaults: modes found and shares of good samples, five seeds.

The ring has radius 2 and clusters of deviation 0.05; a sample is good within four deviations of a centre, and a mode is
found if it has at least a fifth of its even part. Other objectives run for comparison.

    python benchmarks/deep_gan.py [--seeds 5] [--rows 1000] [--objectives wasserstein vanilla ...]
"""

import argparse
import time

import numpy as np

import markovia as mk

ANGLES = np.arange(8) * np.pi / 4
CENTRES = 2 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
DEVIATION = 0.05


def ring(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return rows of the ring."""
    return CENTRES[rng.integers(0, 8, n)] + DEVIATION * rng.normal(size=(n, 2))


def main() -> None:
    """Print a line for each objective and seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--objectives", nargs="+", default=["wasserstein", "vanilla"])
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    rows, others = ring(rng, asked.rows), ring(rng, 2000)
    floor = mk.learning.energy_distance(ring(rng, 2000), others)
    print(
        f"{'objective':16} seed  modes  good samples  energy distance (two samples of data: {floor:.4f})  seconds"
    )
    for objective in asked.objectives:
        for seed in range(asked.seeds):
            begun = time.perf_counter()
            model = mk.deep.GAN(objective=objective, random_state=seed).fit(rows)
            seconds = time.perf_counter() - begun
            drawn = model.sample(2000, seed=seed)
            found = mk.learning.mode_coverage(drawn, CENTRES, 4 * DEVIATION)
            apart = mk.learning.energy_distance(drawn, others)
            print(
                f"{objective:16} {seed:4}  {found.covered:5}  {found.near:12.1%}  {apart:15.4f}  {seconds:40.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
