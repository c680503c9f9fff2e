"""Latent Dirichlet allocation as a plate network, which the engines for such networks answer."""

from typing import TYPE_CHECKING

from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork


def plate_network(prior: Array, word_prior: Array, n_documents: int) -> "BayesianNetwork":
    """Return the network of documents, given the priors of topics (topics) and of words (topics x words)."""
    with x64():
        import numpyro.distributions as dist

    from markovia.models.graphical.bayesian_network import BayesianNetwork

    network = BayesianNetwork()
    with x64():
        words, topics = dist.Dirichlet(word_prior), dist.Dirichlet(prior)
    network.add("phi", words, plate={"topic": len(prior)})
    network.add("theta", topics, plate={"text": n_documents})
    network.add("z", lambda theta, document: dist.Categorical(theta[document]), plate="token")
    network.add("w", lambda phi, z: dist.Categorical(phi[z]), plate="token")
    return network
