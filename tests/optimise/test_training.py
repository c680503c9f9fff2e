"""The training loop: it finds closed-form optima, and where it is cut, watched, stopped or killed changes no number."""

import os
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.optimise import players, training
from markovia.optimise.players import Player, UpdateRule
from markovia.optimise.row_batches import Batch, RowBatches
from markovia.optimise.training import Training, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(21, 2))
ROWS = {"x": X, "y": X @ [1.5, -2.0] + 0.1 * RNG.normal(size=21)}
LEAST_SQUARES = np.linalg.lstsq(X, ROWS["y"], rcond=None)[0]


def loss(parameters, memory, key, batch):
    """Squared errors with a little noise in the inputs, so that keys matter."""
    rows = batch.rows
    x = rows["x"] + 1e-3 * jax.random.normal(key, rows["x"].shape)
    error = (rows["y"] - x @ parameters["w"]) ** 2
    return jnp.sum(batch.weight * error) / jnp.sum(batch.weight), memory


START = {"w": np.zeros(2)}
BASE = Training(epochs=12, batch=6, learning_rate=0.05, seed=3, precision="float64")


@cache
def whole_run():
    return BASE.run(loss, START, ROWS)


def assert_same(a, b):
    assert np.array_equal(a.parameters["w"], b.parameters["w"])
    assert np.array_equal(a.values, b.values)
    assert a.curve == b.curve


def test_it_ends_at_the_closed_form_optimum():
    def exact(w, memory, key, batch):
        error = (batch.rows["y"] - batch.rows["x"] @ w) ** 2
        return jnp.sum(batch.weight * error) / jnp.sum(batch.weight), memory

    found = replace(BASE, epochs=600, batch=None, decay=1e-3).run(exact, np.zeros(2), ROWS)
    np.testing.assert_allclose(found.parameters, LEAST_SQUARES, atol=1e-6)
    assert found.curve[-1] == pytest.approx(np.mean((ROWS["y"] - X @ LEAST_SQUARES) ** 2), rel=1e-6)
    assert (found.reason, found.steps, len(found.curve)) == ("epochs", 600, 600)


def test_steps_follow_the_batches_the_keys_and_optax_by_hand():
    found = replace(BASE, epochs=2).run(loss, START, ROWS)
    batches = RowBatches(ROWS, 6, 3)
    key = jnp.asarray(training.random_keys(3, 1)[0])
    optimiser = optax.adam(0.05)
    with jax.enable_x64(True):
        w = {"w": jnp.zeros(2)}
        state = optimiser.init(w)
        slope_of = jax.jit(jax.grad(lambda w, key, batch: loss(w, None, key, batch)[0]))
        for t in range(2 * batches.steps):
            index, weight = batches.indices(t, 1)
            batch = Batch({k: jnp.asarray(v[index[0]]) for k, v in ROWS.items()}, jnp.asarray(weight[0]))
            slope = slope_of(w, jax.random.fold_in(key, t), batch)
            change, state = optimiser.update(slope, state)
            w = optax.apply_updates(w, change)
    np.testing.assert_allclose(found.parameters["w"], w["w"], rtol=1e-10)


def test_every_row_counts_once_an_epoch_and_filling_has_weight_zero():
    batches = RowBatches(ROWS, 6, 3)
    assert (batches.steps, batches.width) == (4, 6)
    index, weight = batches.indices(4, 4)  # the second epoch
    assert sorted(index[weight > 0].tolist()) == list(range(21))
    assert weight.sum(axis=1).tolist() == [6, 5, 5, 5]
    again = RowBatches(ROWS, 6, 3).indices(6, 5)  # across an end of an epoch
    assert np.array_equal(again[0][:2], index[2:])
    assert not np.array_equal(batches.indices(0, 4)[0], index)


def test_segments_the_bar_and_the_clock_change_nothing(monkeypatch, capsys):
    expected = whole_run()
    monkeypatch.setattr(training, "SECONDS", 1e-9)  # one step a segment
    assert_same(replace(BASE, progress=True).run(loss, START, ROWS), expected)
    assert f"{expected.values[-1, 0]:.6g}" in capsys.readouterr().err
    assert_same(replace(BASE, time_limit=1e6).run(loss, START, ROWS), expected)


