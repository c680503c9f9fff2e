"""Every model of sequences reads the same forms of data, and has the same verbs."""

import inspect
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

import markovia as mk
import markovia.distributions as dist
from markovia.data.sequences.sequences import read_sequences
from markovia.errors import InvalidArgument, UnknownArgument, UnsupportedModel
from markovia.inference.sequences.forecast import DrawnSteps, Forecast, GaussianSteps
from markovia.models.temporal.sequence_model import CountedSequenceModel, SequenceModel
from markovia.models.temporal.state_space_model import StateSpaceModel
from markovia.runtime.estimator import Estimator

CHAIN = {"start": [0.6, 0.4], "transition": [[0.7, 0.3], [0.2, 0.8]]}
BOTH = {"start": [CHAIN["start"]] * 2, "transition": [CHAIN["transition"]] * 2}
JOINT = np.broadcast_to(np.array(CHAIN["transition"])[:, None], (2, 2, 2))
LENGTHS = [3, 1, 4]

# name: a model with values, whether steps are symbols, and how many columns a step has
MODELS = {
    "HMM": lambda: mk.HMM(2, **CHAIN, emission_params={"probs": [[0.9, 0.1], [0.3, 0.7]]}),
    "HiddenSemiMarkov": lambda: mk.series.HiddenSemiMarkov(
        2, start=[0.6, 0.4], transition=[[0, 1], [1, 0]], max_duration=3, duration_params={"rates": [1.0, 0.5]},
        emission_params={"probs": [[0.9, 0.1], [0.3, 0.7]]},
    ),
    "InfiniteHMM": lambda: mk.series.InfiniteHMM(max_iter=6, random_state=0).fit(observed(1, True), LENGTHS),
    "CoupledHMM": lambda: mk.series.CoupledHMM(
        [2, 2], emission="categorical", start=BOTH["start"], transition=[JOINT, JOINT],
        emission_params={"probs": [[[0.9, 0.1], [0.3, 0.7]]] * 2},
    ),
    "FactorialHMM": lambda: mk.series.FactorialHMM(
        [2, 2], **BOTH, emission_params={"means": [[[0.0], [1.0]], [[0.0], [3.0]]], "covariance": [[0.5]]}
    ),
    "SequenceMixture": lambda: mk.series.SequenceMixture(
        mk.MarkovChain(smoothing=1), 2, max_iter=3, tol=0.0, random_state=0
    ).fit(observed(1, True), LENGTHS),
    "MarkovChain": lambda: mk.MarkovChain(CHAIN["transition"], start=CHAIN["start"]),
    "LinearStateSpace": lambda: mk.LinearStateSpace(0.9, 0.5, 1, 1, initial_cov=1),
    "ARIMA": lambda: mk.ARIMA((1, 0, 0), params=[0.5, 1.0]),
    "StructuralSeries": lambda: mk.series.StructuralSeries(params=[1.0, 0.5]),
    "DynamicFactor": lambda: mk.series.DynamicFactor(2, params=[1.0, 0.5, 1.0, 1.0, 0.5]),
    "SwitchingStateSpace": lambda: mk.SwitchingStateSpace(1.0, [[[0.1]], [[4.0]]], 1.0, 0.5),
    "NonlinearStateSpace": lambda: mk.series.NonlinearStateSpace(_half, _itself),
    "ParticleFilter": lambda: mk.ParticleFilter(
        dist.Normal(0, 1), _moved, _shown, n_particles=40, random_state=0
    ),
}  # fmt: skip
SYMBOLS = {"HMM", "HiddenSemiMarkov", "InfiniteHMM", "CoupledHMM", "SequenceMixture", "MarkovChain"}
PAIRS = {"CoupledHMM", "DynamicFactor"}
SAVED = {
    "NonlinearStateSpace",
    "ParticleFilter",
    "HMM",
    "InfiniteHMM",
    "MarkovChain",
    "LinearStateSpace",
    "ARIMA",
    "StructuralSeries",
    "DynamicFactor",
    "CoupledHMM",
    "FactorialHMM",
    "HiddenSemiMarkov",
    "SequenceMixture",
    "SwitchingStateSpace",
}
WITH_INPUTS = {"HMM", "InfiniteHMM", "LinearStateSpace", "ARIMA", "StructuralSeries", "DynamicFactor",
               "NonlinearStateSpace", "ParticleFilter"}  # fmt: skip


