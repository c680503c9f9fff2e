"""Recipes of networks: every one is built, called, kept, and says what does not fit; what the layers compute is checked."""

import inspect
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import MAKERS
from markovia.runtime.double_precision import x64

nets = mk.networks
CASES = {
    "mlp": (nets.mlp(3, 2, hidden=4), [(1,), (2,)], (2,)),
    "mlp to a number": (nets.mlp(3, "scalar", hidden=4), [(3,)], ()),
    "gaussian_mlp": (nets.gaussian_mlp(3, 2, hidden=4), [(3,)], ((2,), (2,))),
    "cnn": (nets.cnn((8, 7), 3, channels=(2, 3), hidden=4, context=2), [(56,), (2,)], (3,)),
    "cnn to a number": (nets.cnn((3, 4, 4), "scalar", channels=(2,), hidden=4), [(3, 4, 4)], ()),
    "gaussian_cnn": (nets.gaussian_cnn((2, 5, 5), 3, channels=(2,), hidden=4), [(2, 5, 5)], ((3,), (3,))),
    "cnn_decoder": (nets.cnn_decoder(3, (2, 9, 7), channels=(4, 3), hidden=4), [(1,), (2,)], (2, 9, 7)),
    "cnn_decoder, flat": (nets.cnn_decoder(3, (5, 5), channels=(4,), hidden=4, flat=True), [(3,)], (25,)),
    "unet": (nets.unet((1, 9, 7), channels=(4, 6), hidden=4, context=2), [(1, 9, 7), (), (2,)], (1, 9, 7)),
    "unet of vectors": (nets.unet((9, 7), channels=(4,), hidden=4), [(63,), ()], (63,)),
    "rnn": (nets.rnn(3, 2, hidden=4), [(5, 3)], (5, 2)),
    "lstm": (nets.lstm(3, 2, hidden=4, layers=2, direction="both"), [(5, 1), (2,)], (5, 2)),
    "gru": (nets.gru(1, "scalar", hidden=4, direction="backward"), [(5,)], (5,)),
    "gaussian_rnn": (nets.gaussian_rnn(3, 2, hidden=4), [(5, 3)], ((5, 2), (5, 2))),
    "gaussian_lstm": (nets.gaussian_lstm(3, 2, hidden=4), [(5, 3)], ((5, 2), (5, 2))),
    "gaussian_gru": (nets.gaussian_gru(3, 2, hidden=4), [(5, 3)], ((5, 2), (5, 2))),
    "attention": (nets.attention(3, 2, width=8, heads=2, layers=1), [(5, 3)], (5, 2)),
    "gaussian_attention": (nets.gaussian_attention(3, 2, width=8, layers=1), [(5, 3)], ((5, 2), (5, 2))),
}  # fmt: skip


def arguments_of(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) if shape else 0.3 for shape in shapes]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_recipe_is_built_called_pickled_and_saved(case, tmp_path):
    recipe, shapes, wanted = CASES[case]
    module, given = recipe.build(0), arguments_of(shapes)
    found = module(*given)
    assert jax.tree.map(np.shape, found, is_leaf=eqx.is_array) == wanted
    with x64():  # numbers of 64 bits in and out, whatever the module's were
        assert {str(a.dtype) for a in jax.tree.leaves(module(*given))} == {"float64"}
    parameter = Parameter(recipe).with_value(module)
    m = mk.BayesianNetwork()
    m._parameters = {"net": parameter}
    m.save(tmp_path / "net.json")
    m.save(tmp_path / "net.mkz")
    twins = [
        pickle.loads(pickle.dumps(parameter)).value,
        mk.load(tmp_path / "net.json").parameters["net"],
        mk.load(tmp_path / "net.mkz").parameters["net"],
    ]
    for twin in twins:
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(twin(*given)), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(eqx.filter(module, eqx.is_array)),
            jax.tree.leaves(eqx.filter(twin, eqx.is_array)),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
    assert mk.load(tmp_path / "net.json")._parameters["net"].recipe == recipe


