"""The bundled classics: numbers from the literature, the circulating files, and the list of names."""

import gzip
import math
import re
from itertools import product

import numpy as np
import pytest

import markovia as mk
from markovia import examples
from markovia.models.gallery import textbook_examples
from markovia.models.gallery.bundled import BUNDLED
from places import BENCHMARKS


@pytest.mark.parametrize("name", examples.names())
def test_every_bundled_model_is_complete_named_after_itself_and_fresh(name):
    one, two = examples.get(name), examples.get(name)
    one.validate()
    assert one.name == name
    assert one is not two
    assert one.allclose(two)
    one.rename(one.variables[0], "changed")
    assert examples.get(name).allclose(two)
    assert BUNDLED[name.replace("_", "-")] == (type(two).__name__, len(two))


def test_names_cover_every_public_builder():
    builders = {n for n in examples.__all__ if n not in ("names", "get")}
    assert set(examples.names()) == builders
    assert [name.replace("-", "_") for name in BUNDLED] == examples.names()
    for module in (examples, textbook_examples):
        own = {
            n
            for n, f in vars(module).items()
            if callable(f) and getattr(f, "__module__", "") == module.__name__
        }
        assert {n for n in own if not n.startswith("_")} <= builders | {"names", "get"}


@pytest.mark.parametrize("spelling", ["monty_hall", "monty-hall", "Monty-Hall"])
def test_names_may_have_dashes_and_capitals(spelling):
    assert examples.get(spelling).allclose(examples.monty_hall())


@pytest.mark.parametrize(
    ("wrong", "right"), [("asiaa", "asia"), ("sprinkle", "sprinkler"), ("monty hall", "monty_hall")]
)
def test_an_unknown_name_comes_with_the_nearest_one(wrong, right):
    with pytest.raises(mk.errors.InvalidArgument, match=f"did you mean '{right}'"):
        examples.get(wrong)


def test_a_name_that_is_no_string_is_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="no bundled model"):
        examples.get(3)


@pytest.mark.parametrize("name", ["asia", "cancer", "earthquake"])
def test_repository_networks_equal_the_circulating_files(name):
    path = BENCHMARKS / "bif" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip("the benchmark networks are not here")
    states, tables = read_simple_bif(gzip.decompress(path.read_bytes()).decode())
    bn = examples.get(name)
    assert {v: [str(s) for s in bn.states(v)] for v in bn.variables} == states
    assert list(states) == bn.variables
    for child, (parents, rows) in tables.items():
        assert bn.parents(child) == parents
        for key, row in rows.items():
            at = tuple(bn.variable(p).index(s) for p, s in zip(parents, key, strict=True))
            np.testing.assert_allclose(bn[child].values[at], row, atol=1e-12)
        assert len(rows) == bn[child].n_rows


def read_simple_bif(text):
    """Read the plain subset of BIF that the three small files use, independently of the library's reader."""
    states = {
        name: [s.strip() for s in listed.split(",")]
        for name, listed in re.findall(r"variable (\w+) \{\s*type discrete \[ \d+ \] \{([^}]*)\};", text)
    }
    tables = {}
    for child, given, body in re.findall(r"probability \( (\w+)(?: \| ([^)]*))? \) \{([^}]*)\}", text):
        parents = [p.strip() for p in given.split(",")] if given else []
        rows = dict.fromkeys([()], *re.findall(r"table ([^;]*);", body)) if not parents else {}
        rows |= {
            tuple(s.strip() for s in key.split(",")): n
            for key, n in re.findall(r"\(([^)]*)\) ([^;]*);", body)
        }
        tables[child] = (parents, {k: [float(x) for x in n.split(",")] for k, n in rows.items()})
    return states, tables


def test_sprinkler_has_the_published_posteriors():
    bn = mk.examples.sprinkler()
    assert bn.variables == ["cloudy", "sprinkler", "rain", "wet"]
    assert all(bn.states(v) == ["no", "yes"] for v in bn.variables)
    assert bn.query("wet")["yes"] == pytest.approx(0.6471, abs=1e-12)
    seen = bn.marginals(given={"wet": "yes"})
    # Murphy's tutorial: 0.4298 for the sprinkler and 0.7079 for rain
    assert seen["sprinkler"]["yes"] == pytest.approx(0.2781 / 0.6471, abs=1e-12)
    assert seen["rain"]["yes"] == pytest.approx(0.4581 / 0.6471, abs=1e-12)
    both = bn.query("sprinkler", given={"wet": "yes", "rain": "yes"})["yes"]
    assert both == pytest.approx(0.1945, abs=5e-5), "rain explains the wet grass away"


def test_student_has_the_published_posteriors():
    bn = mk.examples.student()

    def p(name, state, **given):
        return bn.query(name, given=given)[state]

    assert p("letter", "strong") == pytest.approx(0.502, abs=5e-4)
    assert p("letter", "strong", intelligence="low") == pytest.approx(0.389, abs=5e-4)
    assert p("letter", "strong", intelligence="low", difficulty="easy") == pytest.approx(0.513, abs=5e-4)
    assert p("intelligence", "high", grade="C") == pytest.approx(0.079, abs=5e-4)
    assert p("difficulty", "hard", grade="C") == pytest.approx(0.629, abs=5e-4)
    assert p("intelligence", "high", letter="weak") == pytest.approx(0.14, abs=5e-3)
    assert p("intelligence", "high", grade="C", sat="high") == pytest.approx(0.578, abs=5e-4)
    assert p("intelligence", "high", grade="B") == pytest.approx(0.175, abs=5e-4)
    assert p("intelligence", "high", grade="B", difficulty="hard") == pytest.approx(0.34, abs=5e-3)
    row = {"intelligence": "high", "difficulty": "easy", "grade": "B", "sat": "high", "letter": "weak"}
    assert bn.log_prob([row])[0] == pytest.approx(math.log(0.004608))