def _half(x):
    return 0.5 * x


def _itself(x):
    return x


def _moved(x):
    return dist.Normal(0.5 * x, 1)


def _shown(x):
    return dist.Normal(x, 1)


@cache
def model(name):
    return MODELS[name]()


def observed(columns, symbols):
    rng = np.random.default_rng(7)
    shape = (sum(LENGTHS), columns)
    return rng.integers(0, 2, shape) if symbols else rng.normal(size=shape)


def data(name):
    """Return steps of three sequences, one after the other."""
    return observed(2 if name in PAIRS else 1, name in SYMBOLS)


def forms(steps):
    """Return the same sequences in every form that is read, with the arguments that go with each."""
    parts = np.split(steps, np.cumsum(LENGTHS)[:-1])
    named = {f"c{j}": steps[:, j] for j in range(steps.shape[1])}
    who = np.repeat(["u", "v", "w"], LENGTHS)
    frame = pd.DataFrame({"who": who, **named})
    dates = pd.Series(pd.date_range("2024-01-01", periods=len(steps), freq="D"))
    # interleaved ids, where only the dates know the order inside each
    mixed = frame.assign(when=dates).sample(frac=1, random_state=1)
    first = mixed.sort_values("who", key=lambda ids: ids, kind="stable")
    return {
        "lengths": (steps, {"lengths": LENGTHS}),
        "list": (parts, {}),
        "frames": ([pd.DataFrame({n: v[who == w] for n, v in named.items()}) for w in "uvw"], {}),
        "ids": (frame, {"by": "who"}),
        "ids and dates": (first, {"by": "who"}),
        "read before": (read_sequences(parts), {}),
    }


def every_model(kind):
    found = {one for direct in kind.__subclasses__() for one in [direct, *every_model(direct)]}
    return {one for one in found if one.__module__.startswith("markovia.")}


def test_every_public_model_of_sequences_is_tried_here():
    model("HMM")
    public = {name for name in dir(mk.series) if isinstance(getattr(mk.series, name), type)}
    assert {one.__name__ for one in every_model(SequenceModel)} & public == set(MODELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_each_form_of_data_gives_the_same_probability(name):
    steps = data(name)
    expected = model(name).log_prob(steps, LENGTHS)
    assert expected.shape == (3,)
    assert np.isfinite(expected).all()
    for form, (given, how) in forms(steps).items():
        np.testing.assert_allclose(model(name).log_prob(given, **how), expected, atol=1e-12, err_msg=form)
    assert model(name).score(steps, LENGTHS) == pytest.approx(expected.sum(), abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_wrong_lengths_are_refused_in_one_sentence_everywhere(name):
    steps, one = data(name), model(name)
    verbs = [one.log_prob, one.score, *([one.bic] if isinstance(one, CountedSequenceModel) else [])]
    for verb in [*verbs, *([one.filter] if hasattr(one, "filter") else [])]:
        with pytest.raises(InvalidArgument, match=r"^lengths= add up to 4, but there are 8 steps$"):
            verb(steps, [2, 2])
        with pytest.raises(InvalidArgument, match=r"^these sequences were read before; lengths= and by= are"):
            verb(read_sequences(steps), [8])


@pytest.mark.parametrize("name", sorted(set(MODELS) - WITH_INPUTS))
def test_a_model_that_nothing_drives_refuses_inputs(name):
    with pytest.raises(InvalidArgument, match="no inputs drive this model"):
        model(name).score(data(name), LENGTHS, inputs=np.ones(8))


def test_inputs_are_read_in_every_form():
    driven = mk.LinearStateSpace(0.9, 0.5, 1, 1, initial_cov=1, observation_input=[[2.0]])
    steps, u = data("LinearStateSpace"), np.arange(8.0)[:, None]
    # what an input adds to an observation can be taken off it beforehand
    expected = model("LinearStateSpace").log_prob(steps - 2 * u, LENGTHS)
    for form, (inputs, how) in forms(u).items():
        given, own = forms(steps)[form]
        assert own == how
        np.testing.assert_allclose(driven.log_prob(given, **how, inputs=inputs), expected, atol=1e-12)
    np.testing.assert_allclose(driven.log_prob(steps, LENGTHS, inputs=u[:, 0]), expected, atol=1e-12)
    with pytest.raises(InvalidArgument, match="those of sequence 0 do not"):
        driven.log_prob(steps, LENGTHS, inputs=[u[:2], u[2:4], u[4:]])


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"NonlinearStateSpace", "ParticleFilter"}))
def test_draws_are_repeated_by_their_seed_and_can_be_scored(name):
    one = model(name)
    many, again = one.sample(4, 3, seed=5), one.sample(4, 3, seed=5)
    drawn, repeated = (found[0] if isinstance(found, tuple) else found for found in (many, again))
    assert len(drawn) == 3
    assert all(len(sequence) == 4 for sequence in drawn)
    for a, b in zip(drawn, repeated, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(one.score(drawn))
    with pytest.raises(InvalidArgument, match="steps= is a whole number, 1 or more"):
        one.sample(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MODELS) - {"InfiniteHMM", "SequenceMixture", "MarkovChain"}))
