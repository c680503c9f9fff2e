"""Options that engines declare: every bad value is refused in one sentence that names the option."""

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
from markovia.inference.engine import engine_names, get_engine
from markovia.runtime.checks import (
    SECONDS,
    Choice,
    Either,
    Flag,
    Kind,
    NameLists,
    NumberRange,
    Seeding,
    Several,
    Whole,
    check,
    check_options,
    declared,
    numbers,
)
from markovia.runtime.estimator import Estimator
from model_strategies import about

READ_BY_THE_ENGINE = {
    "conditioning": {"inner"},
    "marginal-map": {"engine"},
    "gibbs": {"blocks"},
    "parallel-tempering": {"temperatures"},
    "annealed-importance": {"temperatures"},
    "annealed-langevin": {"noise", "unit"},
    "importance": {"proposal"},
    "sir": {"proposal"},
}
"""Options that need more than one value can say: names of engines, ladders, proposals."""


def bad_values(constraint):
    """Yield values that a constraint must refuse, read off what it declares."""
    yield SimpleNamespace()
    if not constraint.none:
        yield None
    match constraint:
        case Whole():
            yield from (constraint.least - 1, constraint.least + 0.5, str(constraint.least), True, np.nan)
            if constraint.most is not None:
                yield constraint.most + 1
        case NumberRange():
            yield from ("1", True, np.nan)
            if constraint.low > -np.inf:
                yield constraint.low if constraint.open in ("low", "both") else constraint.low - 1e-9
            if constraint.high < np.inf:
                yield constraint.high if constraint.open in ("high", "both") else constraint.high + 1e-9
        case NameLists():
            yield from ("no such word", 3, ["a", "b"])
        case Choice():
            yield from ("no such word", 3)
        case Flag():
            yield from (1, "yes")
        case Several():
            right = [constraint.each.least if isinstance(constraint.each, Whole) else 1.0] * (
                constraint.size or 2
            )
            yield from (
                [],
                right[0],
                str(right[0]),
                *([*right[1:], bad] for bad in bad_values(constraint.each)),
            )
            if constraint.size is not None:
                yield from (right[1:], [*right, right[0]])
        case Either():
            each = (bad for option in constraint.options for bad in bad_values(option))
            yield from (bad for bad in each if bad is not None and not constraint.admits(bad))
        case Kind():
            yield 3
        case Seeding():
            yield from (-1, 1.5, "zero", True)


@pytest.mark.parametrize("name", engine_names())
def test_every_engine_refuses_bad_values_of_every_option_and_names_it(name):
    kind = type(get_engine(name))
    for option in declared(kind):
        for bad in bad_values(option.constraint):
            with (
                about(option.name, bad),
                pytest.raises(mk.errors.InvalidArgument, match=f"^{option.name}= is .*, not "),
            ):
                kind(**{option.name: bad})


@pytest.mark.parametrize("name", engine_names())
def test_every_option_of_an_engine_says_what_it_may_be(name):
    kind = type(get_engine(name))
    said = {option.name for option in declared(kind)} | READ_BY_THE_ENGINE.get(name, set())
    assert said == {f.name for f in fields(kind)}


def test_a_time_limit_is_refused_with_the_same_sentence_everywhere():
    from markovia.runtime.clock import Clock

    asia = mk.examples.asia()
    for ask in (
        lambda: Clock(-1),
        lambda: asia.map(time_limit=-1),
        lambda: asia.log_partition(bounds=True, time_limit=-1),
        lambda: mk.engines.Gibbs(time_limit=-1),
        lambda: mk.learn_structure(asia.sample(20, seed=0), time_limit=-1),
    ):
        with pytest.raises(mk.errors.InvalidArgument) as caught:
            ask()
        assert str(caught.value) == "time_limit= is a positive number of seconds or None, not -1"


def test_a_sentence_says_what_would_be_right():
    for value, constraint, sentence in (
        (0, Whole(1), "x= is a whole number, 1 or more, not 0"),
        (0, Whole(1, none=True), "x= is a whole number, 1 or more, or None, not 0"),
        (9, Whole(1, 8), "x= is a whole number from 1 to 8, not 9"),
        ("c", Choice(("a", "b")), "x= is 'a' or 'b', not 'c'"),
        ("c", Choice(("a",), "a mapping", (dict,)), "x= is 'a' or a mapping, not 'c'"),
        (1, Flag(none=True), "x= is True, False or None, not 1"),
        (0, SECONDS, "x= is a positive number of seconds or None, not 0"),
        (2.0, NumberRange(0.0, 1.0), "x= is a number between 0 and 1, not 2.0"),
        (0, Either((Whole(1), Choice(("auto",)))), "x= is a whole number, 1 or more, or 'auto', not 0"),
        (
            [0],
            Either((Flag(), Several(Whole(1), "sizes")), none=True),
            "x= is True or False, or sizes, or None, not [0]",
        ),
    ):
        with pytest.raises(mk.errors.InvalidArgument) as caught:
            check("x", value, constraint)
        assert str(caught.value) == sentence


