"""`device=`: every verb hands it to the engine, every engine runs on the processor, a missing GPU is said once."""

import dataclasses
import inspect
import warnings
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import DeviceWarning, InvalidArgument, Unanswered
from markovia.inference.engine import engine_for, engine_names, get_engine
from markovia.runtime import devices

pytestmark = pytest.mark.filterwarnings("ignore::markovia.errors.DeviceWarning")

ASIA = mk.examples.asia()
GIVEN = {"xray": "yes"}
ROWS = pd.DataFrame({"xray": ["yes", "no", "yes"], "smoke": ["no", None, "yes"]})

VERBS = {
    "query": lambda m, **o: m.query("lung", GIVEN, **o).values,
    "query of several": lambda m, **o: m.query(["lung", "bronc"], GIVEN, **o).values,
    "marginals": lambda m, **o: m.marginals(GIVEN, ["lung", "tub"], **o)["tub"].values,
    "marginals of rows": lambda m, **o: m.marginals(ROWS, ["lung"], **o)["lung"].to_numpy(),
    "map": lambda m, **o: m.map(GIVEN, **o).log_posterior,
    "three best": lambda m, **o: [e.log_posterior for e in m.map(GIVEN, m=3, **o)],
    "best of some": lambda m, **o: m.map(GIVEN, ["lung", "smoke"], **o).log_prob,
    "log_evidence": lambda m, **o: m.log_evidence(GIVEN, **o),
    "log_evidence of rows": lambda m, **o: m.log_evidence(ROWS, **o),
    "log_partition": lambda m, **o: m.log_partition(GIVEN, **o),
    "sample": lambda m, **o: m.sample(5, GIVEN, seed=1, **o).to_numpy(),
    "log_prob": lambda m, **o: m.log_prob(ROWS, **o),
    "predict": lambda m, **o: m.predict(ROWS, "lung", **o).to_numpy(),
    "predict_proba": lambda m, **o: m.predict_proba(ROWS, ["lung", "tub"], **o).to_numpy(),
}
EXACT = (
    "auto",
    "junction-tree",
    "variable-elimination",
    "conditioning",
    "sliced-elimination",
    "enumeration",
    "gaussian",
)


@dataclasses.dataclass(frozen=True)
class OnCard:
    """An exact engine that notes the device of every question."""

    device: devices.Device | None = None

    name: ClassVar[str] = "on-card"
    exact: ClassVar[bool] = True
    asked: ClassVar[list[devices.Device | None]] = []

    def _noted(self):
        self.asked.append(self.device)
        return get_engine("variable-elimination")

    def joint(self, problem, targets):
        return self._noted().joint(problem, targets)

    def marginals(self, problem, targets):
        return self._noted().marginals(problem, targets)

    def log_mass(self, problem):
        return self._noted().log_mass(problem)

    def best(self, problem, targets, m):
        return self._noted().best(problem, targets, m)

    def sample(self, problem, n, rng):
        return self._noted().sample(problem, n, rng)


@pytest.fixture
def card():
    OnCard.asked.clear()
    return OnCard()


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """A machine without a GPU, on which nobody has been told so yet."""
    monkeypatch.setattr(devices, "_looked", lambda: (None, "there is none here"))
    monkeypatch.setattr(devices, "_said", set())


def same(one, other):
    if np.asarray(one).dtype == object:
        assert np.array_equal(one, other)
    else:
        np.testing.assert_allclose(one, other, atol=1e-12)