def test_a_clone_has_the_settings_and_answers_the_same(name):
    one, steps = model(name), data(name)
    twin = clone(one)
    assert twin.get_params(deep=False).keys() == one.get_params(deep=False).keys()
    np.testing.assert_array_equal(twin.log_prob(steps, LENGTHS), one.log_prob(steps, LENGTHS))


@pytest.mark.parametrize("name", sorted(n for n in MODELS if n != "MarkovChain"))
def test_settings_are_declared_once_and_none_is_lost_on_the_way(name):
    kind = type(model(name))
    assert issubclass(kind, Estimator)
    changed = {n: object() for n in kind._get_param_names()}
    section = inspect.cleandoc(kind.__doc__).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    named = [line for line in section.splitlines() if not line.startswith(" ")]
    assert {n for line in named for n in line.split(", ")} <= set(changed)
    assert all(value is changed[n] for n, value in kind(**changed).get_params(deep=False).items())
    if name not in ("CoupledHMM", "FactorialHMM", "InfiniteHMM", "SequenceMixture"):
        with pytest.raises(UnknownArgument, match="no argument 'no_such_setting'"):
            kind(**changed, no_such_setting=1)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_answers_the_same_or_says_that_files_do_not_hold_it(name, tmp_path):
    one, steps, path = model(name), data(name), tmp_path / "model.json"
    if name in SAVED:
        one.save(path)
        np.testing.assert_allclose(
            mk.load(path).log_prob(steps, LENGTHS), one.log_prob(steps, LENGTHS), atol=1e-12
        )
    else:
        with pytest.raises(UnsupportedModel):
            one.save(path)
        assert not path.exists()
    if name != "ParticleFilter":  # compiled functions are not pickled
        twin = pickle.loads(pickle.dumps(one))
        np.testing.assert_allclose(twin.log_prob(steps, LENGTHS), one.log_prob(steps, LENGTHS), atol=1e-12)


@pytest.mark.parametrize("name", [n for n in MODELS if n in SYMBOLS | {"FactorialHMM"}])
def test_criteria_are_the_score_and_the_number_of_free_parameters(name):
    one, steps = model(name), data(name)
    score, count = one.score(steps, LENGTHS), len(LENGTHS) if name == "SequenceMixture" else sum(LENGTHS)
    assert one.aic(steps, LENGTHS) == pytest.approx(2 * one.n_free - 2 * score)
    assert one.bic(steps, LENGTHS) == pytest.approx(np.log(count) * one.n_free - 2 * score)
    free = {"HMM": 5, "CoupledHMM": 14, "MarkovChain": 3, "FactorialHMM": 10, "SequenceMixture": 7}
    assert one.n_free == free.get(name, one.n_free)


