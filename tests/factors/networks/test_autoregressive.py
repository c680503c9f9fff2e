"""Autoregressive laws of states: sums over all vectors, samples against probabilities, masks of convolutions."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.runtime.double_precision import x64

F = mk.flows
CASES = {
    "made": F.made(4, hidden=6, depth=1, context=2),
    "made of one": F.made(1, hidden=3, depth=1),
    "nade": F.nade(4, hidden=5),
    "pixels": F.pixel_cnn((2, 3), hidden=4, blocks=2, context=2),
    "states of pixels": F.pixel_cnn((2, 2), states=3, hidden=4, blocks=1),
}


def shaken(recipe, by=0.5):
    rng = np.random.default_rng(1)
    return jax.tree.map(
        lambda a: a + by * rng.normal(size=a.shape) if hasattr(a, "dtype") else a, recipe.build(0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_probabilities_sum_to_one_and_samples_follow(name):
    with x64():
        law = shaken(CASES[name])
        context = (jnp.array([0.3, -1.0]),) if law.context_size else ()
        n = int(np.prod(law.shape))
        every = np.array(list(product(range(law.states), repeat=n))).reshape(-1, *law.shape)
        keys = jax.random.split(jax.random.PRNGKey(0), 20_000)
        logs, drawn = jax.jit(
            lambda every, keys: (
                jax.vmap(lambda x: law.log_prob(x, *context))(every),
                jax.vmap(lambda k: law.sample(k, *context))(keys),
            )
        )(every, keys)
        chances = np.exp(logs)
        np.testing.assert_allclose(chances.sum(), 1, rtol=1e-10)
        codes = np.asarray(drawn).reshape(len(drawn), -1) @ law.states ** np.arange(n - 1, -1, -1)
        counts = np.bincount(codes, minlength=len(every))
        errors = (counts - 20_000 * chances) / np.sqrt(20_000 * chances * (1 - chances) + 1)
        assert np.abs(errors).max() < 4.5


def test_pixels_look_up_and_left_only():
    with x64():
        net = shaken(F.pixel_cnn((3, 3), hidden=4, blocks=2, context=1)).network
        x = jnp.linspace(-1, 1, 9).reshape(3, 3)
        looks, told = jax.jit(jax.jacfwd(lambda x, c: net(x, c)[0], argnums=(0, 1)))(x, jnp.ones(1))
        looks = np.asarray(looks).reshape(9, 9)
        assert not np.triu(looks).any()
        assert looks[4, 0] != 0
        assert looks[4, 3] != 0
        assert np.all(np.asarray(told) != 0)  # the first pixel is told, too


def test_bad_values_and_shapes():
    with pytest.raises(InvalidArgument, match=r"pixel_cnn .* shape \(2, 2\) given 0 .* shape \(3, 3\)"):
        CASES["states of pixels"].build(0).log_prob(np.zeros((3, 3)))
    assert not CASES["states of pixels"].build(0).support(np.array([[0, 3], [0, 0]]))
    assert CASES["states of pixels"].build(0).support(np.array([[0, 2], [0, 0]]))