def test_two_players_alternate_and_each_moves_its_own_parameters():
    def first(p, memory, key, batch):
        return jnp.sum((p["a"] - 2.0 * p["b"]) ** 2), memory

    def second(p, memory, key, batch):
        return jnp.sum((p["b"] - 0.5 * p["a"] - 1.0) ** 2), memory

    sgd = optax.sgd(0.25)
    who = [Player(first, ("a",), sgd), Player(second, ("b",), sgd, repeats=2)]
    found = replace(BASE, epochs=3, batch=None).run(who, {"a": 0.0, "b": 1.0, "c": 5.0}, np.zeros(1))
    a, b, values = 0.0, 1.0, []
    for _ in range(3):
        values.append([(a - 2 * b) ** 2])
        a -= 0.25 * 2 * (a - 2 * b)
        for _ in range(2):
            last = (b - 0.5 * a - 1) ** 2
            b -= 0.25 * 2 * (b - 0.5 * a - 1)
        values[-1].append(last)
    np.testing.assert_allclose(found.values, values)
    assert (float(found.parameters["a"]), float(found.parameters["b"])) == pytest.approx((a, b))
    assert found.parameters["c"] == 5.0
    with pytest.raises(InvalidArgument, match="no parameter is called 'z'"):
        BASE.run([Player(first, ("z",))], {"a": 0.0}, np.zeros(1))


def test_memory_is_carried_from_step_to_step():
    def counting(p, memory, key, batch):
        return (p - 1.0) ** 2, {"steps": memory["steps"] + 1, "rows": memory["rows"] + batch.weight.sum()}

    found = BASE.run(counting, 0.0, ROWS, memory={"steps": 0, "rows": 0.0})
    assert int(found.memory["steps"]) == found.steps == 48
    assert float(found.memory["rows"]) == 12 * 21


def test_the_average_is_that_of_the_path_by_hand():
    path = [replace(BASE, epochs=e, batch=None).run(loss, START, ROWS).parameters["w"] for e in range(1, 7)]
    mean = np.zeros(2)
    for t, w in enumerate(path):
        mean = mean + max(0.3, 1 / (t + 1)) * (w - mean)
    found = replace(BASE, epochs=6, batch=None, ema=0.7).run(loss, START, ROWS)
    np.testing.assert_allclose(found.parameters["w"], mean, rtol=1e-12)


def test_the_epoch_that_is_best_on_held_out_rows_is_kept_and_patience_ends_it():
    def falling_then_rising(w, memory, key, batch):
        # the training rows pull w to 3, the held-out rows are best at 1
        return jnp.sum(batch.weight * (batch.rows - w) ** 2) / batch.weight.sum(), memory

    base = Training(epochs=50, learning_rate=0.25, seed=0, validation=np.ones(2), precision="float64")
    found = replace(base, patience=3).run(falling_then_rising, 0.0, np.full(4, 3.0))
    best = int(np.argmin(found.validation))
    assert (found.reason, len(found.validation)) == ("patience", best + 4)
    assert found.validation[best] == pytest.approx((float(found.parameters) - 1.0) ** 2)
    every = base.run(falling_then_rising, 0.0, np.full(4, 3.0))
    assert len(every.validation) == 50
    assert float(every.parameters) == float(found.parameters)
    share = replace(BASE, validation=0.25).run(loss, START, ROWS)
    assert share.steps == 12 * 3  # 16 rows are left
    with pytest.raises(InvalidArgument, match="leaves some on both sides"):
        replace(BASE, validation=0.01).run(loss, START, ROWS)
    with pytest.raises(InvalidArgument, match="give validation="):
        Training(patience=3)


def test_a_step_that_has_no_number_is_named_and_what_was_before_is_kept():
    def breaking(w, memory, key, batch):
        return jnp.where(memory >= 5, jnp.nan, 1.0) * (w - 1.0) ** 2, memory + 1

    with pytest.warns(ConvergenceWarning, match="no number at step 6; the parameters before it"):
        found = replace(BASE, batch=None).run(breaking, 0.0, np.zeros(1), memory=0)
    good = replace(BASE, batch=None, epochs=5).run(breaking, 0.0, np.zeros(1), memory=0)
    assert found.failed
    assert found.steps == len(found.values) == 5
    assert int(found.memory) == 5
    assert float(found.parameters) == float(good.parameters)