@pytest.mark.parametrize(
    "name",
    ["LinearStateSpace", "DynamicFactor", "SwitchingStateSpace", "NonlinearStateSpace"],
)
def test_every_state_space_forecasts_with_the_one_class(name):
    one, steps = model(name), data(name)
    assert isinstance(one, StateSpaceModel)
    ahead = one.forecast(steps, 2, LENGTHS, level=0.8)
    assert type(ahead) is Forecast
    assert len(ahead.mean) == 3
    assert len(ahead.mean[0]) == 2
    for i in range(3):
        np.testing.assert_allclose(ahead.lower[i], ahead.quantile(0.1)[i])
        assert (ahead.lower[i] < ahead.mean[i]).all()
        assert (ahead.mean[i] < ahead.upper[i]).all()
        assert (ahead.state_lower[i] < ahead.state_upper[i]).all()
    table = ahead.to_pandas()
    assert len(table) == 3 * 2 * steps.shape[1]
    np.testing.assert_allclose(table["mean"], np.concatenate([np.ravel(np.transpose(m)) for m in ahead.mean]))
    with pytest.raises(InvalidArgument, match="level= is between 0 and 1"):
        one.forecast(steps, 1, LENGTHS, level=1.0)
    with pytest.raises(InvalidArgument, match="q= is between 0 and 1"):
        ahead.quantile(0.0)


def test_inputs_of_steps_ahead_have_a_row_each():
    driven = mk.LinearStateSpace(0.9, 0.5, 1, 1, initial_cov=1, observation_input=[[2.0, 1.0]])
    u = np.ones((3, 2))
    ahead = driven.forecast([0.0, 1.0, 2.0], 2, inputs=u, future_inputs=[[1.0, 0.0], [0.0, 5.0]])
    plain = model("LinearStateSpace").forecast(np.array([0.0, 1.0, 2.0]) - 3.0, 2)
    np.testing.assert_allclose(ahead.mean[0] - [[2.0], [5.0]], plain.mean[0])
    for wrong in ([[1.0], [2.0]], [[1.0, 0.0]], [[1.0, np.nan]] * 2, "soon", None):
        with pytest.raises(InvalidArgument, match=r"^future_inputs= (has one row a step, 2|are numbers)"):
            driven.forecast([0.0, 1.0, 2.0], 2, inputs=u, future_inputs=wrong)


def test_quantiles_of_mixtures_are_where_their_distribution_function_is_the_level():
    rng = np.random.default_rng(0)
    w, means = rng.dirichlet(np.ones(3), 4), rng.normal(size=(4, 3, 2)) * 3
    roots = rng.normal(size=(4, 3, 2, 2))
    laws = GaussianSteps(w, means, roots @ roots.swapaxes(2, 3))
    sd = np.sqrt(np.einsum("tkii->tki", laws.covs))
    for q in (0.025, 0.3, 0.9):
        below = np.einsum("tk,tka->ta", w, norm.cdf(laws.quantile(q)[:, None], means, sd))
        np.testing.assert_allclose(below, q, atol=1e-9)
    # moments against many draws' would be noisy: against E[xx'] - E[x]E[x]' by hand
    second = np.einsum("tk,tkab->tab", w, laws.covs + np.einsum("tka,tkb->tkab", means, means))
    np.testing.assert_allclose(laws.cov, second - np.einsum("ta,tb->tab", laws.mean, laws.mean), atol=1e-12)
    one = GaussianSteps.of(means[:, 0], laws.covs[:, 0])
    np.testing.assert_allclose(one.quantile(0.9), norm.ppf(0.9, means[:, 0], sd[:, 0]))


