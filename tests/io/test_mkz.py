"""Models in zip files: text and arrays side by side, presets, modules of one's own, and files that are damaged."""

import io
import json
import zipfile

import equinox as eqx
import jax
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, ParseError, UnknownFormat, UnsupportedModel
from markovia.io import registry
from markovia.io.native.json_paths import parse_json
from markovia.io.native.native_estimators import read_value, written_value


def pixels(z, decoder):
    return dist.Bernoulli(logits=decoder(z))


def code(x, encoder):
    return dist.Normal(*encoder(x))


BITS = (np.random.default_rng(0).random((40, 5)) < 0.4).astype(float)


@pytest.fixture(scope="module")
def trained():
    m = mk.BayesianNetwork()
    m.add("decoder", mk.Parameter(mk.networks.mlp(2, 5, hidden=6, layers=1)))
    m.add("encoder", mk.Parameter(mk.networks.gaussian_mlp(5, 2, hidden=6, layers=1)))
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    m.add("x", pixels, plate="row")
    m.guide("z", code)
    return m.fit({"x": BITS}, epochs=2, batch=10, seed=0)


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(path, contents, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, data in contents:
            file.writestr(name, data)
    return path


@pytest.mark.slow
def test_a_trained_network_comes_back_bit_by_bit(trained, tmp_path):
    path = tmp_path / "vae.mkz"
    trained.save(path)
    twin = mk.load(path, kind=mk.BayesianNetwork)
    for name, module in trained.parameters.items():
        for a, b in zip(jax.tree.leaves(eqx.filter(module, eqx.is_array)),
                        jax.tree.leaves(eqx.filter(twin.parameters[name], eqx.is_array)), strict=True):  # fmt: skip
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    given = {"x": BITS[:3]}
    np.testing.assert_array_equal(trained.log_evidence(given, by="row"), twin.log_evidence(given, by="row"))
    inside = members(path)
    text = json.loads(inside.pop("model.json"))
    assert text["kind"] == "bayesian-network"
    assert set(text["learned"]["decoder"]["leaves"]) == {
        f".layers[{i}].{w}" for i in (0, 1) for w in ("weight", "bias")
    }
    arrays = [np.load(io.BytesIO(data), allow_pickle=False) for data in inside.values()]
    assert sorted(a.shape for a in arrays) == sorted([(6, 2), (6,), (5, 6), (5,), (6, 5), (6,), (4, 6), (4,)])
    again = tmp_path / "again.mkz"
    twin.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_other_models_are_kept_too(tmp_path):
    mixture = mk.GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 2)))
    mixture.save(tmp_path / "mixture.mkz")
    twin = mk.load(tmp_path / "mixture.mkz")
    np.testing.assert_array_equal(twin.means_, mixture.means_)
    assert len(members(tmp_path / "mixture.mkz")) > 3
    mk.load("asia").save(tmp_path / "asia.MKZ")
    assert mk.load(tmp_path / "asia.MKZ").allclose(mk.load("asia"))
    mk.load("asia").save(tmp_path / "asia.bin", format="mkz")
    assert mk.load(tmp_path / "asia.bin", format="mkz").allclose(mk.load("asia"))


def test_presets_are_kept_by_class_settings_network_and_what_they_learned(tmp_path):
    recipe = mk.networks.cnn((4, 4), 3, channels=(2,))  # among settings
    said = parse_json(json.dumps({"a": written_value(recipe, "encoder")}))
    assert read_value(said.get("a")) == recipe
    rbm = mk.deep.RBM(n_components=3, epochs=1, batch=20, random_state=0).fit(BITS)
    for suffix in (".mkz", ".json"):
        rbm.save(tmp_path / f"rbm{suffix}")
        twin = mk.load(tmp_path / f"rbm{suffix}")
        assert type(twin) is mk.deep.RBM
        assert twin.get_params() == rbm.get_params()
        np.testing.assert_array_equal(twin.score_samples(BITS[:4]), rbm.score_samples(BITS[:4]))
    with pytest.raises(ParseError, match="or a preset of"):
        mk.io.loads(mk.io.dumps(rbm, "json").replace('"class": "RBM"', '"class": "BayesianNetwork"'), "json")


