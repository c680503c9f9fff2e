"""NUTS and HMC on densities: exact moments, kept code, segments, checkpoints, stops and refusals."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

import markovia as mk
import markovia.distributions as dist
from density_examples import check_draws, gaussian, gaussian_answer, gaussian_data, targets
from markovia.inference.densities.engines import density_chains
from markovia.inference.densities.engines.density_chains import ebfmi
from markovia.inference.densities.program.density import standard_normal
from markovia.inference.densities.program.program import program_of
from markovia.inference.markov_chains.diagnostics import mcse
from markovia.runtime import machine_code
from markovia.runtime.double_precision import x64
from markovia.runtime.seeds import random_keys

NUTS, HMC, RandomWalkMetropolis = mk.engines.NUTS, mk.engines.HMC, mk.engines.RandomWalkMetropolis
QUICK = NUTS(draws=400, warmup=300, chains=2)
"""One compiled sampler for all tests on `gaussian`."""
SMALL = NUTS(draws=40, warmup=30, chains=1)
"""One for tests with other processes."""


@pytest.fixture(scope="module")
def drawn():
    return NUTS(draws=1000, warmup=600, chains=4, seed=1).draw(targets())


def test_nuts_has_the_exact_moments(drawn):
    check_draws(drawn.draws)
    details = drawn.record.details
    assert drawn.record.converged
    assert details.divergences == 0
    assert 0.7 < details.acceptance < 0.97
    assert details.r_hat < 1.01
    assert 0.6 < details.ebfmi < 1.5


@pytest.mark.slow
def test_draws_have_chain_and_draw_in_front_and_stats_of_their_shape(drawn):
    assert drawn.points.shape == (4, 1000, 10)
    assert drawn.draws["theta"].shape == (4, 1000, 6)
    assert drawn.draws["rate"].shape == drawn.stats.energy.shape == drawn.stats.diverging.shape == (4, 1000)
    assert np.allclose(np.log(drawn.draws["rate"]), drawn.points[:, :, 2])
    assert drawn.stats.tree_depth.min() >= 1
    some = drawn.points[2, 7]
    assert drawn.stats.log_density[2, 7] == pytest.approx(
        float(targets().log_prob(some, targets().data)), rel=1e-4
    )


@pytest.mark.slow
def test_hmc_has_the_exact_moments():
    found = HMC(draws=1000, warmup=600, chains=4, seed=1).draw(targets())
    check_draws(found.draws)


@pytest.mark.slow
def test_new_data_of_the_same_shape_compile_nothing_and_are_seen():
    QUICK.draw(gaussian())
    before = set(machine_code._kept)
    found = replace(QUICK, draws=700).draw(replace(gaussian(), data=gaussian_data(-3.0)))
    assert set(machine_code._kept) == before
    mean, _, _ = gaussian_answer(-3.0)
    assert abs(found.draws["a"].mean() - mean[0]) < 4.5 * mcse(found.draws["a"])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws_and_another_seed_others():
    first, again, other = (
        QUICK.draw(gaussian()),
        QUICK.draw(gaussian()),
        replace(QUICK, seed=1).draw(gaussian()),
    )
    assert np.array_equal(first.points, again.points)
    assert not np.array_equal(first.points, other.points)


@pytest.mark.slow
def test_thinning_keeps_every_third_draw():
    quick = RandomWalkMetropolis(
        draws=30, warmup=30, chains=1, thin=1, seed=0
    )  # chains of all kinds are thinned alike
    whole = quick.draw(gaussian())
    thin = replace(quick, draws=10, thin=3).draw(gaussian())
    assert np.array_equal(thin.points, whole.points[:, 2::3])


@pytest.mark.slow
def test_a_target_of_effective_draws_ends_early():
    found = replace(QUICK, draws=20_000, target_ess=300).draw(gaussian())
    assert found.points.shape[1] < 5_000
    assert found.record.details.effective > 200


def test_a_time_limit_keeps_the_draws_there_are():
    QUICK.draw(gaussian())
    found = replace(QUICK, draws=10_000_000, time_limit=0.6).draw(gaussian())
    assert 10 < found.points.shape[1] < 10_000_000
    with pytest.raises(mk.errors.Unanswered, match=r"of warm-up.*time_limit"):
        replace(QUICK, time_limit=1e-9).draw(gaussian())


@pytest.mark.skipif(os.name == "nt", reason="no signals")
def test_ctrl_c_keeps_the_draws_there_are():
    QUICK.draw(gaussian())
    before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, 0.8)  # seconds of processor time
    try:
        found = replace(QUICK, draws=10_000_000).draw(gaussian())
    finally:
        signal.signal(signal.SIGPROF, before)
    assert 10 < found.points.shape[1] < 10_000_000


@pytest.fixture(scope="module")
def code_folder(tmp_path_factory):
    """A folder for machine code that processes of these tests share, and a sampler that is in it."""
    folder = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARKOVIA_CACHE", str(folder))
        machine_code._folder.cache_clear()
        SMALL.draw(standard_normal(2))
        yield folder
    machine_code._folder.cache_clear()


@pytest.mark.slow
def test_processes_give_the_draws_of_their_chains_alone(code_folder):
    found = replace(SMALL, chains=2, chain_method="processes").draw(standard_normal(2))
    alone = density_chains._alone(SMALL, standard_normal(2), random_keys(0, 2)[1])
    assert found.points.shape == (2, 40, 2)
    assert np.array_equal(found.points[1], alone.point[0])
    with pytest.raises(mk.errors.InvalidArgument, match="checkpoint= keeps one state"):
        NUTS(chain_method="processes", checkpoint="x")


@pytest.mark.slow
def test_a_model_with_lambdas_goes_to_other_processes():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("y", lambda mu, x: dist.StudentT(4, mu + x, 1.0), plate="row")
    here = program_of(m._problem({"y": np.array([1.0, 2.0]), "x": np.array([0.0, 1.0])})).density
    there = pickle.loads(dumps(here))
    u = np.array([0.3])
    with x64():
        assert there.log_prob(u, there.data) == here.log_prob(u, here.data)
        assert there.rows().count == 2


def test_a_sampler_that_cannot_start_says_what_is_not_finite_and_where():
    broken = replace(gaussian(), data=gaussian_data(np.nan))
    with pytest.raises(
        mk.errors.Unanswered, match=r"'nuts' cannot start.*log likelihood is not finite.*a=.*b="
    ) as caught:
        QUICK.draw(broken)
    assert caught.value.point.shape == (2,)


def test_divergences_are_told_with_a_cure():
    found = replace(QUICK, draws=600).draw(replace(gaussian(), data=gaussian_data(0.0, 1e6, 1.5)))
    assert found.stats.divergences > 3
    assert not found.record.converged
    assert "diverged" in found.record.advice
    assert "target_accept=0.95" in found.record.advice


def test_the_share_of_missing_information_is_two_for_independent_energies_and_small_for_a_walk():
    rng = np.random.default_rng(0)
    assert ebfmi(3.0 * rng.normal(size=(2, 5000))) == pytest.approx(2.0, abs=0.1)
    walk = np.cumsum(rng.normal(size=(2, 4000)), axis=1)
    assert ebfmi(walk) < 0.05


KILLED = """
import os, sys
from markovia.engines import NUTS
from markovia.inference.densities.engines import density_chains
from markovia.inference.densities.program.density import standard_normal