def test_asia_has_the_published_marginals():
    marginals = mk.examples.asia().marginals()
    published = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.0648, "xray": 0.1103, "dysp": 0.436}
    for name, p in published.items():
        assert marginals[name]["yes"] == pytest.approx(p, abs=5e-5)


def test_cancer_and_earthquake_by_hand():
    cancer = mk.examples.cancer()
    assert cancer.query("Cancer")["True"] == pytest.approx(
        0.9 * (0.3 * 0.03 + 0.7 * 0.001) + 0.1 * (0.3 * 0.05 + 0.7 * 0.02)
    )
    alarm = mk.examples.earthquake().query("Alarm")["True"]
    assert alarm == pytest.approx(0.01 * (0.02 * 0.95 + 0.98 * 0.94) + 0.99 * (0.02 * 0.29 + 0.98 * 0.001))


def test_switching_doors_wins_two_times_in_three():
    bn = mk.examples.monty_hall()
    for choice, opened in product([1, 2, 3], repeat=2):
        given = {"choice": choice, "opened": opened}
        if choice == opened:
            with pytest.raises(mk.errors.ImpossibleEvidence):
                bn.query("car", given=given)
            continue
        other = 6 - choice - opened
        assert bn.query("car", given=given)[other] == pytest.approx(2 / 3)
    assert bn.independent("car", "choice")
    assert not bn.independent("car", "choice", given="opened")


def test_misconception_has_the_published_partition_function_and_beliefs():
    mn = mk.examples.misconception()
    assert math.exp(mn.log_partition()) == pytest.approx(7_201_840)
    joint = mn.joint()
    assert joint[0, 1, 1, 0] == pytest.approx(5_000_000 / 7_201_840)
    assert joint[1, 1, 0, 0] == pytest.approx(10 / 7_201_840)
    assert mn.query("B")[1] == pytest.approx((5_001_500 + 300_010) / 7_201_840)
    assert mn.query("B", given={"C": 0})[1] == pytest.approx(101_010 / 1_701_110)
    assert mn.markov_blanket("A") == {"B", "D"}


def test_wet_grass_follows_the_published_sums():
    bn = mk.examples.wet_grass()
    assert bn.query("grass", given={"rain": "yes"})["yes"] == pytest.approx(0.8019)
    assert bn.query("grass")["yes"] == pytest.approx(0.44838)
    assert bn.query("rain", given={"grass": "yes"})["yes"] == pytest.approx(0.35769, abs=5e-6)
    assert bn.do(sprinkler="yes").query("rain")["yes"] == pytest.approx(0.2)


def rolls(text):
    return {f"roll{t}": int(face) for t, face in enumerate(text, start=1)}


@pytest.mark.parametrize(
    ("seen", "likelihood", "path", "log_path"),
    [
        ("1215621624", 9.0405248e-9, "fair", -19.0723815),
        ("1665626636", 6.3979069e-7, "loaded", -14.5240103),
    ],
)
def test_the_casino_decodes_two_published_sequences(seen, likelihood, path, log_path):
    bn = mk.examples.dishonest_casino(T=10)
    given = rolls(seen)
    assert math.exp(bn.log_evidence(given=given)) == pytest.approx(likelihood, rel=1e-7)
    best = bn.map(given=given)
    assert set(best.values()) == {path}
    assert best.log_prob == pytest.approx(log_path, abs=1e-6)


def test_one_roll_of_the_casino_by_bayes_rule():
    bn = mk.examples.dishonest_casino(T=1)
    assert bn.query("die1", given={"roll1": 6})["loaded"] == pytest.approx(3 / 4)
    assert bn.query("die1", given={"roll1": 2})["loaded"] == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("seen", "fair", "loaded"),
    [("1215621624", 5.2115865e-9, 7.878118e-10), ("1665626636", None, 4.923824e-7)],
)
def test_paths_of_one_die_have_their_published_probability(seen, fair, loaded):
    bn = mk.examples.dishonest_casino(T=10)
    for die, p in (("fair", fair), ("loaded", loaded)):
        if p is not None:
            row = rolls(seen) | {f"die{t}": die for t in range(1, 11)}
            assert math.exp(bn.log_prob([row])[0]) == pytest.approx(p, rel=1e-6)


def test_a_long_casino_does_not_underflow():
    bn = mk.examples.dishonest_casino(T=2000)
    given = {f"roll{t}": 6 if t % 3 else 1 for t in range(1, 2001)}
    log_p = bn.log_evidence(given=given)
    assert -5000 < log_p < -1000
    assert bn.query("die1000", given=given)["loaded"] > 0.9


def test_casino_needs_a_roll():
    with pytest.raises(mk.errors.InvalidArgument, match="T= is a whole number, 1 or more"):
        mk.examples.dishonest_casino(T=0)