def test_ctrl_c_and_the_time_limit_keep_what_was_learned(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("markovia.runtime.clock.perf_counter", lambda: clock[0])
    advance = players.TracedSteps.advance

    def slowly(self, *args):
        clock[0] += 1.0
        return advance(self, *args)

    monkeypatch.setattr(players.TracedSteps, "advance", slowly)
    found = replace(BASE, time_limit=3.5).run(loss, START, ROWS)
    assert found.reason == "time limit"
    assert 0 < found.steps < 48
    stopped = found.parameters["w"]

    def interrupted(self, state, first, count):
        if first >= found.steps:
            raise KeyboardInterrupt
        return advance(self, state, first, min(count, found.steps - first))

    monkeypatch.setattr(players.TracedSteps, "advance", interrupted)
    again = BASE.run(loss, START, ROWS)
    assert again.reason == "interrupted"
    assert np.array_equal(again.parameters["w"], stopped)


def test_a_run_cut_into_pieces_by_its_file_is_the_whole_run(tmp_path):
    base = replace(BASE, ema=0.8, validation=ROWS, checkpoint=tmp_path / "run.npz")
    whole = replace(base, checkpoint=None).run(loss, START, ROWS, memory=np.zeros(2))
    for epochs in (3, 7, 12, 12):
        found = replace(base, epochs=epochs).run(loss, START, ROWS, memory=np.zeros(2))
        assert found.steps == epochs * 4
    assert_same(found, whole)
    assert found.validation == whole.validation
    with pytest.raises(InvalidArgument, match="other data or settings"):
        replace(base, learning_rate=0.1).run(loss, START, ROWS, memory=np.zeros(2))
    with pytest.raises(InvalidArgument, match="give seed="):
        Training(checkpoint="x")


KILLED = """
    import os, sys
    import numpy as np
    from test_training import BASE, ROWS, START, loss, replace
    from markovia.optimise import training
    from markovia.optimise.checkpoint import Checkpoint

    training.SECONDS = 1e-9
    Checkpoint.due = lambda self: True
    write, left = Checkpoint.write, int(sys.argv[2])

    def killing(self, *args):
        global left
        write(self, *args)
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)

    Checkpoint.write = killing
    found = replace(BASE, checkpoint=sys.argv[1]).run(loss, START, ROWS)
    print(found.parameters["w"].tobytes().hex(), found.values.tobytes().hex())
"""


@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_a_run_that_is_killed_goes_on_to_the_same_bits(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(KILLED))
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    for stop, code in ((13, -9), (1000, 0)):
        found = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "run.npz"), str(stop)],
            capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert found.returncode == code, found.stderr
    whole = whole_run()
    assert found.stdout.split() == [whole.parameters["w"].tobytes().hex(), whole.values.tobytes().hex()]


class Stream:
    """The batches of `RowBatches`, one by one."""

    digest = "a stream"

    def __init__(self, of):
        self.of, self.asked = of, []

    def epoch(self, number):
        self.asked.append(number)
        for t in range(number * self.of.steps, (number + 1) * self.of.steps):
            index, weight = self.of.indices(t, 1)
            yield Batch({k: v[index[0]] for k, v in ROWS.items()}, weight[0])


def test_streamed_batches_give_what_the_same_batches_in_memory_give(tmp_path):
    whole = whole_run()
    found = BASE.run(loss, START, Stream(RowBatches(ROWS, 6, 3)))
    np.testing.assert_allclose(found.parameters["w"], whole.parameters["w"], rtol=1e-12)
    np.testing.assert_allclose(found.curve, whole.curve, rtol=1e-12)
    assert found.steps == 48
    cut = replace(BASE, checkpoint=tmp_path / "run.npz")
    replace(cut, epochs=5).run(loss, START, Stream(RowBatches(ROWS, 6, 3)))
    again = Stream(RowBatches(ROWS, 6, 3))
    assert_same(cut.run(loss, START, again), found)
    assert again.asked[0] == 5
    with pytest.raises(InvalidArgument, match="decay= needs to know"):
        replace(BASE, decay=0.1).run(loss, START, again)
    with pytest.raises(InvalidArgument, match="epoch 1 has no batch"):
        BASE.run(loss, START, type("Empty", (Stream,), {"epoch": lambda self, n: iter(())})(None))


def test_thirty_two_bits_train_and_the_answer_has_the_type_of_the_start():
    found = replace(BASE, precision="float32").run(loss, START, ROWS)
    assert found.parameters["w"].dtype == np.float64
    assert np.array_equal(found.parameters["w"], found.parameters["w"].astype(np.float32))
    np.testing.assert_allclose(found.parameters["w"], whole_run().parameters["w"], rtol=2e-3)


