"""Conjugate gradients in blocks of rows, and Cholesky factors in blocks, against dense matrices."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, TooLarge
from markovia.learning.processes import blocked_evidence, iterative_evidence
from markovia.learning.processes.blocked_evidence import BlockedEvidence
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.iterative_evidence import ConjugateGradients, block_programs, form_of
from process_checks import dense, free, slopes

k = mk.covariances
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 4.0, (45, 2))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.3 * RNG.standard_normal(45)
Z = RNG.uniform(-1.0, 5.0, (5, 2))


def fitted():
    return (
        k.Scaled(free(1.5), k.Matern32(free([0.7, 2.0])))
        + k.RBF(free(1.0))
        + k.White(free(0.1))
        + k.White(0.05)
    )


def all_there_is(**settings):
    """The method with probes that are all there is to probe, so that nothing is random."""
    method = ConjugateGradients(X, Y, rank=10, tol=1e-11, **settings)
    method.probes = np.sqrt(55.0) * np.eye(55)
    return method


def compare(method, covariance, atol):
    value, mean, cov = dense(covariance, X, Y, Z)
    found, by = method.evidence(covariance)
    assert found == pytest.approx(value, abs=atol)
    for key, slope in slopes(ExactEvidence(X, Y).evidence(covariance)[1], covariance).items():
        np.testing.assert_allclose(slopes(by, covariance)[key], slope, rtol=atol, atol=atol, err_msg=key)
    at = method.posterior(covariance).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=atol)
    np.testing.assert_allclose(at.cov(), cov, atol=atol)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), atol=atol)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(
        iterative_evidence, "CELLS", {"cpu": 45 * 10, "gpu": 45 * 10}
    )  # of ten rows, the last of five


def test_conjugate_gradients_are_the_dense_process():
    compare(all_there_is(), fitted(), 1e-6)


@pytest.mark.slow
def test_blocks_of_a_factor_are_the_dense_process():
    compare(BlockedEvidence(X, Y, block=20), fitted(), 1e-8)  # three blocks, the last one not full


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 7, 45, 2_048])
def test_blocks_of_any_size_are_the_dense_process(block):
    compare(BlockedEvidence(X, Y, block=block), fitted(), 1e-8)


def test_random_probes_are_off_by_their_standard_error():
    method, whole = ConjugateGradients(X, Y, rank=5, probes=30, tol=1e-8, seed=1), fitted()
    post = method.posterior(whole)
    error = float(post.info.note.rpartition(" ")[2])
    assert 0.01 < error < 3.0
    assert post.info.log_evidence == pytest.approx(dense(whole, X, Y, Z)[0], abs=4.0 * error)
    near = ConjugateGradients(X, Y, rank=40, probes=30, tol=1e-8, seed=1)
    found, exact = (slopes(m.evidence(whole)[1], whole) for m in (near, ExactEvidence(X, Y)))
    for name, slope in exact.items():
        np.testing.assert_allclose(found[name], slope, atol=0.05 * (1.0 + np.abs(slope).max()), err_msg=name)


def test_a_higher_rank_leaves_less_to_the_probes():
    errors = []
    for rank in (2, 10, 40):
        note = ConjugateGradients(X, Y, rank=rank, seed=1).posterior(fitted()).info.note
        errors.append(float(note.rpartition(" ")[2]))
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2]


def test_what_is_not_solved_is_said():
    info = ConjugateGradients(X, Y, rank=1, most=2).posterior(fitted()).info
    assert not info.converged
    assert "larger rank=" in info.advice


def test_programs_are_compiled_once_for_all_numbers():
    one = fitted()
    made = block_programs(one)
    assert block_programs(one.with_values({"rbf.length": 3.0}, keep=True)) is made
    assert form_of(one) != form_of(one + k.RBF(1.0))
    assert form_of(k.RBF(1.0, columns=[0])) != form_of(k.RBF(1.0, columns=[1]))
    assert form_of(k.RBF(1.0)) != form_of(k.RBF([1.0, 1.0]))


def test_a_fit_finds_nearly_what_the_exact_fit_finds():
    start = fitted()
    found = ConjugateGradients(X, Y).fit(start)  # the preconditioner is all of it: nothing is random
    best = maximise_evidence(ExactEvidence(X, Y), start)
    assert found.log_evidence == pytest.approx(best.log_evidence, abs=0.02)


def test_what_blocks_cannot_do_is_said(monkeypatch):
    with pytest.raises(np.linalg.LinAlgError):
        BlockedEvidence(np.zeros((45, 1)), Y, block=20).evidence(k.RBF(1.0) + k.White(1e-20))
    with pytest.raises(InvalidArgument, match="block= is how many rows"):
        BlockedEvidence(X, Y, block=0)
    monkeypatch.setattr(blocked_evidence, "_free", lambda: 1_000.0)
    with pytest.raises(TooLarge, match="a factor of 45 rows takes about"):
        BlockedEvidence(X, Y)
