"""The pictures of the page on relatives of LDA."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

LINES = (
    "gene dna cell protein genome",
    "species fossil evolution organism forest",
    "neuron brain cortex memory synapse",
    "computer data algorithm network code",
    "star planet galaxy orbit telescope",
)
WORDS = " ".join(LINES).split()
TOPICS = 0.9 * np.kron(np.eye(5), [0.3, 0.25, 0.2, 0.15, 0.1]) + 0.1 / 25


def texts(shares: Any, topics: Any, rng: np.random.Generator, length: int = 60) -> list[str]:
    """Draw a text for each row of shares, as the page does."""
    return [" ".join(rng.choice(WORDS, length, p=row @ topics)) for row in shares]


def topic_graph() -> Any:
    """Show which topics of science come together."""
    rng = np.random.default_rng(0)
    covariance = 4.0 * np.eye(5)
    covariance[[0, 1, 2, 3], [1, 0, 3, 2]] = 3.0
    logits = rng.multivariate_normal(np.zeros(5), covariance, 300)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    model = mk.CorrelatedTopics(5, random_state=0).fit(texts(shares, TOPICS, rng))
    return model.topic_graph().plot()


def topics_over_time() -> Any:
    """Show words of a topic that come and go, and topics that grow and shrink."""
    rng = np.random.default_rng(1)
    years = np.repeat(np.arange(1980, 2020, 4), 40)
    articles = []
    for year in years:
        t = (year - 1980) / 36
        topics = TOPICS[[2, 3]].copy()
        topics[1, 15:20] = (
            0.9 * np.array([0.45 - 0.3 * t, 0.05 + 0.3 * t, 0.2, 0.05 + 0.2 * t, 0.25 - 0.2 * t]) + 0.1 / 25
        )
        share = rng.beta(2 + 3 * t, 4 - 2 * t)
        articles += texts([[1 - share, share]], topics, rng, 50)
    model = mk.topics.DynamicTopics(2, random_state=0).fit(articles, years)
    machines = int(model.word_path("computer").mean().argmax())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    model.plot_words(machines, 5, ax=axes[0], title="words of the topic of computing")
    model.plot_shares(articles, years, ax=axes[1])
    return figure


FIGURES = (topic_graph, topics_over_time)