def test_forecasts_of_draws_have_the_moments_and_quantiles_of_the_draws():
    draws = np.random.default_rng(0).normal(size=(50, 3, 2))
    named = Forecast([DrawnSteps({"a": draws[..., 0], "b": draws})], [DrawnSteps(draws[..., 1])], 0.9)
    np.testing.assert_allclose(named.cov[0]["b"][1], np.cov(draws[:, 1].T, ddof=0))
    np.testing.assert_allclose(named.cov[0]["a"], draws[..., 0].var(axis=0))
    np.testing.assert_allclose(named.upper[0]["b"], np.quantile(draws, 0.95, axis=0))
    np.testing.assert_allclose(named.state_lower[0], np.quantile(draws[..., 1], 0.05, axis=0))
    assert named.to_pandas()["number"].unique().tolist() == ["a", "b[0]", "b[1]"]
    assert repr(named) == "Forecast(sequences=1, level=0.9)"
    assert named.draws is not None
    assert Forecast([GaussianSteps.of(draws[0], np.ones((3, 2, 2)))], [], 0.9).draws is None


def test_forecasts_of_states_are_the_one_class_and_stand_for_their_probabilities():
    chain, p = mk.MarkovChain([[0.9, 0.1], [0.5, 0.5]], ["dry", "wet"]), np.array([[0.5, 0.5], [0.7, 0.3]])
    ahead = chain.forecast([["dry", "wet"], ["wet"]], 2)
    hidden = model("HMM").forecast(data("HMM"), 2, LENGTHS)
    assert type(ahead) is type(hidden) is Forecast
    assert (len(ahead), np.asarray(ahead).shape, len(hidden.states), len(hidden.observed)) == (
        2,
        (2, 2, 2),
        3,
        0,
    )
    for found in (*ahead, ahead[-1]):
        np.testing.assert_allclose(found, p)
    # the covariance of "is it this state", by summing over the states
    for t in range(2):
        each = np.eye(2) - p[t]
        np.testing.assert_allclose(ahead.cov[0][t], np.einsum("s,si,sj->ij", p[t], each, each))
    assert ahead.quantile(0.4)[0].tolist() == [[0, 0], [1, 0]]
    assert ahead.quantile(0.6)[0].tolist() == [[1, 1], [1, 0]]
    table = ahead.to_pandas()
    assert table["number"].tolist() == ["dry", "dry", "wet", "wet"] * 2
    np.testing.assert_allclose(table["mean"], [*p[:, 0], *p[:, 1]] * 2)
    np.testing.assert_allclose(hidden.to_pandas()["mean"], np.concatenate([m.T.ravel() for m in hidden]))
    # one sequence as it is stays one for NumPy
    assert np.asarray(chain.forecast(["dry", "wet"], 2)).shape == (2, 2)


@pytest.mark.parametrize("name", ["LinearStateSpace", "MarkovChain", "HMM"])
def test_forecasts_after_frames_with_dates_carry_the_dates_of_their_steps(name):
    one, steps = model(name), data(name)[:5]
    months = pd.date_range("2024-01-31", periods=5, freq="ME")
    frame = pd.DataFrame(steps.reshape(5, -1)).rename(columns=str).assign(when=months)
    ahead = one.forecast(frame.iloc[::-1], 2)
    wanted = ["2024-06-30", "2024-07-31"]
    assert ahead.dates[0].astype(str).tolist() == wanted
    table = ahead.to_pandas()
    assert table.index.name == "date"
    assert table.index.astype(str).tolist() == wanted * (len(table) // 2)
    np.testing.assert_allclose(ahead[0], one.forecast(steps, 2)[0])
    # two sequences of days and of weeks, one of which has two steps only
    mixed = frame.assign(who=list("aabbb"), when=pd.to_datetime(
        ["2024-01-01", "2024-01-02", "2024-01-01", "2024-01-08", "2024-01-15"]
    ))  # fmt: skip
    dates = one.forecast(mixed, 2, by="who").dates
    assert [d.astype(str).tolist() for d in dates] == [
        ["2024-01-03", "2024-01-04"],
        ["2024-01-22", "2024-01-29"],
    ]
    # a list of frames, and dates that go on in no known way
    listed = one.forecast([frame, frame], 1)
    assert [d.astype(str).tolist() for d in listed.dates] == [wanted[:1]] * 2
    uneven = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05", "2024-01-06", "2024-01-09"])
    assert one.forecast(frame.assign(when=uneven), 2).dates is None
    assert one.forecast(steps, 2).to_pandas().index.tolist()[:2] == [0, 1]