def test_clipping_bounds_the_gradient_that_the_optimiser_sees():
    def steep(w, memory, key, batch):
        return 1e6 * w, memory

    sgd = optax.chain(optax.clip_by_global_norm(2.0), optax.sgd(1.0))
    found = Training(epochs=1, precision="float64").run(steep, 0.0, np.zeros(1), optimiser=sgd)
    assert float(found.parameters) == -2.0
    plain = [
        replace(BASE, clip=c, epochs=3, batch=None).run(loss, START, ROWS).parameters["w"]
        for c in (None, 1e-3)
    ]
    assert not np.allclose(plain[0], plain[1], rtol=1e-6)


def test_a_module_is_trained_as_one_and_its_other_parts_stay():
    import equinox as eqx

    module = eqx.nn.MLP(2, "scalar", 4, 1, key=jax.random.key(0))

    def fit(module, memory, key, batch):
        error = (batch.rows["y"] - jax.vmap(module)(batch.rows["x"])) ** 2
        return jnp.sum(batch.weight * error) / batch.weight.sum(), memory

    found = Training(epochs=30, learning_rate=0.02, seed=0).run(fit, module, ROWS)
    assert isinstance(found.parameters, eqx.nn.MLP)
    assert found.parameters.activation is module.activation or callable(found.parameters.activation)
    assert found.curve[-1] < 0.5 * found.curve[0]


def test_untraced_players_bring_their_own_gradient():
    seen = []

    def squares(parameters, memory, key, batch):
        which = batch.rows[batch.weight > 0]
        seen.append(which)
        error = X[which] @ parameters["w"] - ROWS["y"][which]
        return float(error @ error) / len(which), memory + 1, {"w": 2 * error @ X[which] / len(which)}

    descent = UpdateRule(lambda p: 0, lambda g, t, p: ({"w": -0.4 / (1 + t) ** 0.5 * g["w"]}, t + 1))
    player = [Player(squares, ("w",), traced=False)]
    batches = RowBatches(None, 6, 3, rows=np.arange(21))
    found = train(player, START, batches, replace(BASE, epochs=40), optimiser=descent, memory=0)
    np.testing.assert_allclose(found.parameters["w"], LEAST_SQUARES, atol=0.05)
    assert found.memory == found.steps == 160
    assert sorted(np.concatenate(seen[:4]).tolist()) == list(range(21))
    adam = train(
        player, {"w": jnp.zeros(2)}, batches, replace(BASE, epochs=40), optimiser=optax.adam(0.05), memory=0,
        stop=lambda epoch, p, curve: epoch == 30,
    )  # fmt: skip
    assert (adam.reason, adam.steps) == ("settled", 120)
    np.testing.assert_allclose(adam.parameters["w"], LEAST_SQUARES, atol=0.1)

    def broken(parameters, memory, key, batch):
        return 1.0, None, {"w": np.array([np.nan, 1.0])}

    failed = train([Player(broken, ("w",), traced=False)], START, batches, BASE, optimiser=descent)
    assert failed.failed
    assert np.array_equal(failed.parameters["w"], START["w"])


def test_settings_are_checked_and_a_missing_device_is_named():
    with pytest.raises(InvalidArgument, match="epochs= is a whole number, 1 or more, not 0"):
        Training(epochs=0)
    with pytest.raises(InvalidArgument, match="ema= is a number between 0 and 1 or None, not 1"):
        Training(ema=1.0)
    with pytest.raises(InvalidArgument, match="device= 'abacus' is not there"):
        Training(device="abacus").run(loss, START, ROWS)
    with pytest.raises(InvalidArgument, match="same number of rows"):
        BASE.run(loss, START, {"x": np.zeros(3), "y": np.zeros(4)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(BASE, device="cpu").run(loss, START, ROWS).reason == "epochs"


def test_a_run_that_ended_by_patience_is_over_when_it_is_asked_again(tmp_path):
    def to_three(w, memory, key, batch):
        return jnp.sum(batch.weight * (batch.rows - w) ** 2) / batch.weight.sum(), memory

    settings = Training(
        epochs=50,
        learning_rate=0.25,
        seed=0,
        validation=np.ones(2),
        patience=3,
        checkpoint=tmp_path / "run.npz",
    )
    first = settings.run(to_three, 0.0, np.full(4, 3.0))
    again = settings.run(to_three, 0.0, np.full(4, 3.0))
    assert (again.reason, again.steps) == (first.reason, first.steps) == ("patience", first.steps)
    assert float(again.parameters) == float(first.parameters)
