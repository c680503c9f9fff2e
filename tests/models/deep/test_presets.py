"""Every preset and every verb: each answers, or says in one sentence why not; what it says is what its network says."""

import inspect
import pickle

import numpy as np
import pytest

import markovia as mk
from markovia.errors import MarkoviaError

RNG = np.random.default_rng(0)
BITS = (RNG.random((24, 4)) < [0.2, 0.8, 0.5, 0.5]).astype(float)
NUMBERS = RNG.normal([0.0, 5.0, -1.0], [1.0, 0.1, 3.0], (24, 3))
LABELS = ["left", "right"] * 12
QUICK = {"epochs": 2, "batch": 12, "random_state": 0}
SEQUENCES = BITS.reshape(4, 6, 4)


def presets():
    """Return an instance of every preset with the rows that it learns from."""
    deep = mk.deep
    net = {"hidden": 4, "layers": 1, **QUICK}
    return {
        "RBM": (deep.RBM(2, **QUICK), (BITS,)),
        "DBM": (deep.DBM((2, 2), pretrain=1, **QUICK), (BITS,)),
        "DBN": (deep.DBN((2, 2), tune_epochs=1, **QUICK), (BITS,)),
        "ConvolutionalRBM": (deep.ConvolutionalRBM(1, image=(2, 2), filter=2, **QUICK), (BITS,)),
        "ConditionalRBM": (deep.ConditionalRBM(2, **QUICK), (NUMBERS, BITS)),
        "SigmoidBeliefNetwork": (deep.SigmoidBeliefNetwork((2,), **QUICK), (BITS,)),
        "VAE": (deep.VAE(2, **net), (BITS,)),
        "ConditionalVAE": (deep.ConditionalVAE(2, **net), (BITS, LABELS)),
        "SemiSupervisedVAE": (deep.SemiSupervisedVAE(2, **net), (BITS, [*LABELS[:20], *[None] * 4])),
        "SequenceVAE": (deep.SequenceVAE(2, **net), (SEQUENCES,)),
        "GAN": (deep.GAN(latent=2, hidden=4, **QUICK), (NUMBERS,)),
        "InfoGAN": (deep.InfoGAN(latent=2, hidden=4, **QUICK), (NUMBERS,)),
        "AdversarialAutoencoder": (deep.AdversarialAutoencoder(latent=2, hidden=4, **QUICK), (NUMBERS,)),
        "Flow": (deep.Flow(bend="affine", layers=2, hidden=4, **QUICK), (NUMBERS,)),
        "Autoregressive": (deep.Autoregressive(hidden=4, **QUICK), (BITS,)),
        "Diffusion": (deep.Diffusion(steps=4, hidden=4, **QUICK), (NUMBERS,)),
        "EnergyModel": (deep.EnergyModel(4, 1, objective="score-matching", **QUICK), (NUMBERS,)),
    }


NAMES = sorted(n for n in dir(mk.deep) if inspect.isclass(getattr(mk.deep, n)))
IN_DEPTH = {"RBM", "SigmoidBeliefNetwork", "VAE", "Flow", "Diffusion"}
"""One of each kind of network; the others are tried by `make test-all`."""


def test_every_preset_is_tried():
    assert sorted(presets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_that_is_not_fitted_says_so(name):
    model, rows = presets()[name]
    for verb in ("sample", "network", "score_samples", "transform"):
        if hasattr(model, verb):
            arguments = rows if verb in ("score_samples", "transform") else ()
            if name == "ConditionalRBM" and verb in ("sample", "network"):
                arguments = (NUMBERS[:1],)
            with pytest.raises((MarkoviaError, ValueError), match="fit"):
                getattr(model, verb)(*arguments)


@pytest.mark.parametrize(
    "name", [n if n in IN_DEPTH else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
@pytest.mark.filterwarnings(
    "ignore::markovia.errors.ConvergenceWarning", "ignore::markovia.errors.ApproximateWarning"
)
def test_verbs_answer_and_agree_with_the_network(name, tmp_path):
    model, rows = presets()[name]
    assert model.fit(*rows) is model
    scored = rows if name == "ConditionalRBM" else rows[:1]
    asked = (NUMBERS[:3],) if name == "ConditionalRBM" else (3,)
    draws = model.sample(*asked, seed=1)
    assert (draws == model.sample(*asked, seed=1)).all()
    assert np.isfinite(draws).all()
    assert draws.shape[-1] == rows[-1 if name == "ConditionalRBM" else 0].shape[-1]
    answers = {"sample": draws}
    if name in ("GAN", "InfoGAN"):  # an implicit model has no density
        with pytest.raises(MarkoviaError, match="densit"):
            model.score_samples(*scored)
    else:
        answers["score_samples"] = model.score_samples(*scored)
        assert answers["score_samples"].shape == (len(rows[0]),)
        assert np.isfinite(answers["score_samples"]).all()
    if isinstance(getattr(model, "network_", None), mk.BayesianNetwork) and "score_samples" in answers:
        data = model._data(model._read(rows[0], reset=False))
        said = model.network().log_evidence(data, by="row")
        assert said == pytest.approx(answers["score_samples"], abs=1e-9)
    for verb in ("score_samples", "transform"):  # a row's answer depends on the row alone
        if hasattr(model, verb) and not (verb == "score_samples" and name in ("GAN", "InfoGAN")):
            said = getattr(model, verb)(*scored)
            assert getattr(model, verb)(*(r[::-1] for r in scored))[::-1] == pytest.approx(said, abs=1e-6)
            assert getattr(model, verb)(*(r[:1] for r in scored)) == pytest.approx(said[:1], abs=1e-6)
    for again in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path)):
        assert type(again) is type(model)
        assert (again.sample(*asked, seed=1) == draws).all()
        if "score_samples" in answers:
            assert again.score_samples(*scored) == pytest.approx(answers["score_samples"], abs=1e-9)
    before = pickle.dumps(model.get_params(deep=False))
    assert model.partial_fit(*rows) is model
    assert pickle.dumps(model.get_params(deep=False)) == before
    assert not np.array_equal(model.sample(*asked, seed=1), np.zeros(1))


def _saved(model, folder):
    model.save(folder / "model.mkz")
    return mk.load(folder / "model.mkz")
