"""Products of tables for tests: random ones and those of real passes, every term by itself, and machines to compare."""

from contextlib import contextmanager, nullcontext
from math import frexp, log

import numpy as np

from cuda_on_processor import stand_in
from markovia.inference.sliced import device_loops
from markovia.inference.sliced.cuda_tables import CudaTables
from markovia.inference.sliced.product_layout import ProductLayout
from markovia.runtime import devices


@contextmanager
def with_constants(module, constants):
    """Change constants of a module for a while."""
    before = {name: getattr(module, name) for name in constants}
    vars(module).update(constants)
    try:
        yield
    finally:
        vars(module).update(before)


@contextmanager
def on_a_gpu(precision="double", **constants):
    """Give a machine on the GPU, or on the processor in its place, which divides products as the constants say."""
    with with_constants(device_loops, constants), nullcontext() if devices.gpu() else stand_in():
        yield CudaTables(precision)


def steps_through(lengths, strides):
    """Return where the entries of a table lie whose axes have these lengths and strides, the last the fastest."""
    place = np.zeros(1, dtype=np.int64)
    for n, s in zip(lengths, strides, strict=True):
        place = np.add.outer(place, s * np.arange(n)).ravel()
    return place


def random_input(rng, lengths, span):
    """Return strides, a base and values: some of the axes in any order, with gaps, in a table that is larger than needed."""
    axes = [a for a in rng.permutation(len(lengths)) if rng.random() < 0.6]
    strides, step = [0] * len(lengths), int(rng.choice([1, 1, 1, 2]))
    for a in axes:
        strides[a] = step
        step *= lengths[a] + int(rng.random() < 0.1)
    base = int(rng.integers(0, 3)) * int(rng.random() < 0.5)
    values = rng.random(step + base + 1)
    if rng.random() < 0.5:
        values *= 2.0 ** rng.integers(-span, 1, size=len(values))
    if rng.random() < 0.5:
        values *= rng.random(len(values)) < rng.choice([0.1, 0.5, 0.9])
    if rng.random() < 0.1:
        values[:] = 0
    return tuple(strides), base, values * 10.0 ** rng.choice([-300, -10, 0, 0, 0, 300])


def random_product(rng, most=3, span=30):
    kept = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(0, most + 1)))
    removed = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(0, most + 1)))
    found = [
        random_input(rng, kept + removed, span) for _ in range(rng.choice([1, 2, 3, 5]))
    ]  # for each number a kernel is compiled
    strides, bases, values = zip(*found, strict=True)
    return ProductLayout(kept, removed, strides), bases, values


def logs(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def by_hand(layout, bases, values, maximise):
    """Return the logs of a result."""
    terms = np.zeros(layout.entries)
    for strides, base, table in zip(layout.strides, bases, values, strict=True):
        terms += logs(table)[base + steps_through(layout.kept + layout.removed, strides)]
    terms = terms.reshape(layout.size, -1)
    return terms.max(axis=1) if maximise else np.logaddexp.reduce(terms, axis=1)


def log_scale(values):
    """Return the log of the power of two that a table is held on."""
    return frexp(values.max())[1] * log(2)


def in_logs(machine, table):
    numbers, scale = machine.numbers(table)
    return logs(numbers) + scale


def same(found, expected, tolerance=1e-12):
    assert np.array_equal(np.isneginf(found), np.isneginf(expected))
    alive = ~np.isneginf(expected)
    np.testing.assert_allclose(found[alive], expected[alive], rtol=0, atol=tolerance)


# shapes of real passes, which go through every way of dividing the work: one variable of a large clique removed, most of the
# variables removed, all but one of them, many inputs, one long axis
SHAPES = {
    "upward": ((2,) * 13, (3,), 4),
    "upward, the fastest removed": ((3,) * 8, (2,), 2),
    "downward": ((2,) * 9, (2,) * 5, 3),
    "marginal of the first": ((2,), (2,) * 14, 2),
    "marginal of the last": ((3,), (3,) * 8, 2),
    "all": ((), (2,) * 14, 2),
    "nothing removed": ((2,) * 14, (), 3),
    "many inputs": ((2,) * 8, (2,), 21),
    "long axes": ((1009,), (11,), 3),
    "a long axis removed": ((5,), (5003,), 2),
    "an axis that cannot be divided": ((4099,), (2,), 2),
    "axes that can hardly be divided": ((2, 1009), (7,), 2),
    "the fastest eight removed": ((2,) * 8, (8,), 2),
    "the fastest sixteen of two removed": ((3,) * 4, (5, 16), 2),
}
NATURAL = {"the fastest eight removed", "the fastest sixteen of two removed"}
"""Those whose first input has its axes in the order of the layout."""


def large_product(shape):
    kept, removed, n = SHAPES[shape]
    rng = np.random.default_rng(sum(map(ord, shape)))
    lengths = kept + removed
    strides, values = [], []
    for k in range(n):
        # the first has all axes, in some order with long stretches in common; the others have a few
        axes = list(range(len(lengths)))
        if k:
            axes = [a for a in axes if rng.random() < 0.3]
        elif shape not in NATURAL:
            axes = np.roll(axes, rng.integers(len(axes))).tolist()
        own, step = [0] * len(lengths), 1
        for a in reversed(axes):
            own[a] = step
            step *= lengths[a]
        strides.append(tuple(own))
        values.append(rng.random(step) * (rng.random(step) < 0.7))
    return ProductLayout(kept, removed, tuple(strides)), values