def gaussian():
    """A model of a state and two numbers, of which the last is barren in questions about the first two."""
    m = mk.BayesianNetwork()
    m.add("a", p=[0.3, 0.7])
    m.add("b", parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    m.add("x", mk.LinearGaussian(0.0, variance=1.0))
    m.add("y", mk.LinearGaussian(0.0, {"x": 2.0}, 1.0))
    return m


# -- what the verbs hand over ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_hands_the_device_to_the_engine(verb, card):
    ask = VERBS[verb]
    same(ask(ASIA, engine=card, device="gpu"), ask(ASIA, engine="variable-elimination"))
    assert card.asked
    assert set(card.asked) == {"gpu"}
    card.asked.clear()
    ask(ASIA, engine=OnCard(device="gpu"))  # the engine's own holds where none is given
    assert set(card.asked) == {"gpu"}
    card.asked.clear()
    ask(ASIA, engine=OnCard(device="gpu"), device="cpu")
    assert set(card.asked) == {"cpu"}


def test_what_a_question_needs_besides_is_asked_on_the_same_device(card):
    field = mk.examples.misconception()
    name, other = field.variables[:2]
    seen = {name: field.states(name)[0]}
    found = field.query(
        other, seen, engine=card, device="gpu"
    )  # and log Z, for the probability of what is seen
    assert found.info.log_evidence == pytest.approx(field.log_evidence(seen))
    field.log_prob([seen], engine=card, device="gpu")
    field.map(seen, engine=card, device="gpu")
    assert set(card.asked) == {"gpu"}
    card.asked.clear()
    ASIA.query("lung", {"dysp": "yes"}, engine=card, device="gpu")
    once = len(card.asked)
    halves = {"xray": mk.Jeffrey([0.5, 0.5]), "dysp": "yes"}
    same(ASIA.query("lung", halves, engine=card, device="gpu").values, ASIA.query("lung", halves).values)
    assert card.asked == ["gpu"] * len(card.asked)
    assert len(card.asked) > 2 * once


def test_a_device_goes_with_a_time_limit():
    @dataclasses.dataclass(frozen=True)
    class Both(OnCard):
        time_limit: float | None = None

    both = get_engine(Both(), 2, "gpu")
    assert (both.time_limit, both.device) == (2.0, "gpu")
    assert ASIA.query("lung", engine=Both(), time_limit=2, device="gpu").info.engine == "on-card"


# -- the processor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", EXACT)
def test_every_exact_engine_answers_every_verb_on_the_processor(engine):
    for name, ask in VERBS.items():
        try:
            usual = ask(ASIA, engine=engine)
        except Unanswered:
            with pytest.raises(Unanswered):
                ask(ASIA, engine=engine, device="cpu")
            continue
        same(ask(ASIA, engine=engine, device="cpu"), usual)
        assert name


def test_every_engine_runs_on_the_processor():
    for name in engine_names():
        assert type(get_engine(name, None, "cpu")) is type(get_engine(name))
    with pytest.raises(InvalidArgument, match="no time limit"):
        get_engine("enumeration", 1.0, "cpu")


def test_every_kind_of_model_is_answered_on_the_processor():
    m = gaussian()
    rows = {"x": [0.0, 1.0]}
    same(m.query("y", {"x": 1.0}, device="cpu").mean(), 2.0)
    same(m.predict(rows, "y", device="cpu").to_numpy(), [0.0, 2.0])
    same(m.log_prob(rows, device="cpu"), m.log_prob(rows))
    assert m.log_evidence({"x": 1.0}, device="cpu") == m.log_evidence({"x": 1.0})
    assert len(m.sample(3, device="cpu")) == 3
    assert m.marginals(device="cpu")["a"].values == pytest.approx([0.3, 0.7])
    bounds = ASIA.log_partition(bounds=True, device="cpu")
    assert bounds.lower <= 1e-9 <= bounds.upper + 2e-9


# -- the GPU -----------------------------------------------------------------------------------------------------------


def test_without_a_gpu_auto_says_so_once_and_the_processor_answers():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name, ask in VERBS.items():
            same(ask(ASIA, device="gpu"), ask(ASIA))
            assert name
    told = [w for w in said if issubclass(w.category, DeviceWarning)]
    assert len(told) == 1
    assert str(told[0].message) == 'device="gpu": there is none here; the processor answers'
    assert told[0].filename == __file__


def test_auto_and_the_engines_that_run_there_have_the_setting():
    has = {n for n in engine_names() if hasattr(get_engine(n), "device")}
    assert {"auto", "sliced-elimination"} <= has
    for name in has:
        assert get_engine(name).device is None
        assert get_engine(name, None, "gpu").device == "gpu"
        with pytest.raises(InvalidArgument, match="'cpu', 'gpu' or None"):
            dataclasses.replace(get_engine(name), device="cuda")
    assert get_engine("sliced") is get_engine("sliced-elimination")


@pytest.mark.parametrize("engine", ["enumeration", "variable-elimination", "icm", "nuts"])
def test_an_engine_without_the_setting_refuses_the_gpu(engine):
    sentence = f"engine '{engine}' runs on the processor only; leave device= out, or use engine='auto'"
    with pytest.raises(InvalidArgument) as refused:
        get_engine(engine, None, "gpu")
    assert str(refused.value) == sentence
    for ask in VERBS.values():
        with pytest.raises(InvalidArgument, match="runs on the processor only"):
            ask(ASIA, engine=engine, device="gpu")


@pytest.mark.parametrize("wrong", ["cuda", "GPU", "", 0, True, ["gpu"]])
@pytest.mark.parametrize("engine", ["auto", "enumeration", OnCard()])
def test_what_is_no_device_is_refused(wrong, engine):
    for ask in VERBS.values():
        with pytest.raises(InvalidArgument) as refused:
            ask(ASIA, engine=engine, device=wrong)
        assert str(refused.value).startswith(f"device= is 'cpu', 'gpu' or None, not {wrong!r}")
    if wrong == "GPU":
        assert str(refused.value).endswith("(did you mean 'gpu'?)")


def test_the_gpu_is_for_tables():
    m, rows = gaussian(), {"x": [0.0, 1.0]}
    for ask in (
        lambda e: m.query("y", {"x": 1.0}, engine=e, device="gpu"),
        lambda e: m.marginals({"x": 1.0}, engine=e, device="gpu"),
        lambda e: m.map({"x": 1.0}, engine=e, device="gpu"),
        lambda e: m.log_evidence({"x": 1.0}, engine=e, device="gpu"),
        lambda e: m.log_partition({"x": 1.0}, engine=e, device="gpu"),
        lambda e: m.sample(2, engine=e, device="gpu"),
        lambda e: m.marginals(pd.DataFrame(rows), ["y"], engine=e, device="gpu"),
        lambda e: m.log_prob(rows, engine=e, device="gpu"),
        lambda e: m.predict(rows, "y", engine=e, device="gpu"),
        lambda e: m.predict_proba(rows, "y", engine=e, device="gpu"),
    ):
        with pytest.raises(InvalidArgument, match=r"^models that are more than tables .*leave device= out$"):
            ask("auto")
        with pytest.raises(InvalidArgument, match="engine 'gaussian' runs on the processor only"):
            ask("gaussian")
    with pytest.raises(InvalidArgument, match=r"^bounds run on the processor only; leave device= out$"):
        ASIA.log_partition(bounds=True, engine=OnCard(), device="gpu")


def test_barren_numbers_are_not_in_the_way(card):
    m = gaussian()
    assert m.query("a", {"b": 1}, engine=card, device="gpu")[1] == pytest.approx(0.56 / 0.59)
    assert m.predict({"b": [1]}, "a", engine=card, device="gpu").tolist() == [1]
    assert set(card.asked) == {"gpu"}


def test_an_engine_may_have_a_counterpart_with_the_setting():
    @dataclasses.dataclass(frozen=True)
    class Both(OnCard):
        continuous: ClassVar[str] = f"{__name__}:OnCard"

    @dataclasses.dataclass(frozen=True)
    class One(OnCard):
        continuous: ClassVar[str] = "markovia.inference.gaussian.strong_elimination:Gaussian"

    problem = gaussian()._problem({"x": 1.0})
    assert engine_for(Both(device="gpu"), problem) == OnCard(device="gpu")
    assert engine_for(One(device="cpu"), problem).name == "gaussian"
    with pytest.raises(InvalidArgument, match="more than tables"):
        engine_for(One(device="gpu"), problem)


@pytest.mark.slow
def test_draws_of_a_posterior_and_rows_with_a_guide_are_no_work_for_the_gpu():
    m = mk.BayesianNetwork()
    m.add("mean", mk.distributions.Normal(0.0, 1.0))
    m.add("x", lambda mean: mk.distributions.Normal(mean, 1.0))
    draws = SimpleNamespace(
        program=None
    )  # as a posterior made of draws has one; nothing looks at it before the refusal
    for ask in (m.query, lambda n, **o: m.sample(2, **o)):
        with pytest.raises(InvalidArgument, match="more than tables"):
            ask("x", given=draws, engine=OnCard(), device="gpu")
    with pytest.raises(InvalidArgument, match="more than tables"):
        m.sample(2, device="gpu")
    with pytest.raises(InvalidArgument, match="engine 'amortised' runs on the processor only"):
        m.log_evidence({"x": np.zeros((3, 2))}, by="row", device="gpu")
    with pytest.raises(InvalidArgument, match="'cpu', 'gpu' or None"):
        m.log_evidence({"x": np.zeros((3, 2))}, by="row", device="tpu")


# -- what it costs not to ask ------------------------------------------------------------------------------------------


def test_nobody_looks_for_a_gpu_where_the_processor_is_asked_for(monkeypatch):
    def looked():
        raise AssertionError("nobody asked")

    monkeypatch.setattr(devices, "_looked", looked)
    for ask in VERBS.values():
        ask(ASIA, device="cpu")


def test_the_verbs_say_what_a_device_is():
    for verb in ("query", "marginals", "map", "log_partition", "sample"):
        method = getattr(mk.BayesianNetwork, verb)
        assert inspect.signature(method).parameters["device"].default is None
        assert "device" in inspect.getdoc(method)
