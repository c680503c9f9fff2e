"""Presets that are learned by a critic: what they learn, whose questions they answer, and in which units."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import markovia as mk
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.learning.neural.adversarial import CRITIC

RNG = np.random.default_rng(0)
ANGLES = np.arange(8) * np.pi / 4
CENTRES = 2 * np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
LABELS = np.repeat(["a", "b"], 60)
ROWS = np.where(LABELS[:, None] == "a", 0.0, 6.0) + RNG.normal(0, [1.0, 0.5], (120, 2))


@pytest.fixture(scope="module")
def gan():
    """Return a small model of two classes, trained for a moment, and as it was."""
    model = mk.deep.GAN(2, hidden=16, layers=1, epochs=500, batch=60, learning_rate=0.005, random_state=0)
    return model.fit(ROWS, LABELS)


@pytest.mark.slow
def test_rows_are_drawn_of_classes(gan):
    assert gan.classes_.tolist() == ["a", "b"]
    for label in "ab":
        own = gan.sample(300, seed=1, y=label)
        np.testing.assert_allclose(own.mean(0), ROWS[label == LABELS].mean(0), atol=1.5)
    drawn = gan.sample(300, seed=1)
    np.testing.assert_array_equal(drawn, gan.sample(300, seed=1))
    network = gan.network().sample(1, given={"row": 300}, seed=1)
    np.testing.assert_array_equal(drawn, np.asarray(network["x"])[0])
    codes = RNG.normal(size=(3, 2))
    one = gan.inverse_transform(codes, y=["a", "b", "a"])
    assert one.shape == (3, 2)
    np.testing.assert_allclose(gan.inverse_transform(codes[::-1], y=["a", "b", "a"])[::-1], one)
    other = gan.inverse_transform(codes, y="b")
    np.testing.assert_allclose(other[1], one[1])
    assert abs(other[0] - one[0]).max() > 1


@pytest.mark.slow
def test_it_is_kept_by_pickle_and_goes_on_with_its_critic(gan):
    twin = pickle.loads(pickle.dumps(gan))
    np.testing.assert_array_equal(twin.sample(5, seed=0), gan.sample(5, seed=0))
    before = twin.network_.fit_.details["extra"][CRITIC].value
    twin.set_params(learning_rate=1e-6).partial_fit(ROWS, LABELS)
    after = twin.network_.fit_.details["extra"][CRITIC].value
    np.testing.assert_allclose(before.layers[0].weight, after.layers[0].weight, atol=1e-4)
    np.testing.assert_allclose(twin.sample(5, seed=0), gan.sample(5, seed=0), atol=1e-3)


@pytest.mark.slow
def test_units_of_columns_do_not_matter():
    unit, shift = np.array([1e9, 1e-9]), np.array([3e9, 2e-9])
    settings = {"latent": 2, "hidden": 8, "layers": 1, "epochs": 3, "random_state": 0}
    plain = mk.deep.GAN(**settings).fit(ROWS).sample(50, seed=0)
    other = mk.deep.GAN(**settings).fit(ROWS * unit + shift).sample(50, seed=0)
    np.testing.assert_allclose((other - shift) / unit, plain, atol=0.05)
    constant = np.column_stack([ROWS, np.full(120, 7.0)])
    drawn = mk.deep.GAN(**settings).fit(constant).sample(50, seed=0)
    assert np.isfinite(drawn).all()
    assert abs(drawn[:, 2] - 7).max() < 3


def test_bad_input_is_named(gan):
    with pytest.raises(NotFittedError):
        mk.deep.GAN().sample(1)
    with pytest.raises(UnsupportedModel, match="no density"):
        gan.score_samples(ROWS)
    with pytest.raises(InvalidArgument, match=r"classes \['a', 'b'\]"):
        gan.sample(2, y="c")
    with pytest.raises(InvalidArgument, match="2 columns"):
        gan.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(InvalidArgument, match="give y="):
        gan.partial_fit(ROWS)
    with pytest.raises(InvalidArgument, match="whole rows"):
        mk.deep.GAN(epochs=1).fit(np.where(np.eye(120, 2) > 0, np.nan, ROWS))
    with pytest.raises(InvalidArgument, match="8 x 8"):
        mk.deep.GAN(epochs=1, progressive=True).fit(ROWS)
    with pytest.raises(InvalidArgument, match="objective"):
        mk.deep.GAN(objective="gan").fit(ROWS)


@pytest.mark.slow
def test_pictures_grow_from_coarse_to_fine():
    pictures = RNG.normal(size=(40, 64)) + np.kron([[3.0, 0], [0, 3]], np.ones((4, 4))).ravel()
    model = mk.deep.GAN(
        2, hidden=8, epochs=40, batch=40, learning_rate=0.01, progressive=True, random_state=0, critic_steps=1
    ).fit(pictures)
    assert model.sizes_ == (4, 8)
    assert model.sample(3, seed=0).shape == (3, 64)
    network = model.network()
    assert network._parameters["generator"].recipe.arguments == (2, (4, 8))
    assert len(network.fit_.details["extra"][CRITIC].value.blocks) == 2
    # what was learned at 4 x 4 is still there: the mean picture in coarse pixels
    coarse = model.sample(200, seed=0).mean(0).reshape(2, 4, 2, 4).mean((1, 3))
    assert coarse[0, 0] > coarse[0, 1] + 0.5
    assert coarse[1, 1] > coarse[1, 0] + 0.5


@pytest.mark.slow
def test_a_code_without_labels_is_read_off_rows():
    model = mk.deep.InfoGAN(
        2,
        codes=2,
        hidden=16,
        layers=1,
        epochs=80,
        batch=60,
        learning_rate=0.01,
        random_state=0,
        critic_steps=1,
    )
    model.fit(ROWS)
    shares = model.transform(ROWS)
    np.testing.assert_allclose(shares.sum(1), 1)
    drawn = [model.sample(100, seed=0, y=k) for k in (0, 1)]
    told = np.mean([(model.predict(d) == k).mean() for k, d in enumerate(drawn)])
    assert told > 0.8  # the bound on the information is large, whatever the code came to mean


@pytest.mark.slow
def test_an_autoencoder_reconstructs_and_has_a_density():
    line = RNG.normal(size=(120, 1)) * [3.0, -1.0] + [10.0, 0.0] + RNG.normal(0, 0.1, (120, 2))
    model = mk.deep.AdversarialAutoencoder(
        1, hidden=16, layers=1, epochs=200, batch=60, learning_rate=0.01, random_state=0
    ).fit(line)
    back = model.inverse_transform(model.transform(line))
    assert np.mean((back - line) ** 2 / line.var(0)) < 0.05
    assert abs(model.transform(line).std() - 1) < 0.3
    logs = model.score_samples(line[:3])
    np.testing.assert_array_equal(logs, model.network().log_evidence({"x": line[:3]}, by="row"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_all_modes_of_a_ring_are_found_by_the_defaults(seed):
    rng = np.random.default_rng(0)
    rows = CENTRES[rng.integers(0, 8, 1000)] + 0.05 * rng.normal(size=(1000, 2))
    found = mk.learning.mode_coverage(
        mk.deep.GAN(random_state=seed).fit(rows).sample(2000, seed=1), CENTRES, 0.2
    )
    assert found.covered == 8
    assert found.near > 0.8
