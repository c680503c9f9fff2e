"""Latent semantic indexing: factors of weighted counts, by singular values or without negative numbers."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.text.corpus import Corpus
from markovia.data.text.tf_idf import tf_idf_matrix
from markovia.errors import InvalidArgument
from markovia.learning.latent.document_draws import DrawnWords
from markovia.models.topics.base import TopicModel
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Whole, check
from markovia.runtime.seeds import Seed


@dataclass(eq=False, repr=False)
class LSI(TopicModel):
    """Latent semantic indexing: documents and words in a space of few factors, where alike documents are near each other.

    Counts become TF-IDF weights or stay as they are, and their matrix is factored by scikit-learn. Factors are no
    probabilities: `PLSI` and `LDA` have those. Reference: Deerwester et al. (1990).

    Parameters
    ----------
    n_components
        The number of factors.
    method
        "svd", singular values; or "nmf", factors that are not negative, which read as topics.
    weighting
        "tf-idf", or "counts": the counts themselves, as in X = W L D'; frequent words then lead the first factors.
    max_iter
        Steps of "nmf" at most.
    random_state
        The seed of the factorisation.

    Attributes
    ----------
    components_
        Factors x words.
    doc_factors_
        The factors of the documents learned from.
    singular_values_
        Of "svd": the weights of factors.
    document_frequency_
        The share of documents that have each word.

    Examples
    --------
    >>> texts = ["ship sail sea", "boat sail sea", "tree wood forest", "wood tree leaf", "the sea the forest"]
    >>> model = LSI(2, random_state=0).fit(texts)
    >>> [name for name, _ in model.search("ship", 2)]
    ['0', '1']
    """

    n_components: Count = 10
    _: KW_ONLY
    method: Literal["svd", "nmf"] = "svd"
    weighting: Literal["tf-idf", "counts"] = "tf-idf"
    max_iter: Count = 500
    random_state: Any = None

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        if self.n_components > min(corpus.shape):
            raise InvalidArgument(
                f"n_components= is at most the smaller of {corpus.shape[0]} documents and {corpus.shape[1]} words, not "
                f"{self.n_components}"
            )
        self.document_frequency_ = corpus.document_frequency() / len(corpus)
        weights, seed = self._weighted(corpus), int(rng.integers(2**31))
        if not weights.data.any():
            raise InvalidArgument(
                "every word is in all documents, which tells nothing of them; give more documents, or documents that differ"
            )
        if self.method == "nmf":
            from sklearn.decomposition import NMF

            factored = NMF(self.n_components, init="nndsvda", max_iter=self.max_iter, random_state=seed)
            self.doc_factors_ = factored.fit_transform(weights)
            self.components_, self.singular_values_ = factored.components_, None
        else:
            from sklearn.decomposition import TruncatedSVD

            found = TruncatedSVD(self.n_components, n_iter=10, random_state=seed)
            self.doc_factors_ = found.fit_transform(weights)
            self.components_, self.singular_values_ = found.components_, found.singular_values_
        self.names_ = list(corpus.names)

    def _weighted(self, corpus: Corpus) -> Any:
        """Return what is factored, documents x words."""
        counts = corpus.counts()
        if self.weighting == "counts":
            return counts.astype(np.float64)
        return tf_idf_matrix(counts, self.document_frequency_)

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        """Return the factors of documents; they are no proportions."""
        weights = self._weighted(corpus)
        if self.singular_values_ is not None:
            return np.asarray(weights @ self.components_.T)
        from sklearn.decomposition import non_negative_factorization

        h, k = self.components_, len(self.components_)
        found, _, _ = non_negative_factorization(
            weights, H=h, n_components=k, update_H=False, max_iter=self.max_iter
        )
        return np.asarray(found)

    def search(self, query: Any, n: int = 5) -> list[tuple[str, float]]:
        """Return the names of the learned documents nearest to a text or list of words, with the cosine of the angle."""
        check("n", n, Whole(1))
        check_is_fitted(self, "components_")
        here = self.transform([query])[0]
        size = np.linalg.norm(self.doc_factors_, axis=1) * np.linalg.norm(here)
        cosines = np.where(size > 0.0, self.doc_factors_ @ here / np.where(size > 0.0, size, 1.0), 0.0)
        return [(self.names_[i], float(cosines[i])) for i in np.argsort(-cosines, kind="stable")[:n]]

    @property
    def topic_word_(self) -> Array:
        """The sizes of words in each factor, as shares."""
        check_is_fitted(self, "components_")
        sizes = np.abs(self.components_)
        return np.asarray(sizes / np.maximum(sizes.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    @property
    def topic_shares_(self) -> Array:
        """The share of each factor in what the documents weigh."""
        sizes = np.linalg.norm(self.doc_factors_, axis=0) * np.linalg.norm(self.components_, axis=1)
        return np.asarray(sizes / sizes.sum())

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        raise InvalidArgument(
            "factors of LSI are no probabilities, so no documents can be drawn from them; PLSI and LDA have such"
        )

    def _completion(self, corpus: Corpus, seed: Seed) -> tuple[float, int]:
        raise InvalidArgument(
            "factors of LSI are no probabilities, so they have no perplexity; PLSI and LDA have one"
        )
