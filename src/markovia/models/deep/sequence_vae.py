"""Variational autoencoders of sequences: codes are a process along the steps.

References: Krishnan, Shalit and Sontag (2017) for deep Markov models; Johnson and others (2016) for graphs of codes.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import gaussian_mlp
from markovia.models.deep import vae_nodes as nodes
from markovia.models.deep.vae import VAE
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import laws


@dataclass(eq=False, repr=False)
class SequenceVAE(VAE):
    """An autoencoder of sequences: X has rows, steps and columns, and the codes of a row are a process along its steps.

    Sequences of different lengths are a list of tables, or NaN after their ends.

    Parameters
    ----------
    latent
        How many numbers the code of a step has.
    prior
        "markov": a code depends on the one before by a network (a deep Markov model). "hmm": codes are those of `n_clusters`
        hidden states "s", a chain that is summed out exactly. Or a `BayesianNetwork` with a node "z" on the plates "row"
        and "t".
    hidden, layers, likelihood, noise, n_clusters, objective, draws, beta, encoder, decoder
        As in `mk.deep.VAE`; the encoder sees a whole sequence, by default with gates in both directions.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Examples
    --------
    >>> import markovia as mk
    >>> waves = np.sin(np.arange(6) + np.arange(20)[:, None])[..., None]
    >>> vae = mk.deep.SequenceVAE(1, hidden=8, likelihood="gaussian", epochs=5, random_state=0).fit(waves)
    >>> vae.transform(waves[:2]).shape, vae.sample(3, seed=0).shape
    ((2, 6, 1), (3, 6, 1))
    """

    prior: Any = "markov"
    _plates: ClassVar[Any] = ("row", "t")

    def _read(self, X: Any, reset: bool) -> Array:  # noqa: N803
        """Return sequences as one array with NaN after their ends."""
        tables = [np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in X]
        widths = {x.shape[1] for x in tables if x.ndim == 2}
        if not tables or len(widths) != 1 or any(x.ndim != 2 for x in tables):
            raise InvalidArgument(
                "X has rows, steps and columns: an array with three axes, or a list of tables"
            )
        width = widths.pop()
        if reset:
            self.n_features_in_, self.n_steps_ = width, max(len(x) for x in tables)
        elif width != self.n_features_in_:
            raise InvalidArgument(
                f"X has {width} columns, and the autoencoder has learned {self.n_features_in_}"
            )
        whole = np.full((len(tables), max(len(x) for x in tables), width), np.nan)
        for row, x in zip(whole, tables, strict=True):
            row[: len(x)] = x
        if np.isinf(whole).any():
            raise InvalidArgument("X has an infinite entry; give a number, or NaN where it is missing")
        return whole

    def _priors(self) -> BayesianNetwork:
        if not isinstance(self.prior, str):
            return self._given_prior()
        self._take_no(
            "posterior", "latent_kind", "likelihood" if self.likelihood == "categorical" else "posterior"
        )
        m, size = BayesianNetwork(), self._sizes[0]
        if self.prior == "markov":
            m.add("move", Parameter(self._mlp(gaussian_mlp, size, size)))
            first = laws.Normal(0.0, 1.0).expand((size,)).to_event(1)
            m.add("z", nodes.normal_after, plate=self._plates, previous={"before": "z"}, first=first)
        elif self.prior == "hmm":
            states, rng = self.n_clusters, np.random.default_rng(self.random_state)
            m.add("starts", Parameter(np.zeros(states)))
            m.add("moves", Parameter(2.0 * np.eye(states)))
            m.add("means", Parameter(rng.normal(size=(states, size))))
            m.add("scales", Parameter(np.ones((states, size)), support="positive"))
            m.add(
                "s", nodes.next_state, plate=self._plates, previous={"before": "s"}, first=nodes.first_state
            )
            m.add("z", nodes.component, parents=["s", "means", "scales"], plate=self._plates)
        else:
            raise InvalidArgument(
                f"prior= is 'markov', 'hmm' or a BayesianNetwork with a node 'z', not {self.prior!r}"
            )
        return m

    def _guides(self, m: BayesianNetwork, width: int) -> None:
        from markovia.factors.networks.network_recipes import gaussian_gru

        usual = gaussian_gru(width, self._sizes[0], hidden=self.hidden, direction="both")
        m.add("encoder", Parameter(self.encoder or usual))
        m.guide("z", nodes.code_guide)

    def sample(self, n: int = 1, seed: Any = None, steps: int | None = None) -> Array:
        """Return n sequences drawn from the model, as long as the longest it has learned from, or of some steps."""
        return self._drawn(n, {}, "x", seed, t=getattr(self, "n_steps_", 1) if steps is None else steps)

    def inverse_transform(self, Z: Any) -> Array:  # noqa: N803
        """Return the mean of sequences with some codes: rows, steps, numbers."""
        codes = np.asarray(Z, dtype=np.float64)
        return self._drawn(len(codes), {"z": codes}, "mean", 0, t=codes.shape[1])
