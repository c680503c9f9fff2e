"""How long taggers take to learn and to decode, side by side with python-crfsuite.

Run: python benchmarks/sequences_crf.py [--quick] [--sequences N] [--tokens T] [--labels K] [--words V] [--iterations I]

Sentences of made-up words with ten attributes a token (the word, its ends, its neighbours), 50 steps of L-BFGS with
`c2 = 1`. Both libraries get the same dicts. "read" is the reading of dicts (`Trainer.append`, `prepare`), "train" what
comes after it, "decode" from features that were read beforehand, "decode dicts" from dicts. Then both objectives: each
library's at the end, and ours at CRFsuite's own weights. With MARKOVIA_THREADS=1 markovia uses one core as CRFsuite does.
"""

import argparse
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pycrfsuite

import markovia as mk

C2 = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the sequences")
    parser.add_argument("--sequences", type=int, default=5000)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--words", type=int, default=3000)
    parser.add_argument("--iterations", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
    n = options.sequences // (10 if options.quick else 1)
    inputs, labels = sentences(n, options.tokens, options.labels, options.words)
    began = perf_counter()
    mk.ChainCRF(max_iter=2).fit(inputs[:200], labels[:200]).predict(inputs[:200])
    print(
        f"{n:,} sequences of {options.tokens} tokens, {options.labels} labels; first use {perf_counter() - began:.1f} s\n"
    )
    mine, crf = ours(inputs, labels, options.iterations)
    theirs, tagger = peer(inputs, labels, options.iterations)
    print(f"{'':14}{'markovia':>10}{'crfsuite':>10}{'times':>8}{'cpu times':>11}")
    for what in ("read", "train", "decode", "decode dicts"):
        (a, cpu_a), (b, cpu_b) = mine[what], theirs[what]
        print(f"{what:14}{a:10.3f}{b:10.3f}{b / a:8.1f}{cpu_b / cpu_a:11.1f}")
    print(f"\nobjective{mine['objective'][0]:18.4f}{theirs['objective'][0]:18.4f}")
    print(f"ours at CRFsuite's weights{at_weights(tagger, inputs, labels):19.4f}")
    same = np.mean(np.concatenate(crf.predict(inputs)) == np.concatenate(theirs["paths"]))
    print(f"tokens with the same label: {same:.3f}")
    return 0


def sentences(n: int, tokens: int, k: int, words: int, seed: int = 0) -> tuple[Any, Any]:
    """Return sentences of a hidden Markov model, as dicts of attributes, and their labels."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(k, 0.5), size=k)
    emission = rng.dirichlet(np.full(words, 0.02), size=k)
    inputs, labels = [], []
    for _ in range(n):
        y = [int(rng.integers(k))]
        for _ in range(tokens - 1):
            y.append(int(rng.choice(k, p=moves[y[-1]])))
        shown = [
            f"w{rng.choice(words, p=emission[c]) if rng.random() < 0.7 else rng.integers(words)}" for c in y
        ]
        inputs.append([_token(shown, t) for t in range(tokens)])
        labels.append([f"L{c}" for c in y])
    return inputs, labels


def _token(words: list[str], t: int) -> dict[str, Any]:
    word = words[t]
    found: dict[str, Any] = {
        "bias": True, "word": word, "end2": word[-2:], "end3": word[-3:], "begin": word[:2], "digit": word[-1],
    }  # fmt: skip
    found |= {"before": words[t - 1], "before end": words[t - 1][-2:]} if t else {"first": True}
    found |= {"after": words[t + 1], "after end": words[t + 1][-2:]} if t + 1 < len(words) else {"last": True}
    return found


def timed(task: Any) -> tuple[tuple[float, float], Any]:
    """Return wall-clock and processor seconds of a task, and what it returned."""
    wall, processor = perf_counter(), process_time()
    found = task()
    return (perf_counter() - wall, process_time() - processor), found


def ours(inputs: Any, labels: Any, steps: int) -> tuple[dict[str, Any], mk.ChainCRF]:
    from markovia.data.text.tokens import read_tokens

    found: dict[str, Any] = {}
    found["read"], tokens = timed(lambda: read_tokens(inputs, grow=True))
    crf = mk.ChainCRF(C=1 / C2, max_iter=steps)
    found["train"], _ = timed(lambda: crf.fit(tokens, labels))
    prepared = crf.prepare(inputs)
    found["decode"] = min(timed(lambda: crf.predict(prepared))[0] for _ in range(5))
    found["decode dicts"] = min(timed(lambda: crf.predict(inputs))[0] for _ in range(3))
    found["objective"] = (crf.objective_,)
    return found, crf


def peer(inputs: Any, labels: Any, steps: int) -> tuple[dict[str, Any], Any]:
    found: dict[str, Any] = {}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)

    def read() -> None:
        for x, y in zip(inputs, labels, strict=True):
            trainer.append(x, y)

    found["read"], _ = timed(read)
    trainer.set_params({"c1": 0.0, "c2": C2, "max_iterations": steps})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model")
        found["train"], _ = timed(lambda: trainer.train(file))
        tagger = pycrfsuite.Tagger()
        tagger.open(file)
        prepared = [pycrfsuite.ItemSequence(x) for x in inputs]
        found["decode"] = min(timed(lambda: [tagger.tag(x) for x in prepared])[0] for _ in range(3))
        found["decode dicts"], found["paths"] = timed(lambda: [tagger.tag(x) for x in inputs])
        found["objective"] = (trainer.logparser.last_iteration["loss"],)
        return found, tagger.info()


def at_weights(info: Any, inputs: Any, labels: Any) -> float:
    """Return our objective at CRFsuite's weights."""
    names = sorted({name for name, _ in info.state_features})
    classes = sorted(info.labels)
    coef = np.array([[info.state_features.get((n, c), 0.0) for n in names] for c in classes])
    moves = np.array([[info.transitions.get((a, b), 0.0) for b in classes] for a in classes])
    crf = mk.ChainCRF.from_weights(classes, coef, moves, feature_names=names)
    penalty = C2 * float(np.square(coef).sum() + np.square(moves).sum())
    return penalty - crf.log_likelihood(inputs, labels)


if __name__ == "__main__":
    raise SystemExit(main())