density_chains.SECONDS = 1e-4  # many short segments
stop = int(sys.argv[2])
store = density_chains.Checkpoint.write
count = 0

def stored(self, *args):
    global count
    store(self, *args)
    count += 1
    if count == stop:
        os.kill(os.getpid(), 9)

density_chains.Checkpoint.write = stored
found = NUTS(draws=40, warmup=30, chains=1, checkpoint=sys.argv[1]).draw(standard_normal(2))
print(found.points.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_a_run_that_is_killed_and_resumed_gives_the_draws_of_one_that_was_not(tmp_path, code_folder):
    whole = SMALL.draw(standard_normal(2)).points.tobytes().hex()
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    file = tmp_path / "state.npz"
    for stop, code in ((5, -9), (15, -9), (10**9, 0)):  # in the warm-up, among the draws, never
        found = subprocess.run(
            [sys.executable, str(script), str(file), str(stop)], capture_output=True, text=True, timeout=600
        )
        assert found.returncode == code, found.stderr
        assert file.exists()
    assert found.stdout.strip() == whole


def test_a_checkpoint_of_another_run_is_refused_and_one_of_this_run_goes_on(tmp_path):
    file = tmp_path / "state.npz"
    engine = replace(QUICK, draws=20, checkpoint=file)
    first = engine.draw(gaussian())
    began = time.process_time()
    again = engine.draw(gaussian())
    assert np.array_equal(first.points, again.points)
    assert time.process_time() - began < 5
    longer = replace(engine, draws=30).draw(gaussian())
    assert np.array_equal(longer.points[:, :20], first.points)
    with pytest.raises(mk.errors.InvalidArgument, match="another run"):
        replace(engine, seed=5).draw(gaussian())
    with pytest.raises(mk.errors.InvalidArgument, match="another run"):
        engine.draw(replace(gaussian(), data=gaussian_data(9.0)))
    file.write_text("nonsense")
    with pytest.raises(mk.errors.InvalidArgument, match="no checkpoint"):
        engine.draw(gaussian())


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_damaged_files_are_no_harm(code_folder):
    script = textwrap.dedent("""
        from markovia.engines import NUTS
        from markovia.runtime import machine_code
        from markovia.inference.densities.program.density import standard_normal

        made = []
        machine_code._store = lambda *args: made.append(args)
        print(NUTS(draws=40, warmup=30, chains=1).draw(standard_normal(2)).points.tobytes().hex(), len(made))
    """)

    def run():
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
        assert found.returncode == 0, found.stderr
        return found.stdout.split()

    whole = SMALL.draw(standard_normal(2)).points.tobytes().hex()
    assert run() == [whole, "0"]
    files = list(code_folder.glob("samplers/*.bin"))
    assert len(files) == 3
    kept = {file: file.read_bytes() for file in files}
    smallest = min(files, key=lambda file: len(kept[file]))
    smallest.write_bytes(b"cut off")
    assert run() == [whole, "1"]
    smallest.write_bytes(kept[smallest])


@pytest.mark.slow
def test_linear_algebra_in_kept_code_runs_in_a_second_process(code_folder):
    """JAX sets LAPACK up when it lowers a call, which a process that loads machine code does not."""
    script = textwrap.dedent("""
        from markovia.engines import MALA
        from markovia.inference.densities.program.density import standard_normal

        print(MALA(draws=20, warmup=20, chains=1).draw(standard_normal(2)).points.tobytes().hex())
    """)
    first, second = (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
        for _ in range(2)
    )
    assert first.returncode == second.returncode == 0, second.stderr
    assert first.stdout == second.stdout


def test_a_model_of_tables_is_refused_with_an_engine_that_would_do():
    with pytest.raises(mk.errors.UnsupportedModel, match="engine='loopy-bp' or 'auto'"):
        mk.examples.sprinkler().query("rain", engine="nuts")
