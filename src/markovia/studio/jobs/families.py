"""Model families in the studio, as work for jobs: states behind a series, posteriors by NUTS, topics, codes of rows.

Each function runs in a process of its own, gets a report to talk through, and returns plain values for the charts.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.tables.frames import as_frame
from markovia.data.text.document_texts import SUFFIXES
from markovia.errors import ConvergenceWarning, InvalidArgument, check_known
from markovia.runtime.array_types import Array
from markovia.studio.jobs.orders import EncodeRows, FindTopics, SmoothSeries

if TYPE_CHECKING:
    from markovia.studio.jobs.worker import JobReport

MOST_STEPS = 5_000
"""The longest series that is drawn."""
TRACE = 400
"""Points of a trace that are drawn, evenly taken."""
BINS = 20
"""Bins of the histograms of ranks."""
MOST_SHOWN = 24
"""Quantities of a posterior that are drawn."""
CHUNKS = 10
"""How often a sampler shows its draws."""
SHOWN_ROWS = 6
"""Rows whose gaps are filled in, and pairs of rows that are walked between."""
WALK = 8
"""Steps from one row to another."""


def series(report: "JobReport", *, folder: Path, **order: Any) -> dict[str, Any]:
    """Learn a hidden Markov model or a structural series, smooth a column of a table, and forecast; see `SmoothSeries`."""
    asked = SmoothSeries(**order)
    frame = as_frame(asked.data)
    check_known([asked.column], frame.columns, "the table")
    try:
        y = np.asarray(frame[asked.column], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the column {asked.column!r} has cells that are no numbers") from None
    if len(y) > MOST_STEPS:
        raise InvalidArgument(f"the series has {len(y):,} steps; the studio draws up to {MOST_STEPS:,}")
    report.note("learning; the first time compiles for a while")
    found = _hidden_markov(y, asked) if asked.model == "hmm" else _structural(y, asked)
    about = {"model": asked.model, "column": asked.column, "observed": _numbers(y), "level": asked.level}
    return {**about, **found}


def _structural(y: Array, asked: SmoothSeries) -> dict[str, Any]:
    from scipy.stats import norm

    from markovia.models.temporal.structural_series import StructuralSeries

    model: Any = StructuralSeries(asked.trend, seasonal=asked.seasonal, cycle=asked.cycle).fit(y)
    smoothed, ahead = model.smooth(y), model.forecast(y, asked.steps, level=asked.level)
    row = model.space.observation[0][0]
    mean = smoothed.mean[0] @ row
    sd = np.sqrt(np.maximum(np.einsum("i,tij,j->t", row, smoothed.cov[0], row), 0.0))
    z = float(norm.ppf(0.5 + asked.level / 2))
    return {
        "smoothed": _band(mean, mean - z * sd, mean + z * sd),
        "trend": _numbers(smoothed.mean[0][:, 0]),
        "forecast": _band(*(x[0][:, 0] for x in (ahead.mean, ahead.lower, ahead.upper))),
        "parameters": {name: float(value) for name, value in model.params_.items()},
        "log_likelihood": model.log_likelihood_,
        "bic": model.bic_,
        "converged": bool(model.converged_),
    }


def _hidden_markov(y: Array, asked: SmoothSeries) -> dict[str, Any]:
    from markovia.models.temporal.hmm import HMM

    model: Any = HMM(asked.states, emission="gaussian", n_init=5, random_state=asked.seed).fit(y)
    order = np.argsort(model.means_[:, 0])  # the states by their means, so that numbers mean something
    smoothed, path = model.smooth(y)[0][:, order], np.argsort(order)[model.decode(y)[0]]
    ahead = model.forecast(y, asked.steps)[0][:, order]
    means = model.means_[order, 0]
    sds = np.sqrt(model.covars_[order].reshape(asked.states, -1)[:, 0])
    tails = ((1 - asked.level) / 2, (1 + asked.level) / 2)
    return {
        "states": [_numbers(p) for p in smoothed.T],
        "path": [int(k) for k in path],
        "means": _numbers(means),
        "sds": _numbers(sds),
        "transitions": [_numbers(row) for row in model.transmat_[np.ix_(order, order)]],
        "smoothed": _band(smoothed @ means, *map(_spread(smoothed, means, sds), tails)),
        "ahead": [_numbers(p) for p in ahead.T],
        "forecast": _band(ahead @ means, *map(_spread(ahead, means, sds), tails)),
        "log_likelihood": float(model.score(y)),
        "bic": float(model.bic(y)),
        "converged": bool(model.converged_),
    }


def _band(mean: Array, low: Array, high: Array) -> dict[str, list[float | None]]:
    return {"mean": _numbers(mean), "low": _numbers(low), "high": _numbers(high)}


def _spread(weights: Array, means: Array, sds: Array) -> Callable[[float], Array]:
    """Return the quantile function of mixtures of normals, one a row of weights, by bisection."""
    from scipy.special import ndtr

    def quantile(p: float) -> Array:
        low = np.full(len(weights), float((means - 10 * sds).min()))
        high = np.full(len(weights), float((means + 10 * sds).max()))
        for _ in range(60):
            middle = (low + high) / 2
            below = (weights * ndtr((middle[:, None] - means) / sds)).sum(axis=1) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        middle = (low + high) / 2
        return np.asarray(middle)

    return quantile


def posterior(
    report: "JobReport",
    *,
    folder: Path,
    source: Mapping[str, Any],
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    seed: int = 0,
    target_accept: float = 0.8,
) -> dict[str, Any]:
    """Draw from a Bayesian model by NUTS, and show traces and ranks as they grow.

    The sampler goes on from a checkpoint, so that draws in chunks are those of one run.

    Parameters
    ----------
    report, folder
        Of the job.
    source
        `{"example": name}`, `{"regression": {...}}` with a table, or `{"model": native JSON, "given": ...}`.
    draws, warmup, chains, seed, target_accept
        As for `mk.engines.NUTS`.
    """
    from markovia.inference.densities.engines.nuts import NUTS
    from markovia.studio.jobs import bayesian_models

    model, given, targets, labels = bayesian_models.of(source)
    report.note("compiling the sampler, once for a model of this shape; that may take half a minute")
    with _scratch(folder) as checkpoint:
        for done in _chunks(draws):
            engine = NUTS(
                draws=done, warmup=warmup, chains=chains, seed=seed, target_accept=target_accept, checkpoint=checkpoint
            )  # fmt: skip
            with warnings.catch_warnings():
                if done < draws:  # complaints are about the whole run
                    warnings.simplefilter("ignore", ConvergenceWarning)
                found = model.query(targets, given=given, engine=engine)
            result = _drawn(found, labels)
            if done < draws:
                report.show(result)
    return result


def _chunks(draws: int) -> Iterator[int]:
    size = max(10, -(-draws // CHUNKS))
    yield from range(size, draws, size)
    yield draws


class _scratch:  # noqa: N801
    """A file that is removed at the end, so that the job's folder holds results only."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "checkpoint.npz"

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)