def test_every_network_of_the_door_has_a_case():
    door = {n for n in dir(nets) if inspect.isfunction(getattr(nets, n))} & MAKERS.keys()
    ours = {recipe.name for recipe, _, _ in CASES.values()}
    assert {"mlp", "cnn", "unet", "gru", "attention"} <= ours <= door


def test_another_seed_is_another_module_and_the_same_seed_the_same():
    a, b, c = (nets.gru(2, 1, hidden=3).build(s)(np.ones((4, 2))) for s in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


# -- what the layers compute --------------------------------------------------------------------------------------------


def test_convolutions_are_sums_of_windows():
    net = nets.cnn((5, 4), 2, channels=(3,), hidden=4).build(0)
    image = np.random.default_rng(0).normal(size=(5, 4))
    layer = net.layers[0]
    padded = np.pad(image, 1)
    by_hand = np.array(
        [
            [
                [(padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * layer.weight[c, 0]).sum() for j in range(2)]
                for i in range(3)
            ]
            for c in range(3)
        ]
    ) + np.asarray(layer.bias)
    by_hand = by_hand / (1 + np.exp(-by_hand))
    np.testing.assert_allclose(net(image), net.head(by_hand.ravel()), atol=1e-5)
    np.testing.assert_array_equal(net(image), net(image.ravel()))
    np.testing.assert_array_equal(net(image), net(image[None]))


def test_recurrent_steps_by_hand():
    x = np.random.default_rng(1).normal(size=(4, 2))
    net = nets.rnn(2, 1, hidden=3).build(0)
    state, said = np.zeros(3), []
    cell = net.cells[0][0].map
    for now in x:
        state = np.tanh(cell.weight @ np.concatenate([now, state]) + cell.bias)
        said.append(net.head.weight @ state + net.head.bias)
    np.testing.assert_allclose(net(x), said, atol=1e-6)
    back = nets.rnn(2, 1, hidden=3, direction="backward").build(0)  # the same numbers, read from the end
    np.testing.assert_allclose(back(x[::-1])[::-1], net(x), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_directions_say_what_a_step_has_seen(name):
    x = np.random.default_rng(1).normal(size=(5, 2))
    changed = x.copy()
    changed[2] += 1.0
    for direction, moved in {"forward": [2, 3, 4], "backward": [0, 1, 2], "both": [0, 1, 2, 3, 4]}.items():
        net = getattr(nets, name)(2, 1, hidden=4, direction=direction).build(0)
        apart = np.abs(np.asarray(net(changed) - net(x))).ravel()
        assert [i for i in range(5) if apart[i] > 1e-7] == moved


@pytest.mark.slow
def test_attention_by_hand_and_who_sees_whom():
    x = np.random.default_rng(2).normal(size=(4, 3))
    net = nets.attention(3, 2, width=4, heads=1, layers=1, positions=False).build(0)
    h = np.asarray(x @ net.embedding.weight.T + net.embedding.bias)

    def norm(a):
        return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)

    heads, y = net.heads[0], norm(h)
    q, k, v = (y @ getattr(heads, f"{w}_proj").weight.T for w in ("query", "key", "value"))
    share = np.exp(q @ k.T / 2.0)
    h = h + (share / share.sum(1, keepdims=True)) @ v @ heads.output_proj.weight.T
    h = h + np.stack([net.perceptrons[0](row) for row in norm(h)])
    np.testing.assert_allclose(net(x), norm(h) @ net.head.weight.T + net.head.bias, atol=1e-4)
    order = [2, 0, 3, 1]  # without positions it is a function of a set
    np.testing.assert_allclose(net(x[order]), net(x)[np.array(order)], atol=1e-5)
    placed = nets.attention(3, 2, width=4, heads=1, layers=1).build(0)
    assert not np.allclose(placed(x[order]), placed(x)[np.array(order)], atol=1e-3)
    causal = nets.attention(3, 2, width=4, heads=2, layers=2, causal=True).build(0)
    np.testing.assert_allclose(causal(x)[:3], causal(x[:3]), atol=1e-5)
    assert not np.allclose(placed(x)[:3], placed(x[:3]), atol=1e-3)


@pytest.mark.slow
def test_a_unet_sees_time_context_and_far_pixels():
    net = nets.unet((8, 8), channels=(4, 4), hidden=8, context=1).build(0)
    x = np.random.default_rng(0).normal(size=(8, 8))
    at = net(x, 0.3, np.ones(1))
    np.testing.assert_allclose(net(x.ravel(), 0.3, np.ones(1)).reshape(8, 8), at, atol=1e-6)
    assert np.abs(net(x, 0.31, np.ones(1)) - at).max() > 1e-4
    assert np.abs(net(x, 0.3, np.zeros(1)) - at).max() > 1e-4
    corner = jax.grad(lambda x: net(x, 0.3, jnp.ones(1))[0, 0])(jnp.asarray(x))
    assert np.abs(corner[-1, -1]) > 0


# -- what does not fit --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        (nets.mlp(3, 2), [(4,)], r"Perceptron takes a vector of shape \(3,\), and was given \(4,\)"),
        (nets.mlp(64, 2), [(2, 32)], r"Perceptron takes vectors, and was given \(2, 32\)"),
        (nets.gaussian_mlp(3, 2), [(2,), (2,)], r"takes a vector of shape \(3,\), and was given \(2,\), \(2,\)"),
        (nets.cnn((4, 4), 2), [(4, 5)], r"ConvolutionalEncoder takes an image of shape \(4, 4\).*given \(4, 5\)"),
        (nets.cnn_decoder(3, (4, 4)), [(4,)], r"takes a vector of shape \(3,\), and was given \(4,\)"),
        (nets.unet((4, 4)), [(15,), ()], r"UNet takes an image of shape \(4, 4\).*given \(15,\)"),
        (nets.gru(3, 2), [(5, 2)], r"Recurrent takes a sequence of shape \(steps, 3\), and was given \(5, 2\)"),
        (nets.attention(3, 2), [(2, 5, 3)], r"Attention takes a sequence of shape \(steps, 3\).*\(2, 5, 3\)"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_named(recipe, given, said):
    with pytest.raises(InvalidArgument, match=said):
        recipe.build(0)(*arguments_of(given))


def test_inside_a_node_the_parameter_is_named_too():
    for module, said in (
        (
            nets.mlp(3, 2),
            r"'net', a module of class Perceptron.*shape \(4,\).*takes a vector of shape \(3,\)",
        ),
        (eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0)), r"'net', a module of class Linear.*shape \(4,\)"),
    ):
        m = mk.BayesianNetwork()
        m.add("net", mk.Parameter(module))
        m.add("z", dist.Normal(0, 1), size=4, plate="row")
        m.add("x", lambda z, net: dist.Normal(net(z), 1), plate="row")
        with pytest.raises(InvalidArgument, match=said):
            m.fit({"z": np.zeros((5, 4)), "x": np.zeros((5, 2))}, epochs=1, seed=0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nets.cnn(8, 2), r"the image of cnn is given by whole numbers, \(height, width\).*not 8"),
        (lambda: nets.cnn((8, 0), 2), r"not \(8, 0\)"),
        (
            lambda: nets.unet((8, 8), channels=()),
            r"channels= is given by whole numbers, \(16, 32\), not \(\)",
        ),
        (lambda: nets.cnn((8, 8), 2, kernel=4), "kernel= is an odd number"),
        (lambda: nets.gru(2, 2.5), "gru: every size= is|rnn: every size= is"),
        (lambda: nets.gaussian_gru(2, "scalar"), "gaussian_gru: outputs= is"),
        (lambda: nets.lstm(2, 2, direction="up"), "direction= is 'forward', 'backward' or 'both'"),
        (lambda: nets.attention(2, 2, width=6), "the heads share out width=, and 6 is no multiple of 4"),
        (lambda: nets.unet((8, 8), activation="swish"), "activation= is"),
        (lambda: nets.rnn(2, 2, hidden=0), "hidden= is"),
    ],
)
def test_settings_are_checked(make, said):
    with pytest.raises(InvalidArgument, match=said):
        make()
