"""Pictures of topics show the right words, places and shares."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt

import markovia as mk
from markovia.plotting.groups.topics import jensen_shannon, scaled_places

TEXTS = [["cat", "dog"] * 3, ["sun", "rain"] * 3, ["cat", "sun"] * 3] * 6


@pytest.fixture(scope="module")
def model():
    return mk.LDA(2, max_iter=40, doc_topic_prior=0.1, topic_word_prior=0.1, random_state=0).fit(TEXTS)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_panels_have_the_leading_words_and_their_probabilities(model):
    panels = model.plot_topics(2, title="Two $topics").ravel()
    assert len(panels) == 2
    assert model.plot_topics(2, topics=[1], ax=panels[0]) is panels[0]
    panels = model.plot_topics(2).ravel()
    largest = int(np.argmax(model.topic_shares_))
    assert [t.get_text() for t in panels[0].get_yticklabels()] == model.top_words(2)[largest]
    assert panels[0].patches[0].get_width() == pytest.approx(model.topic_word_[largest].max())
    with pytest.raises(mk.MarkoviaError, match="from 0 to 1"):
        model.plot_topics(topics=[5])


def test_documents_are_stacks_of_their_shares(model):
    ax = model.plot_documents(TEXTS[:3])
    assert sum(p.get_width() for p in ax.patches) == pytest.approx(3.0)
    assert len(ax.get_legend().get_texts()) == 2


def test_maps_keep_distances_and_convergence_shows_every_pass(model):
    ax = model.plot_map()
    places = ax.collections[0].get_offsets()
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(jensen_shannon(model.topic_word_)[0, 1])
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    apart = np.linalg.norm(square[:, None] - square, axis=2)
    found = scaled_places(apart)
    assert np.linalg.norm(found[:, None] - found, axis=2) == pytest.approx(apart)
    with pytest.raises(mk.MarkoviaError, match="ax= is for one picture; there are 2 topics"):
        model.plot_topics(ax=ax)
    assert len(model.plot_convergence().lines[0].get_xdata()) == 40


def test_notebooks_and_print_show_the_words(model):
    assert "<td>" in model._repr_html_()
    assert "cat" in model._repr_html_()
    assert str(model).splitlines()[0].split() == ["topic", "share", "words"]