def _drawn(found: Any, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return what is drawn of a posterior: a summary, and for each quantity traces and ranks of its chains."""
    table = found.summary()
    columns = [str(c) for c in table.columns]
    rows = [
        {"name": labels.get(str(n), str(n)), **{c: _number(x) for c, x in zip(columns, row, strict=True)}}
        for n, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    quantities = []
    for label, values in list(found.scalars(list(found.names)))[:MOST_SHOWN]:
        chains = np.asarray(values, dtype=np.float64)
        at = np.unique(np.linspace(0, chains.shape[1] - 1, min(TRACE, chains.shape[1])).astype(int))
        quantities.append(
            {
                "name": labels.get(label, label),
                "at": [int(i) for i in at],
                "traces": [_numbers(chain[at]) for chain in chains],
                "ranks": rank_histograms(chains).tolist(),
            }
        )
    info = found.info
    details = info.details
    return {
        "summary": rows,
        "columns": columns,
        "quantities": quantities,
        "draws": int(chains.shape[1]),
        "chains": int(chains.shape[0]),
        "divergences": int(details.divergences),
        "r_hat": _number(details.r_hat),
        "effective": _number(details.effective),
        "info": {"engine": info.engine, "converged": info.converged, "error": info.error},
    }


def rank_histograms(draws: Array, bins: int = BINS) -> Any:
    """Return for each chain how many of its draws have ranks in each bin among the draws of all.

    Examples
    --------
    >>> rank_histograms(np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]), bins=2).tolist()
    [[4, 0], [0, 4]]
    """
    ranks = np.argsort(np.argsort(draws.ravel(), kind="stable"), kind="stable").reshape(draws.shape)
    places = ranks * bins // draws.size
    return np.stack([np.bincount(row, minlength=bins) for row in places])


def topics(report: "JobReport", *, folder: Path, **order: Any) -> dict[str, Any]:
    """Find the topics of texts by latent Dirichlet allocation, with their words and documents; see `FindTopics`."""
    from markovia.data.text.corpus import Corpus
    from markovia.models.topics.lda import LDA

    asked = FindTopics(**order)
    report.note("reading the texts")
    texts = _texts(Path(asked.data), asked.column)
    corpus = Corpus.read(texts, stop_words=asked.stop_words, min_df=asked.min_documents)
    model = LDA(asked.components, max_iter=asked.iterations, random_state=asked.seed).fit(corpus)
    shares = model.transform(corpus)
    # the most frequent topics come first
    ranked = np.argsort(-model.topic_shares_, kind="stable")
    weights = model.topic_word_
    found = []
    for k in ranked:
        top = np.argsort(-weights[k], kind="stable")[: asked.words]
        documents = np.argsort(-shares[:, k], kind="stable")[:10]
        found.append(
            {
                "share": float(model.topic_shares_[k]),
                "words": [[str(corpus.vocabulary[i]), float(weights[k, i])] for i in top],
                "documents": [int(d) for d in documents],
            }
        )
    return {
        "documents": [{"text": text[:400], "shares": _numbers(shares[i][ranked])} for i, text in enumerate(texts[:500])],
        "topics": found,
        "count": len(corpus),
        "words": len(corpus.words),
        "vocabulary": len(corpus.vocabulary),
        "perplexity": float(model.perplexity(corpus)),
    }  # fmt: skip


def codes(report: "JobReport", *, folder: Path, **order: Any) -> dict[str, Any]:
    """Train a variational autoencoder, and ask it: rows with gaps, ways from one row to another; see `EncodeRows`."""
    from markovia.models.deep.vae import VAE

    asked = EncodeRows(**order)
    rows, names = _measured(asked)
    rng = np.random.default_rng(asked.seed)
    rows = rows[rng.permutation(len(rows))]
    held_out = max(1, len(rows) // 10)
    shown, learned = rows[:SHOWN_ROWS], rows[held_out:]
    binary = bool(np.isin(rows, (0.0, 1.0)).all())
    report.note("training; the first time compiles for a while")
    model = VAE(
        asked.latent, likelihood="bernoulli" if binary else "gaussian", epochs=asked.epochs, random_state=asked.seed
    ).fit(learned)  # fmt: skip
    report.note("asking")
    gaps = shown.copy()
    gaps[:, int(rows.shape[1] * (1 - asked.missing)) :] = (
        np.nan
    )  # what comes last: the lower part of a picture
    codes_of = model.transform(shown)
    steps = np.linspace(0.0, 1.0, WALK)[:, None]
    ways = [
        model.inverse_transform((1 - steps) * one + steps * other)
        for one, other in zip(codes_of, np.roll(codes_of, -1, axis=0), strict=True)
    ]
    side = isqrt(rows.shape[1])
    return {
        "names": names,
        "side": side if side * side == rows.shape[1] and side > 2 else None,
        "low": float(rows.min()),
        "high": float(rows.max()),
        "curve": _numbers(learned_by.history if (learned_by := model.network_.fit_) is not None else []),
        "rows": [_numbers(row) for row in shown],
        "gaps": [_numbers(row) for row in gaps],
        "filled": [_numbers(row) for row in model.impute(gaps)],
        "ways": [[_numbers(row) for row in way] for way in ways],
        "drawn": [_numbers(row) for row in model.sample(2 * SHOWN_ROWS, seed=asked.seed)],
        "score": _number(model.score(rows[:held_out])),
        "count": len(rows),
    }


def _measured(asked: EncodeRows) -> tuple[Array, list[str]]:
    """Return the rows that are to be encoded, and the names of their columns."""
    if asked.data is None:
        from sklearn.datasets import load_digits

        pixels = load_digits().data
        return (pixels > 7).astype(np.float64), [f"pixel {i}" for i in range(pixels.shape[1])]
    frame = as_frame(asked.data)
    names = list(asked.columns) or [str(c) for c in frame.select_dtypes("number").columns]
    check_known(names, frame.columns, "the table")
    if len(names) < 2:
        raise InvalidArgument("codes are made of two or more columns of numbers, and the table has fewer")
    try:
        rows = np.asarray(frame[names], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument("a column has cells that are no numbers; leave it out") from None
    whole = rows[~np.isnan(rows).any(axis=1)]
    if len(whole) < 2 * SHOWN_ROWS:
        raise InvalidArgument(f"{len(whole)} rows have no gap; {2 * SHOWN_ROWS} are the fewest to learn from")
    return whole, names


def _texts(path: Path, column: str | None) -> list[str]:
    if path.suffix in SUFFIXES:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    frame = as_frame(path)
    names = [str(c) for c in frame.columns]
    chosen = column or (names[0] if len(names) == 1 else None)
    if chosen is None:
        raise InvalidArgument(f"say which column has the texts: {', '.join(names)}")
    check_known([chosen], names, "the table")
    return [str(text) for text in frame[chosen].dropna()]


def _numbers(values: Any) -> list[float | None]:
    return [_number(x) for x in np.asarray(values, dtype=np.float64)]


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
