"""Series, Bayesian models, topics and causal questions in the studio: the numbers are those of direct calls."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import MarkoviaError
from markovia.studio.jobs import bayesian_models, causality, families
from studio_client import studio


class Heard:
    """A report that keeps what it hears."""

    def __init__(self):
        self.notes, self.shown = [], []

    def note(self, text, share=None):
        self.notes.append(text)

    def show(self, result):
        self.shown.append(result)


@pytest.fixture(scope="module")
def page():
    with studio() as made:
        yield made


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(4, 0.5, 30), rng.normal(0, 1, 40)])
    y[5] = np.nan
    path = tmp_path_factory.mktemp("series") / "levels.csv"
    pd.DataFrame({"y": y, "word": ["a"] * len(y)}).to_csv(path, index=False)
    return y, str(path)


def test_a_trend_is_smoothed_and_forecast_as_by_the_kalman_filter(levels):
    y, path = levels
    found = families.series(
        Heard(), folder=None, data=path, column="y", trend="local level", steps=3, level=0.9
    )
    direct = mk.series.StructuralSeries("local level").fit(y)
    ahead = direct.forecast(y, 3, level=0.9)
    assert found["forecast"]["low"] == pytest.approx(ahead.lower[0][:, 0])
    assert found["forecast"]["high"] == pytest.approx(ahead.upper[0][:, 0])
    smoothed = direct.smooth(y)
    assert found["smoothed"]["mean"] == pytest.approx(smoothed.mean[0][:, 0])
    wide = np.array(found["smoothed"]["high"]) - np.array(found["smoothed"]["low"])
    assert wide == pytest.approx(2 * 1.6448536 * np.sqrt(smoothed.cov[0][:, 0, 0]))
    assert found["observed"][5] is None
    assert found["bic"] == direct.bic_


def test_states_of_a_hidden_markov_model_come_in_the_order_of_their_means(levels):
    y, path = levels
    found = families.series(Heard(), folder=None, data=path, column="y", model="hmm", states=2, steps=4)
    direct = mk.HMM(2, emission="gaussian", n_init=5, random_state=0).fit(y)
    order = np.argsort(direct.means_[:, 0])
    assert found["means"] == pytest.approx(direct.means_[order, 0])
    assert np.transpose(found["states"]) == pytest.approx(direct.smooth(y)[0][:, order])
    assert np.transpose(found["ahead"]) == pytest.approx(direct.forecast(y, 4)[0][:, order])
    assert np.argsort(direct.means_[:, 0])[found["path"]].tolist() == direct.decode(y)[0].tolist()
    assert found["path"][10] == 1
    assert found["path"][60] == 0


def test_bands_of_mixtures_are_their_quantiles():
    weights, means, sds = np.array([[0.3, 0.7], [1.0, 0.0]]), np.array([0.0, 5.0]), np.array([1.0, 2.0])
    low = families._spread(weights, means, sds)(0.1)
    rng = np.random.default_rng(1)
    which = rng.random(400_000) < 0.3
    drawn = np.where(which, rng.normal(0, 1, 400_000), rng.normal(5, 2, 400_000))
    assert low[0] == pytest.approx(np.quantile(drawn, 0.1), abs=0.02)
    assert low[1] == pytest.approx(-1.2815516, abs=1e-6)


@pytest.mark.parametrize(("column", "sentence"), [("nobody", "nobody"), ("word", "no numbers")])
def test_a_series_that_is_none_is_refused(levels, column, sentence):
    with pytest.raises(MarkoviaError, match=sentence):
        families.series(Heard(), folder=None, data=levels[1], column=column)


@pytest.mark.slow
def test_draws_in_chunks_are_those_of_one_run_and_are_shown_as_they_come(tmp_path):
    heard = Heard()
    settings = {"draws": 60, "warmup": 100, "chains": 2, "seed": 3}
    found = families.posterior(heard, folder=tmp_path, source={"example": "challenger"}, **settings)
    model, given, targets, _ = bayesian_models.challenger()
    direct = model.query(targets, given=given, engine=mk.engines.NUTS(**settings))
    table = direct.summary()
    assert [row["mean"] for row in found["summary"]] == pytest.approx(table["mean"].tolist())
    assert found["quantities"][0]["traces"] == [pytest.approx(x) for x in direct.draws["intercept"]]
    assert [shown["draws"] for shown in heard.shown] == [10, 20, 30, 40, 50]
    assert heard.shown[1]["quantities"][0]["traces"][0] == pytest.approx(direct.draws["intercept"][0, :20])
    assert any("compiling" in note for note in heard.notes)
    assert list(tmp_path.iterdir()) == []


def test_ranks_are_counted_in_each_chain():
    rng = np.random.default_rng(0)
    found = families.rank_histograms(rng.normal(size=(4, 500)), bins=20)
    assert found.sum(axis=0).tolist() == [100] * 20
    assert found.sum(axis=1).tolist() == [500] * 4


def test_a_regression_is_built_of_columns(tmp_path):
    frame = pd.DataFrame({"y": [1.0, 2.0, 4.0, 3.5], "x": [0.0, 1.0, 2.0, 3.0], "s": ["a", "b", "a", "c"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    problem = bayesian_models.regression(str(tmp_path / "rows.csv"), "y", ["x", "s"])
    assert list(problem.labels.values()) == ["x (a standard deviation)", "s = b", "s = c"]
    assert problem.given["design"][:, 0] == pytest.approx((frame["x"] - 1.5) / frame["x"].std(ddof=0))
    assert problem.given["design"][:, 1].tolist() == [0, 1, 0, 0]
    assert list(problem.model.variables) == ["intercept", "slope", "sigma", "outcome"]
    for wrong, sentence in [
        ({"outcome": "y", "predictors": ["y"]}, "other columns"),
        ({"outcome": "s", "predictors": ["x"], "family": "logistic"}, "two states"),
        ({"outcome": "y", "predictors": ["x"], "family": "poisson"}, "needs counts"),
        ({"outcome": "y", "predictors": ["z"]}, "'z'"),
    ]:
        with pytest.raises(MarkoviaError, match=sentence):
            bayesian_models.regression(str(tmp_path / "rows.csv"), **wrong)


def test_topics_are_those_of_the_library_the_largest_first(tmp_path):
    lines = ["cat dog cat purr", "dog bark dog", "stock market fell", "market bank stock stock market"] * 6
    (tmp_path / "texts.txt").write_text("\n".join(lines))
    data = str(tmp_path / "texts.txt")
    found = families.topics(Heard(), folder=None, data=data, components=2, words=3, iterations=60, seed=1)
    direct = mk.LDA(2, max_iter=60, random_state=1).fit(mk.topics.Corpus.read(lines, stop_words="english"))
    order = np.argsort(-direct.topic_shares_)
    assert [t["share"] for t in found["topics"]] == pytest.approx(direct.topic_shares_[order])
    assert [[w for w, _ in t["words"]] for t in found["topics"]] == [direct.top_words(3)[k] for k in order]
    assert np.array([d["shares"] for d in found["documents"]]) == pytest.approx(
        direct.transform(mk.topics.Corpus.read(lines, stop_words="english"))[:, order]
    )
    top = found["topics"][0]
    about = found["documents"][top["documents"][0]]["text"].split()
    assert set(about) & {w for w, _ in top["words"]}


def test_an_effect_is_identified_with_its_sets_and_derivation(page):
    model = page.ask("/api/models", {"example": "asia"})["id"]
    found = page.ask(f"/api/models/{model}/identify", {"treatment": ["bronc"], "outcome": ["dysp"]})
    direct = mk.causal.identify(mk.examples.asia(), treatment="bronc", outcome="dysp")
    assert found["identified"]
    assert found["formula"] == f"{direct.question} = {direct.expression}"
    assert found["adjustment"] == list(direct.adjustment)
    assert found["adjustment_sets"] == [
        list(s) for s in mk.causal.adjustment_sets(mk.examples.asia(), "bronc", "dysp")
    ]
    assert len(found["derivation"]) == len(direct.derivation().steps)


def test_what_cannot_be_identified_says_why(page):
    hidden = {"treatment": ["bronc"], "outcome": ["dysp"], "latent": ["smoke", "either", "lung"]}
    model = page.ask("/api/models", {"example": "asia"})["id"]
    found = page.ask(f"/api/models/{model}/identify", hidden)
    assert not found["identified"]
    assert found["formula"] is None
    assert found["hedge"]
    wrong = page.ask(f"/api/models/{model}/identify", {"treatment": ["nobody"], "outcome": ["dysp"]}, 400)
    assert "nobody" in wrong["error"]


@pytest.mark.slow
def test_an_effect_from_a_table_is_that_of_the_library(tmp_path):
    asia = mk.examples.asia()
    rows = asia.sample(600, seed=2)
    rows.to_csv(tmp_path / "asia.csv", index=False)
    heard = Heard()
    found = causality.effect(
        heard, folder=None, model=mk.io.dumps(asia, "json"), data=str(tmp_path / "asia.csv"),
        treatment="bronc", outcome="dysp", control="no", treated="yes",
    )  # fmt: skip
    direct = mk.causal.effect(str(tmp_path / "asia.csv"), asia, "bronc", "dysp", control="no", treated="yes")
    assert found["value"] == pytest.approx(direct.value)
    assert found["interval"] == pytest.approx(list(direct.interval))
    judged = direct.report()
    assert found["verdict"] == judged.verdict
    assert [(r["kind"], r["passed"]) for r in found["refutations"]] == [
        (r.kind, r.passed) for r in judged.refutations
    ]
    assert heard.shown[0]["value"] == found["value"]


def test_a_counterfactual_of_one_row_is_bounded_or_chosen(page):
    model = page.ask("/api/models", {"example": "asia"})["id"]
    facts = {"bronc": "yes", "dysp": "yes", "smoke": "yes"}
    body = {
        "targets": ["dysp"],
        "facts": {name: {"state": state} for name, state in facts.items()},
        "do": {"bronc": "no"},
    }
    bounds = page.ask(f"/api/models/{model}/counterfactual", body)["answers"][0]
    direct = mk.examples.asia().counterfactual("dysp", given=facts, do={"bronc": "no"})
    assert bounds["low"] == pytest.approx(direct.lower.tolist())
    assert bounds["high"] == pytest.approx(direct.upper.tolist())
    chosen = page.ask(f"/api/models/{model}/counterfactual", {**body, "mechanism": "monotone"})["answers"][0]
    exact = mk.examples.asia().counterfactual("dysp", given=facts, do={"bronc": "no"}, mechanism="monotone")
    assert chosen["p"] == pytest.approx(exact.values.tolist())
    # evidence is spelled as in all other questions: a finding, or plainly the state
    plain = {"targets": ["dysp"], "given": {**facts, "smoke": {"state": "yes"}}, "do": {"bronc": "no"}}
    assert page.ask(f"/api/models/{model}/counterfactual", plain)["answers"][0] == bounds


def test_models_without_directions_have_no_counterfactuals(page):
    model = page.ask("/api/models", {"example": "misconception"})["id"]
    said = page.ask(f"/api/models/{model}/counterfactual", {"targets": ["A"], "do": {"B": "1"}}, 400)
    assert "directed network" in said["error"]


def test_bayesian_examples_are_listed_and_one_source_is_asked_for(page):
    assert [e["name"] for e in page.ask("/api/bayesian")] == list(bayesian_models.EXAMPLES)
    assert "exactly one" in page.ask("/api/jobs", {"kind": "posterior"}, 400)["error"]
    with pytest.raises(MarkoviaError, match="no Bayesian example"):
        bayesian_models.of({"example": "nobody"})
    with pytest.raises(MarkoviaError, match="every variable of this model has states"):
        bayesian_models.of({"model": mk.io.dumps(mk.examples.asia(), "json"), "given": {}})


@pytest.mark.slow
def test_codes_of_rows_fill_gaps_and_lead_from_row_to_row(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((40, 9)) < 0.5, 1.0, 0.0)
    frame = pd.DataFrame(rows, columns=[f"p{i}" for i in range(9)])
    frame["word"] = "a"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = families.codes(Heard(), folder=tmp_path, data=str(tmp_path / "rows.csv"), latent=2, epochs=2)
    assert found["side"] == 3
    assert len(found["names"]) == 9
    gaps, filled = np.array(found["gaps"], dtype=float), np.array(found["filled"])
    assert np.isnan(gaps[:, 4:]).all()
    assert (filled[:, :4] == gaps[:, :4]).all()
    assert ((filled[:, 4:] > 0) & (filled[:, 4:] < 1)).all()
    assert np.shape(found["ways"]) == (6, 8, 9)
    # a way begins where its row is reconstructed to, and ends where the next one begins
    assert found["ways"][0][-1] == pytest.approx(found["ways"][1][0])
    assert np.isfinite(found["score"])
    for wrong, sentence in [
        ({"columns": ["p0"]}, "two or more"),
        ({"columns": ["p0", "word"]}, "no numbers"),
    ]:
        with pytest.raises(MarkoviaError, match=sentence):
            families.codes(Heard(), folder=tmp_path, data=str(tmp_path / "rows.csv"), **wrong)
