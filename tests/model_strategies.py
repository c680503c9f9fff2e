"""Random small models for property tests: directed and undirected, with zeros, disconnected, any cardinality."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk


@st.composite
def bayesian_networks(draw, max_nodes=7, max_states=3, zeros=True):
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparsity = draw(st.sampled_from([0.0, 0.4])) if zeros else 0.0
    bn = mk.BayesianNetwork()
    names = [f"v{i}" for i in range(n)]
    for i, name in enumerate(names):
        parents = [str(q) for q in rng.permutation(names[:i])[: rng.integers(0, 4)]]
        k = int(rng.integers(1 if zeros else 2, max_states + 1))
        table = rng.random([*(len(bn.states(q)) for q in parents), k]) + 0.01
        table = table * (rng.random(table.shape) >= sparsity)
        table[..., 0] += table.sum(axis=-1) == 0
        bn.add(
            name,
            states=[f"s{j}" for j in range(k)],
            parents=parents,
            p=table / table.sum(axis=-1, keepdims=True),
        )
    return bn


@st.composite
def markov_networks(draw, max_nodes=6, max_states=3, zeros=True, kind=mk.MarkovNetwork):
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparsity = draw(st.sampled_from([0.0, 0.3])) if zeros else 0.0
    cards = {f"v{i}": int(rng.integers(1, max_states + 1)) for i in range(n)}
    factors = []
    for _ in range(draw(st.integers(0, n + 2))):
        scope = [str(s) for s in rng.permutation(list(cards))[: rng.integers(1, min(n, 3) + 1)]]
        values = rng.random([cards[s] for s in scope]) * (rng.random([cards[s] for s in scope]) >= sparsity)
        factors.append(mk.Factor(scope, values * 10.0 ** rng.integers(-3, 4)))
    return kind(cards, factors)


def random_evidence(model, rng, rate=0.4):
    """Hard, soft and negative evidence on some variables."""
    given = {}
    for name in model.variables:
        if rng.random() > rate:
            continue
        states = model.states(name)
        what = rng.integers(3)
        if what == 0 or len(states) == 1:
            given[name] = states[rng.integers(len(states))]
        elif what == 1:
            given[name] = (rng.random(len(states)) + 0.05).tolist()
        else:
            given[name] = mk.Not(states[rng.integers(len(states))])
    return given


def brute_force(model, given):
    """The unnormalised joint table over all variables, evidence multiplied in, by plain NumPy."""
    names = model.variables
    shape = [len(model.states(n)) for n in names]
    table = np.ones(shape)
    for piece in model.pieces():
        factor = piece if isinstance(piece, mk.Factor) else piece.factor()
        axes = [names.index(n) for n in factor.names]
        order = np.argsort(axes)
        view = [1] * len(names)
        for a in axes:
            view[a] = shape[a]
        table = table * factor.values.transpose(order).reshape(view)
    for name, said in given.items():
        states = model.states(name)
        if isinstance(said, mk.Not):
            weights = [0.0 if s in said.states else 1.0 for s in states]
        elif isinstance(said, list):
            weights = said
        else:
            weights = [1.0 if s == said else 0.0 for s in states]
        view = [1] * len(names)
        view[names.index(name)] = len(states)
        table = table * np.reshape(weights, view)
    return table


# -- models with the tables they were made of: the reference never asks the library for a number ---------------


class Case(NamedTuple):
    """A model and, in plain arrays, the tables whose product it is."""

    model: Any
    cards: dict[str, int]
    tables: list[tuple[list[str], np.ndarray]]


KINDS = ["directed", "certain", "structured", "undirected", "factor graph"]


def random_case(seed, kind=None, max_entries=None):
    """A random model of up to 12 variables of 1 to 4 states whose joint table has at most `max_entries` cells.

    Connected or in separate blocks, with isolated variables, with and without zeros. "certain" tables are mostly 0
    and 1, "structured" ones are noisy-or, noisy-max, gates and logistics.
    """
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[rng.integers(len(KINDS))]
    max_entries = max_entries or int(rng.choice([60, 800, 6000, 60_000], p=[0.35, 0.4, 0.2, 0.05]))
    cards = _random_cards(rng, max_entries, least=2 if kind == "structured" else 1)
    blocks = _random_blocks(rng, list(cards))
    if kind in ("undirected", "factor graph"):
        tables = _random_factors(rng, cards, blocks)
        made = mk.MarkovNetwork if kind == "undirected" else mk.FactorGraph
        return Case(made(cards, [mk.Factor(scope, values) for scope, values in tables]), cards, tables)
    bn = mk.BayesianNetwork()
    tables = []
    for name, card in cards.items():
        before = [n for n in cards if n in bn and blocks[n] == blocks[name]]
        parents = [str(q) for q in rng.permutation(before)[: rng.integers(0, 4)]]
        form, values = None, None
        if kind == "structured" and parents:
            form, values = _structured(rng, cards, parents, card)
        if form is None:
            values = _random_rows(rng, [cards[q] for q in parents], card, kind)
            bn.add(name, states=range(card), parents=parents, p=values)
        else:
            bn.add(name, form, states=range(card))
        tables.append(([*parents, name], values))
    return Case(bn, cards, tables)


def cases(kinds=(None,), max_entries=None):
    """Random cases as a Hypothesis strategy; a failing one prints its seed."""
    return st.builds(
        random_case, st.integers(0, 2**32 - 1), st.sampled_from(list(kinds)), st.just(max_entries)
    )


def random_findings(case, rng, rate=0.35):
    """Hard, soft (as list or mapping, zeros included) and negative evidence on some variables."""
    given = {}
    for name, card in case.cards.items():
        if rng.random() < rate:
            given[name] = random_finding(card, rng)
    return given


def random_finding(card, rng):
    """One finding about a variable with states 0 ... card-1."""
    what = rng.integers(5)
    if what <= 1 or card == 1:
        return int(rng.integers(card))
    if what == 2:
        return mk.Not(*(int(s) for s in rng.permutation(card)[: rng.integers(1, card)]))
    weights = rng.random(card) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.3:
        weights[rng.integers(card)] = 0.0
    return weights.tolist() if what == 3 else dict(enumerate(weights.tolist()))


def likelihood(card, said):
    """The weight of every state that a finding stands for."""
    if isinstance(said, mk.Not):
        return np.array([0.0 if s in said.states else 1.0 for s in range(card)])
    if isinstance(said, dict):
        return np.array([said[s] for s in range(card)])
    return np.array(said) if isinstance(said, list) else np.eye(card)[said]


def log_weights(case, given=()):
    """The log weights of all configurations, axes in model order: an outer product in logs, by plain NumPy."""
    names = list(case.cards)
    shape = tuple(case.cards.values())
    found = dict(given)
    total = np.zeros(shape)
    soft = [([n], likelihood(case.cards[n], said)) for n, said in found.items()]
    with np.errstate(divide="ignore"):
        for scope, values in [*case.tables, *soft]:
            axes = [names.index(n) for n in scope]
            view = [1] * len(names)
            for a in axes:
                view[a] = shape[a]
            total = total + np.log(values).transpose(np.argsort(axes)).reshape(view)
    return total


def log_sum(logs, axis=None):
    """The log of a sum of exponentials over some axes (all by default); minus infinity stays."""
    top = np.max(logs, axis=axis, keepdims=True, initial=-np.inf)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logs - safe).sum(axis=axis, keepdims=True)) + safe
    return total.reshape(()) if axis is None else total.squeeze(axis)


def log_marginal(case, logs, keep):
    """The log weights of the configurations of some variables, axes in the order asked for."""
    names = list(case.cards)
    kept = [n for n in names if n in keep]
    summed = log_sum(logs, tuple(i for i, n in enumerate(names) if n not in keep))
    return summed.transpose([kept.index(n) for n in keep])


def _random_cards(rng, max_entries, least):
    cards: dict[str, int] = {}
    for i in range(rng.integers(1, 13)):
        card = int(rng.choice([1, 2, 3, 4], p=[0.1, 0.5, 0.25, 0.15]))
        card = max(card, least)
        if prod(cards.values()) * card <= max_entries:
            cards[f"v{i}"] = card
    names = [str(n) for n in rng.permutation(list(cards))]
    return {n: cards[n] for n in names}


def _random_blocks(rng, names):
    n = int(rng.choice([1, 1, 2, 3]))
    return {name: int(rng.integers(n)) for name in names}


def _random_rows(rng, rows, card, kind):
    values = rng.random([*rows, card]) + 0.01
    if kind == "certain":
        sure = np.eye(card)[rng.integers(card, size=rows)]
        values = np.where(rng.random([*rows, 1]) < 0.7, sure, values)
    elif rng.random() < 0.5:
        values = values * (rng.random(values.shape) >= 0.35)
        values[..., 0] += values.sum(axis=-1) == 0
    return values / values.sum(axis=-1, keepdims=True)


def _random_factors(rng, cards, blocks):
    tables = []
    zeros = rng.choice([0.0, 0.25])
    for _ in range(rng.integers(0, len(cards) + 4)):
        block = blocks[str(rng.choice(list(cards)))]
        inside = [n for n in cards if blocks[n] == block]
        scope = [str(s) for s in rng.permutation(inside)[: rng.integers(1, 4)]]
        values = rng.random([cards[s] for s in scope]) * 10.0 ** rng.integers(-3, 4)
        tables.append((scope, values * (rng.random(values.shape) >= zeros)))
    if rng.random() < 0.1:
        tables.append(([], np.array(rng.random() + 0.1)))
    return tables


def _structured(rng, cards, parents, card):
    """A structured conditional and its table worked out by hand."""
    grid = np.indices([cards[q] for q in parents])
    if card == 2 and (what := rng.integers(5)) < 3:
        if what == 0:
            strengths = {q: float(rng.choice([rng.random(), 0.0, 1.0], p=[0.8, 0.1, 0.1])) for q in parents}
            leak = float(rng.choice([0.0, 0.1]))
            off = np.full(grid.shape[1:], 1.0 - leak)
            for level, s in zip(grid, strengths.values(), strict=True):
                off = off * np.where(level == 1, 1.0 - s, 1.0)
            on = dict.fromkeys(parents, 1)
            return mk.local.NoisyOr(strengths, leak=leak, on=on), np.stack([off, 1.0 - off], axis=-1)
        if what == 1:
            weights = {q: float(rng.normal()) for q in parents}
            bias = float(rng.normal())
            odds = bias + sum(w * level for w, level in zip(weights.values(), grid, strict=True))
            yes = 1.0 / (1.0 + np.exp(-odds))
            return mk.local.Logistic(weights, bias=bias), np.stack([1.0 - yes, yes], axis=-1)
        if all(cards[q] == 2 for q in parents):
            count = grid.sum(axis=0)
            gate, truth = [
                (mk.local.AndGate, count == len(parents)),
                (mk.local.OrGate, count >= 1),
                (mk.local.XorGate, count % 2 == 1),
            ][rng.integers(3)]
            return gate(*parents), np.stack([~truth, truth], axis=-1).astype(float)
    if rng.random() < 0.5:
        effects = {q: rng.dirichlet(np.ones(card), size=cards[q]) for q in parents}
        at_most = np.ones([*grid.shape[1:], card])
        for level, rows in zip(grid, effects.values(), strict=True):
            at_most = at_most * rows.cumsum(axis=-1)[level]
        at_most[..., -1] = 1.0
        form = mk.local.NoisyMax({q: rows.tolist() for q, rows in effects.items()})
        return form, np.diff(at_most, axis=-1, prepend=0.0)
    return None, None


def tries(n: int) -> range:
    """Return the seeds of n random models; `make test` tries the first quarter of them, and ten at least."""
    return range(n if settings.get_current_profile_name() == "explore" else max(min(n, 10), n // 4))


@contextmanager
def about(*case: object) -> Iterator[None]:
    """Name the case in what fails: for loops over hundreds of cases too small to be a test each."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"about {', '.join(map(repr, case))}")
        raise