FAMILIES = [
    kind
    for door in (mk.mixtures, mk.topics, mk.series)
    for kind in (getattr(door, name) for name in dir(door))
    if isinstance(kind, type) and issubclass(kind, Estimator) and hasattr(kind, "fit")
]
"""Every mixture, model of topics and model of sequences that is learned."""
ESTIMATORS = [
    *(getattr(mk.classifiers, name)() for name in (
        "GaussianNaiveBayes", "BernoulliNaiveBayes", "CategoricalNaiveBayes", "NaiveBayes", "TreeAugmentedNaiveBayes",
        "BayesianNetworkClassifier", "LabelPropagation",
    )),
    *(getattr(mk.crf, name)() for name in ("CRF", "GridCRF", "ChainCRF", "MEMM", "SegmentCRF", "HiddenStateCRF")),
    mk.crf.FeatureCRF({"a": 2}, []),
    mk.crf.NeuralCRF(lambda params, x: x),
    mk.regression.GLM("poisson"),
    mk.regression.LinearRegression(),
    mk.Discretizer(),
    mk.series.SequenceMixture(mk.MarkovChain()),
    *(kind() for kind in FAMILIES if kind is not mk.series.SequenceMixture),
]  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_an_estimator_is_a_dataclass_whose_bad_settings_fit_refuses_by_name(estimator):
    settings = estimator.get_params(deep=False)
    assert set(settings) == {f.name for f in fields(estimator) if f.init}
    assert clone(estimator).get_params(deep=False).keys() == settings.keys()
    options = [o for o in declared(type(estimator)) if o.name in settings]
    assert options
    for option in options:
        for bad in bad_values(option.constraint):
            wrong = clone(estimator).set_params(**{option.name: bad})
            with pytest.raises(mk.errors.InvalidArgument, match=f"^{option.name}= is .*, not "):
                wrong.fit([[0.0], [1.0]], [0, 1])


def test_a_markov_chain_refuses_bad_settings_where_it_is_made():
    options = declared(mk.MarkovChain)
    assert {option.name for option in options} == {"order", "smoothing", "back_off"}
    for option in options:
        for bad in bad_values(option.constraint):
            with pytest.raises(mk.errors.InvalidArgument, match=f"^{option.name}= is .*, not "):
                mk.MarkovChain(**{option.name: bad})


def test_choices_may_be_whole_numbers_or_none_and_the_nearest_is_named():
    @dataclass
    class Settings:
        q: Literal[1, 2] = 1
        by: Literal["family", "row"] | None = None

    check_options(Settings(np.int64(2), "row"))
    for q, by, sentence in (
        (True, None, "q= is 1 or 2, not True"),
        (3, None, "q= is 1 or 2, not 3"),
        (1, "rows", "by= is 'family', 'row' or None, not 'rows' (did you mean 'row'?)"),
    ):
        with pytest.raises(mk.errors.InvalidArgument) as caught:
            check_options(Settings(q, by))
        assert str(caught.value) == sentence


def test_numbers_are_a_new_array_or_a_sentence_that_shows_only_the_beginning():
    given = np.array([1.0, 2.0])
    found = numbers(given, "weights are numbers")
    found[0] = 5.0
    assert given[0] == 1.0
    assert np.isnan(numbers([1, None], "weights are numbers")[1])
    for wrong in ("text", [[1, 2], [3]], [10**400]):
        with pytest.raises(mk.errors.InvalidTable, match=r"^weights are numbers, not "):
            numbers(wrong, "weights are numbers", mk.errors.InvalidTable)
    with pytest.raises(mk.errors.InvalidArgument) as caught:
        numbers(["a"] * 1000, "weights are numbers")
    assert len(str(caught.value)) < 150


def test_whole_numbers_and_numbers_of_numpy_are_welcome():
    check("x", np.int64(3), Whole(1))
    check("x", np.float32(0.5), NumberRange(0.0, 1.0, open="both"))
    check("x", np.True_, Flag())