def test_modules_of_ones_own_come_along(tmp_path):
    def linear(seed, n=5):
        return eqx.nn.Linear(2, n, key=jax.random.PRNGKey(seed))

    m = mk.BayesianNetwork()
    m.add("decoder", mk.Parameter(linear(0)))
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    m.add("x", pixels, plate="row")
    for suffix in (".mkz", ".json"):
        path = tmp_path / f"own{suffix}"
        m.save(path)
        twin = mk.load(path, parts={"decoder": linear(1)})
        np.testing.assert_array_equal(twin.parameters["decoder"].weight, linear(0).weight)
        with pytest.raises(ParseError, match=r"'decoder' of class Linear.*parts=\{'decoder': module\}"):
            mk.load(path)
        with pytest.raises(
            ParseError, match=r"expected \.weight of Linear of shape \(4, 2\), found \(5, 2\)"
        ):
            mk.load(path, parts={"decoder": linear(1, 4)})
        with pytest.raises(ParseError, match=r"Linear, which has no \.bias"):
            mk.load(path, parts={"decoder": eqx.nn.Linear(2, 5, use_bias=False, key=jax.random.PRNGKey(0))})
        with pytest.raises(
            InvalidArgument, match="parts= names 'encoder', of which the file holds no module"
        ):
            mk.load(path, parts={"decoder": linear(1), "encoder": linear(2)})


def test_lambdas_are_refused_and_the_old_file_stays(trained, tmp_path):
    path = tmp_path / "vae.mkz"
    path.write_bytes(b"old")
    m = trained.copy()
    m.guide("z", lambda x, encoder: dist.Normal(*encoder(x)))
    with pytest.raises(UnsupportedModel, match="Define it with def in a module"):
        m.save(path)
    assert path.read_bytes() == b"old"


def test_it_is_no_text():
    with pytest.raises(UnknownFormat, match="mkz is a zip file and no text"):
        mk.io.dumps(mk.load("asia"), "mkz")
    with pytest.raises(UnknownFormat, match="mkz is a zip file and no text"):
        mk.io.loads(b"PK", "mkz")


# -- damaged files ------------------------------------------------------------------------------------------------------


def test_every_truncation_and_many_flips_are_parse_errors(trained, tmp_path):
    path = tmp_path / "vae.mkz"
    trained.save(path)
    whole = path.read_bytes()
    for n in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:n])
        with pytest.raises(ParseError):
            mk.load(path)
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(whole), 150):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ rng.integers(1, 256)]) + whole[at + 1 :])
        try:
            mk.load(path)  # some bytes say nothing
        except ParseError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_odd_members_are_refused(trained, tmp_path, monkeypatch):
    path = tmp_path / "vae.mkz"
    trained.save(path)
    inside = members(path)
    text = inside["model.json"]

    def refused(contents, said, **options):
        with pytest.raises(ParseError, match=said):
            mk.load(packed(tmp_path / "bad.mkz", contents, **options))

    refused([*inside.items(), ("../evil.npy", b"")], r"expected model.json and arrays/0.npy.*evil")
    refused([*inside.items(), ("arrays/x.npy", b"")], "arrays/x.npy")
    refused([("arrays/0.npy", b"")], "expected a member model.json")
    refused([(n, d) for n, d in inside.items() if n != "arrays/1.npy"], "there is no 'arrays/1.npy'")
    refused(
        [("model.json", text), *((n, b"no array") for n in inside if n != "model.json")], "an array of NumPy"
    )

    def saved(array, **options):
        stream = io.BytesIO()
        np.save(stream, array, **options)
        return stream.getvalue()

    pickled = saved(np.array([{}], dtype=object), allow_pickle=True)
    refused([("model.json", text), *((n, pickled) for n in inside if n != "model.json")], "as many numbers")
    # a header that promises a terabyte
    lying = saved(np.zeros((3, 1))).replace(b"(3, 1)", b"(3, 9" + b")")
    refused([("model.json", text), *((n, lying) for n in inside if n != "model.json")], "as many numbers")
    refused(
        [("model.json", text), *((n, saved(np.zeros(3))) for n in inside if n != "model.json")],
        r"of shape .*found \(3,\)",
    )
    # a small file that would unpack to more than fits
    monkeypatch.setattr(registry, "MAX_BYTES", 10**6)
    bomb = [("model.json", text), ("arrays/0.npy", bytes(2 * 10**6))]
    refused(bomb, "at most 1,000,000 bytes when unpacked", compression=zipfile.ZIP_DEFLATED)
