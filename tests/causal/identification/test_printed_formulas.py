"""Formulas as they are printed: read back as text they mean what they say, and every name in them is bound or asked for."""

import re
from itertools import product

import numpy as np

import markovia as mk
from causal_worlds import full_model, random_admg
from markovia.causal.identification.expressions import P, ProductExpression, Quotient, SumExpression
from markovia.errors import NotIdentifiable

TOKEN = re.compile(r"Σ_\{([^}]*)\}|Σ_([\w']+)|P\(([^)]*)\)|(\]\s*/\s*\[)|([\[\]()1])|\s+")


class PrintedFormula:
    """A reader of its own for printed formulas, which works them out on a table of two-valued variables."""

    def __init__(self, text, names, joint):
        self.tokens = [m for m in TOKEN.finditer(text) if m.group().strip()]
        assert "".join(m.group() for m in TOKEN.finditer(text)) == text, text
        self.names, self.joint, self.at = names, joint, 0

    def mass(self, values):
        index = tuple(values.get(n, slice(None)) for n in self.names)
        return float(np.sum(self.joint[index]))

    def value(self, env):
        self.at = 0
        found = self.products(env)
        assert self.at == len(self.tokens)
        return found

    def products(self, env):
        """Factors side by side; a sum takes everything up to the bracket that closes around it."""
        found = 1.0
        while self.at < len(self.tokens) and self.tokens[self.at].group()[0] not in ")]":
            token = self.tokens[self.at]
            self.at += 1
            if bound := token.group(1) or token.group(2):
                assert env.keys().isdisjoint(bound.split(","))  # else one name would mean two things
                start, total = self.at, 0.0
                for values in product((0, 1), repeat=len(bound.split(","))):
                    self.at = start
                    total += self.products({**env, **dict(zip(bound.split(","), values, strict=True))})
                return found * total
            if token.group(3) is not None:
                of, _, given = token.group(3).partition(" | ")
                conditions = self.looked_up(given, env)
                found *= self.mass({**conditions, **self.looked_up(of, env)}) / self.mass(conditions)
            elif token.group() == "(":
                found *= self.products(env)
                self.at += 1
            elif token.group() == "[":
                top = self.products(env)
                self.at += 1
                found *= top / self.products(env)
                self.at += 1
        return found

    def looked_up(self, listing, env):
        names = [n for n in listing.split(", ") if n]
        return {n.rstrip("'"): env[n] for n in names}  # a KeyError here is a name that nothing binds


def hard_formulas(wanted):
    """Yield identified questions of random graphs, those first that adjustment does not answer."""
    rng, found = np.random.default_rng(5), 0
    while found < wanted:
        graph = random_admg(rng, int(rng.integers(4, 6)))
        names = [str(n) for n in rng.permutation(graph.nodes)]
        cuts = sorted(rng.integers(0, 2, 2).tolist())
        x, y, z = names[: 1 + cuts[0]], [names[2]], names[3 : 3 + cuts[1]]
        try:
            estimand = mk.causal.identify(graph, x, y, given=z)
        except NotIdentifiable:
            continue
        if estimand.rule not in ("id", "idc", "front-door"):
            continue
        found += 1
        yield graph, estimand


def test_a_printed_formula_read_as_text_gives_the_effect_and_no_name_is_left_open():
    quotients = 0
    for graph, estimand in hard_formulas(40):
        model, text = full_model(graph, 7, states=2), str(estimand).splitlines()[0].partition(" = ")[2]
        names = graph.nodes
        printed = PrintedFormula(text, names, model.query(names).values)
        quotients += "/" in text
        condition = dict.fromkeys(estimand.given, 1)
        for values in product((0, 1), repeat=len(estimand.treatment)):
            do = dict(zip(estimand.treatment, values, strict=True))
            truth = model.do(do).query(list(estimand.outcome), given=condition or None)
            read = [printed.value({**do, **condition, estimand.outcome[0]: v}) for v in (0, 1)]
            np.testing.assert_allclose(read, truth.values, atol=1e-9, err_msg=text)
    assert quotients > 5  # formulas of the hard kind were among them


def _sums(node):
    parts = getattr(node, "factors", None) or [
        getattr(node, n) for n in ("body", "top", "bottom") if hasattr(node, n)
    ]
    return [*([node] if isinstance(node, SumExpression) else []), *(s for p in parts for s in _sums(p))]


def test_no_formula_sums_a_distribution_over_all_of_its_variables_or_divides_one_by_something():
    for _, estimand in hard_formulas(40):
        assert "[1]" not in str(estimand.expression)
        for node in _sums(estimand.expression):
            factors = node.body.factors if isinstance(node.body, ProductExpression) else (node.body,)
            for own in (f for f in factors if isinstance(f, P)):
                others = frozenset().union(*(f.free for f in factors if f is not own))
                assert not set(own.of) <= set(node.over) - others, str(estimand.expression)


def test_the_napkin_prints_as_in_the_books():
    found = mk.causal.identify("w -> r -> x -> y; w <-> x; w <-> y", "x", "y").expression
    assert str(found) == "Σ_r P(r) [Σ_w P(w) P(x | w, r) P(y | w, r, x)] / [Σ_w P(w) P(x | w, r)]"
    assert isinstance(found, SumExpression)
    assert any(isinstance(f, Quotient) for f in found.body.factors)
