"""Pictures of the pages on taggers."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

CORPUS = {
    "Anna lives in Paris": "B-PER O O B-LOC",
    "Ben Stone went to New York": "B-PER I-PER O O B-LOC I-LOC",
    "yesterday Anna Stone was in London": "O B-PER I-PER O O B-LOC",
    "Clara moved to San Diego": "B-PER O O B-LOC I-LOC",
    "in Rome Ben met Clara Wood": "O B-LOC B-PER O B-PER I-PER",
    "they went to London": "O O O B-LOC",
}


def tagging_marginals() -> Any:
    """Show the marginals of one sentence and its best labelling."""
    tagger = mk.ChainCRF(C=10.0, constraints="bio")
    tagger.fit([_read(text) for text in CORPUS], [tags.split() for tags in CORPUS.values()])
    text = "Anna Wood went to San Remo"
    shares = tagger.smooth([_read(text)])[0]
    best = [tagger.classes_.tolist().index(y) for y in tagger.predict([_read(text)])[0]]
    figure, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    ax.imshow(shares.T, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (t, a), p in np.ndenumerate(shares):
        if p > 0.02:
            ax.text(
                t,
                a - 0.22,
                f"{p:.2f}",
                ha="center",
                va="center",
                color="white" if p > 0.55 else "black",
                fontsize=8,
            )
    ax.plot(range(len(best)), best, color="tab:orange", marker="o", markersize=5)
    ax.set_xticks(range(len(best)), text.split())
    ax.set_yticks(range(len(tagger.classes_)), tagger.classes_.tolist())
    return figure


def label_bias() -> Any:
    """Show how sure three models are that a word is "rib", letter by letter."""
    rng = np.random.default_rng(0)
    paths = {"rib": [1, 2, 3], "rob": [4, 5, 6]}
    words = [("rib", "rob")[rng.integers(2)] for _ in range(400)]
    seen = [[c if rng.random() < 0.97 else "riob"[rng.integers(4)] for c in word] for word in words]
    labels = [paths[word] for word in words]
    inputs = [[[c] for c in word] for word in seen]
    fields = {"MEMM": mk.MEMM(C=100.0), "ChainCRF": mk.ChainCRF(C=100.0)}
    hmm = mk.HMM(6, emission="categorical")
    hmm.fit([_codes(w) for w in seen], labels=[[v - 1 for v in y] for y in labels])
    answers = {"HMM": lambda word: hmm.smooth([_codes(word)])[0]}
    for name, model in fields.items():
        model.fit(inputs, labels)
        answers[name] = lambda word, model=model: model.smooth([[[c] for c in word]])[0]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained", sharey=True)
    for ax, word in zip(axes, paths, strict=True):
        for i, (name, answer) in enumerate(answers.items()):
            ax.bar(np.arange(3) + (i - 1) * 0.26, answer(word)[:, :3].sum(axis=1), 0.24, label=name)
        ax.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
        ax.set_xticks(range(3), list(word))
        ax.set_title(f'"{word}" is seen')
    axes[0].set_ylabel('probability of a label of "rib"')
    axes[1].legend()
    return figure


def _read(text: str) -> list[dict[str, Any]]:
    words = text.split()
    found = []
    for t, word in enumerate(words):
        token: dict[str, Any] = {
            "bias": True,
            "word": word.lower(),
            "end": word[-2:],
            "capital": word[0].isupper(),
        }
        token["before"] = {"word": words[t - 1].lower()} if t else ["start"]
        token["after"] = {"word": words[t + 1].lower()} if t + 1 < len(words) else ["end"]
        found.append(token)
    return found


def _codes(word: Any) -> list[int]:
    return ["riob".index(c) for c in word]


FIGURES: tuple[Callable[[], Any], ...] = (tagging_marginals, label_bias)
