"""Variational autoencoders: a network decodes hidden codes into rows, and another proposes the codes of a row.

References: Kingma and Welling (2014), Rezende, Mohamed and Wierstra (2014); Higgins and others (2017) for beta; Burda,
Grosse and Salakhutdinov (2016) for several draws; Jiang and others (2017) for a mixture as prior; Rezende and Mohamed (2015)
for flows as proposals; Sonderby and others (2016) for ladders; Jang, Gu and Poole (2017) for states; van den Oord, Vinyals
and Kavukcuoglu (2017) for code books. Cost: one pass through both networks a row and epoch. With linear networks and
Gaussian noise it is `mk.mixtures.ProbabilisticPCA`, which has a closed form.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from sklearn.utils.metaestimators import available_if

from markovia.errors import ConvergenceWarning, InvalidArgument, UnsupportedModel
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import gaussian_mlp, mlp
from markovia.models.deep import vae_nodes as nodes
from markovia.models.deep.deep_model import DeepModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.checks import (
    NOT_NEGATIVE,
    Choice,
    Count,
    CountOrNone,
    Either,
    FromZero,
    Positive,
    Several,
    Whole,
    check,
)
from markovia.runtime.estimator import check_fitted
from markovia.runtime.libraries import laws
from markovia.runtime.registry import resolve

_OBJECTIVES = "markovia.learning.neural."
PROPOSALS = 200
"""Proposals a row that verbs weigh; `network()` takes any number."""
BLOCK = 500
"""Rows whose posteriors are computed at once."""
LATENT = Either((Whole(1), Several(Whole(1), "sizes, such as (8, 4)")))


def _has_clusters(model: "VAE") -> bool:
    """Say whether rows are told apart by the settings."""
    return (isinstance(model.prior, str) and model.prior == "mixture") or model.latent_kind == "states"


@dataclass(eq=False, repr=False)
class VAE(DeepModel):
    """A variational autoencoder, stated as a network with nodes "z" (the code) and "x" (a row).

    Parameters
    ----------
    latent
        How many numbers a code has; several for a ladder of codes, from the data upwards: "z", "z2", ...
    hidden, layers
        The width and number of hidden layers of encoder and decoder; without layers they are linear.
    likelihood
        What columns are: "bernoulli" (0 and 1), "gaussian" (numbers, in any unit), "categorical" (codes of states 0, 1,
        ...). Missing entries are NaN.
    noise
        Of Gaussian columns, a standard deviation for each "column", or one that is "shared" by all.
    prior
        Of codes: "normal"; "mixture", of `n_clusters` normals (VaDE), which `predict` tells apart; or a `BayesianNetwork`
        with a node "z" on the plate "row", and whatever z depends on.
    n_clusters
        Clusters of the mixture.
    posterior
        What the encoder proposes: a "normal", or a "flow".
    latent_kind
        "normal" numbers; "gumbel", for `latent` variables with `categories` states each, which training softens;
        "codebook" (VQ-VAE), where states stand for learned vectors of `code_size` numbers, and the nearest to what is
        encoded is taken; or "states", one variable with `categories` states, which is summed out exactly. The node is "k".
    categories, code_size
        States of discrete codes, and numbers of a vector in the code book.
    objective, draws, beta
        What is made large: "elbo", with `beta` as often the divergence from the prior; "iwae"; or settings of
        `mk.objectives`. Proposals a row and step: 1, for "iwae" 10.
    encoder, decoder
        Recipes of `mk.networks` or Equinox modules of one's own: from a row (columns less their mean, in units of their
        deviation) to locations and scales of a code, and from a code to one number a column.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Attributes
    ----------
    network_
        The trained network; `network()` is a copy of it to ask.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> vae = mk.deep.VAE(1, hidden=8, epochs=60, learning_rate=0.02, random_state=0).fit(rows)
    >>> vae.transform(rows[:2]).shape, vae.sample(3, seed=0).shape, vae.score_samples(rows[:2]).shape
    ((2, 1), (3, 4), (2,))
    >>> vae.impute([[1, np.nan, 0, np.nan]]).round().tolist()
    [[1.0, 1.0, 0.0, 0.0]]
    """

    latent: Annotated[Any, LATENT] = 8
    _: KW_ONLY
    hidden: Count = 128
    layers: FromZero = 1
    likelihood: Literal["bernoulli", "gaussian", "categorical"] = "bernoulli"
    noise: Literal["column", "shared"] = "column"
    prior: Any = "normal"
    n_clusters: Count = 10
    posterior: Literal["normal", "flow"] = "normal"
    latent_kind: Literal["normal", "gumbel", "codebook", "states"] = "normal"
    categories: Count = 10
    code_size: Count = 8
    objective: Any = "elbo"
    draws: CountOrNone = None
    beta: Annotated[float, NOT_NEGATIVE] = 1.0
    encoder: Any = None
    decoder: Any = None

    # -- the network -------------------------------------------------------------------------------------------------

    def _begin(self, rows: Array, y: Any) -> None:
        """Look at the units of columns, which are constants of the network, and refuse what the likelihood is not for."""
        flat = rows.reshape(-1, rows.shape[-1])
        self.centre_ = np.nanmean(flat, axis=0)
        self.unit_ = np.ones_like(self.centre_)
        if self.likelihood == "gaussian":
            spread = np.sqrt(np.nanmean((flat - self.centre_) ** 2, axis=0))
            if self.noise == "shared":
                spread = np.full_like(spread, np.sqrt(np.mean(spread**2)))
            self.unit_ = np.where(spread > 0, spread, 1.0)
            return
        top = 1 if self.likelihood == "bernoulli" else np.inf
        known = flat[~np.isnan(flat)]
        if (bad := known[(known % 1 != 0) | (known < 0) | (known > top)]).size:
            what = "0 and 1" if top == 1 else "whole numbers, 0 and above"
            raise InvalidArgument(
                f"likelihood={self.likelihood!r} is for {what}, and X has {bad[0]:g}; say likelihood='gaussian' for numbers"
            )
        self.n_levels_ = int(known.max()) + 1

    _plates: ClassVar[Any] = "row"
    _takes_gaps: ClassVar[bool] = True

    def _stated(self, width: int) -> BayesianNetwork:
        """Return the network: codes, what is decoded, rows, and guides."""
        m, width = self._priors(), self.n_features_in_
        m.add("centre", Parameter(self.centre_, fixed=True))
        m.add("unit", Parameter(self.unit_, fixed=True))
        if self.likelihood == "categorical":
            m.add("levels", Parameter(np.eye(self.n_levels_), fixed=True))
            width *= self.n_levels_
        elif self.likelihood == "gaussian":
            m.add("noise", Parameter(1.0 if self.noise == "shared" else np.ones(width), support="positive"))
        self._decode(m, width)
        m.add("x", getattr(nodes, self.likelihood), plate=self._plates)
        m.add("mean", getattr(nodes, self.likelihood + "_mean"), plate=self._plates)
        self._guides(m, width)
        return m

    def _take_no(self, *names: str) -> None:
        """Refuse settings that a kind of autoencoder has no use for, and ladders of codes."""
        defaults = VAE._defaults()
        for name in names:
            if not (isinstance(getattr(self, name), str) and getattr(self, name) == defaults[name]):
                raise InvalidArgument(f"{type(self).__name__} takes no {name}= here; leave it out")
        if len(self._sizes) > 1:
            raise InvalidArgument(f"latent= of {type(self).__name__} is one number here, not {self.latent!r}")

    def _priors(self) -> BayesianNetwork:
        """Return a network of the codes."""
        if not isinstance(self.prior, str):
            return self._given_prior()
        check("prior", self.prior, Choice(("normal", "mixture")))
        m = BayesianNetwork()
        sizes = self._sizes
        if self.latent_kind != "normal":
            self._take_no("prior", "posterior", "likelihood" if self.likelihood == "categorical" else "prior")
            shape = (self.categories,) if self.latent_kind == "states" else (sizes[0], self.categories)
            m.add("logits", Parameter(np.zeros(shape)))
            book = self.latent_kind == "codebook"
            vectors = np.random.default_rng(self.random_state).normal(size=(self.categories, self.code_size))
            m.add("codes", Parameter(vectors if book else np.eye(self.categories), fixed=not book))
            m.add("k", nodes.state if self.latent_kind == "states" else nodes.states, plate="row")
            m.add("z", nodes.looked_up, parents=["k", "codes"], plate="row")
            return m
        top = _named(len(sizes))
        if self.prior == "mixture":
            self._add_mixture(m, "c", top, sizes[-1])
        else:
            m.add(top, laws.Normal(0.0, 1.0), size=sizes[-1], plate="row")
        for i in range(len(sizes) - 1, 0, -1):
            m.add(f"down{i}", Parameter(self._mlp(gaussian_mlp, sizes[i], sizes[i - 1])))
            m.add(_named(i), nodes.normal_given, parents=[_named(i + 1), f"down{i}"], plate="row")
        return m

    def _given_prior(self) -> BayesianNetwork:
        """Return a copy of the network that was given for the codes."""
        if not isinstance(self.prior, BayesianNetwork) or "z" not in self.prior or len(self._sizes) > 1:
            raise InvalidArgument(
                "prior= is a BayesianNetwork with a node 'z', whose numbers are latent=, or a word"
            )
        return self.prior.copy()

    def _add_mixture(
        self, m: BayesianNetwork, name: str, code: str, size: int, states: int | None = None
    ) -> None:
        """Add a variable with states, and a code that has a mean and a spread in each."""
        states = self.n_clusters if states is None else states
        rng = np.random.default_rng(self.random_state)
        m.add("logits", Parameter(np.zeros(states)))
        m.add("means", Parameter(rng.normal(size=(states, size))))
        m.add("scales", Parameter(np.ones((states, size)), support="positive"))
        m.add(name, nodes.state, plate="row")
        m.add(code, nodes.component, parents=[name, "means", "scales"], plate="row")

    def _decode(self, m: BayesianNetwork, outputs: int) -> None:
        """Add the decoder."""
        m.add("decoder", Parameter(self.decoder or self._mlp(mlp, self._code_numbers, outputs)))
        function = nodes.decoded_flat if self.latent_kind in ("gumbel", "codebook") else nodes.decoded
        m.add("decoded", function, parents=["z", "decoder"], plate=self._plates)

    def _guides(self, m: BayesianNetwork, width: int) -> None:
        """Add the encoder and what it proposes."""
        sizes = self._sizes
        if self.latent_kind == "states":
            return
        if self.latent_kind in ("gumbel", "codebook"):
            m.add("encoder", Parameter(self.encoder or self._mlp(mlp, width, self._code_numbers)))
            m.guide("k", nodes.state_guide if self.latent_kind == "gumbel" else nodes.nearest_guide)
            return
        if self.posterior == "flow":
            from markovia.factors.networks.flows import coupling

            if self.likelihood == "categorical":
                raise InvalidArgument("likelihood='categorical' goes with posterior='normal'")

            m.add("encoder", Parameter(self.encoder or self._mlp(mlp, width, 4 * sizes[0])))
            m.add("flow", Parameter(coupling(sizes[0], layers=4, hidden=self.hidden, context=4 * sizes[0])))
            m.guide("z", nodes.flow_guide)
        else:
            m.add("encoder", Parameter(self.encoder or self._mlp(gaussian_mlp, width, sizes[0])))
            m.guide("z", nodes.level_guide if self.likelihood == "categorical" else nodes.code_guide)
        for i in range(1, len(sizes)):
            m.add(f"up{i}", Parameter(self._mlp(gaussian_mlp, sizes[i - 1], sizes[i])))
            m.guide(_named(i + 1), nodes.normal_given, parents=[_named(i), f"up{i}"])

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in np.atleast_1d(self.latent))

    @property
    def _code_numbers(self) -> int:
        """How many numbers the decoder is given."""
        if self.latent_kind == "states":
            return self.categories
        each = {"gumbel": self.categories, "codebook": self.code_size}.get(self.latent_kind, 1)
        return self._sizes[0] * each

    def _mlp(self, recipe: Any, inputs: int, outputs: int) -> Any:
        return recipe(inputs, outputs, hidden=self.hidden, layers=self.layers)

    def _objective(self) -> Any:
        """Return the objective, with its settings."""
        if not isinstance(self.objective, str):
            return self.objective
        check("objective", self.objective, Choice(("elbo", "iwae")))
        if self.objective == "iwae":
            if self.beta != 1.0 or self.latent_kind in ("gumbel", "codebook"):
                raise InvalidArgument(
                    "objective='iwae' takes no beta=, and codes that are numbers or summed out"
                )
            return resolve(_OBJECTIVES + "elbo:ImportanceWeighted")(draws=self.draws or 10)
        if self.latent_kind == "codebook":
            return resolve(_OBJECTIVES + "discrete_codes:VectorQuantised")(code="z")
        how: dict[str, Any] = {"draws": self.draws or 1, "beta": self.beta}
        if self.latent_kind == "gumbel":
            return resolve(_OBJECTIVES + "discrete_codes:GumbelSoftmax")(codes=(("k", "z"),), **how)
        return resolve(_OBJECTIVES + "elbo:ELBO")(**how)

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        whole = self.likelihood == "categorical" and not np.isnan(rows).any()
        return {"x": rows.astype(int) if whole else rows}

    # -- verbs -------------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the posterior mean of each row's code, by weighed proposals; of states the most probable ones.

        `network().query("z", given={"x": X})` also says how good the proposals are, and how sure the code is.
        """
        if self.latent_kind == "states":
            return np.asarray(self.predict(X))[:, None]
        return self._means("z" if self.latent_kind == "normal" else "k", self._data(self._rows(X)))

    def inverse_transform(self, Z: Any) -> Array:  # noqa: N803
        """Return the mean of rows with some codes; of categorical columns the probabilities of states."""
        codes = np.asarray(Z)
        if self.latent_kind == "normal":
            return self._drawn(len(codes), {"z": codes.astype(np.float64)}, "mean", 0)
        states = codes.astype(int)
        return self._drawn(
            len(codes), {"k": states[:, 0] if self.latent_kind == "states" else states}, "mean", 0
        )

    def reconstruct(self, X: Any) -> Array:  # noqa: N803
        """Return what the model expects of each row, given what was seen of it; NaN entries were not."""
        return self._means("mean", self._data(self._rows(X)))

    def impute(self, X: Any) -> Array:  # noqa: N803
        """Return the rows, and where an entry is NaN what the model expects there given the rest of the row."""
        rows = self._rows(X)
        if self.likelihood == "categorical":
            raise UnsupportedModel(
                "codes of states have no mean: network().query('x', given={'x': X}) draws them"
            )
        gaps = np.isnan(rows)
        at = np.flatnonzero(gaps.reshape(len(rows), -1).any(axis=1))
        found = rows.copy()
        if len(at):
            found[at] = np.where(gaps[at], self._means("mean", self._data(rows[at])), rows[at])
        return found

    @available_if(_has_clusters)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probabilities of the clusters of a mixture, or of the states, given each row."""
        rows = self._rows(X)
        name = "k" if self.latent_kind == "states" else "c"
        return self._shares(rows, name, self.categories if name == "k" else self.n_clusters)

    @available_if(_has_clusters)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable cluster, or state, of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Array:  # noqa: N803
        """Return rows to ask about."""
        check_fitted(self, "network_")
        return self._read(X, reset=False)

    def _means(self, name: str, data: dict[str, Any]) -> Array:
        """Return posterior means of a node, the most probable states of "k", some rows at a time."""
        if self.latent_kind == "states":
            each = self.inverse_transform(np.arange(self.categories)[:, None])
            return np.asarray(np.tensordot(self._shares(data["x"], "k", self.categories), each, axes=1))
        found = []
        for start in range(0, len(data["x"]), BLOCK):
            some = {k: v[start : start + BLOCK] for k, v in data.items()}
            with warnings.catch_warnings():  # how good weights are, network().query says
                warnings.simplefilter("ignore", ConvergenceWarning)
                post: Any = self.network_.query(name, given=some, engine=self._engine(), missing="impute")
            if name == "k":
                counts = (post.draws["k"][..., None] == np.arange(self.categories)).sum(axis=(0, 1))
            found.append(counts.argmax(axis=-1) if name == "k" else np.asarray(post.mean(name)))
        return np.concatenate(found)

    def _shares(self, rows: Array, name: str, states: int) -> Array:
        """Return the probabilities of states given rows: their log evidence with each of them."""
        data, n = VAE._data(self, rows), len(rows)
        told = [{**data, name: np.full(n, k)} for k in range(states)]
        logs = np.stack(
            [self.network_.log_evidence(t, by="row", engine=self._engine()) for t in told], axis=1
        )
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _engine(self) -> Any:
        from markovia.inference.densities.engines.amortised import Amortised

        return Amortised(seed=0, proposals=PROPOSALS, draws=PROPOSALS)

    def _drawn(self, n: int, done: dict[str, Any], name: str, seed: Any, **inputs: Any) -> Array:
        """Return n rows of a node, with some nodes set."""
        check_fitted(self, "network_")
        network = self.network_.do(done) if done else self.network_
        drawn: Any = network.sample(1, inputs={"row": n, **inputs}, seed=seed)
        return np.asarray(drawn[name][0])


def _named(level: int) -> str:
    """Return the name of a level of codes, 1 next to the data."""
    return "z" if level == 1 else f"z{level}"


class LabelledVAE(VAE):
    """What autoencoders with a class y of each row have in common; labels may be missing (None or NaN)."""

    def _begin(self, rows: Array, y: Any) -> None:
        super()._begin(rows, y)
        self._take_no("prior", "posterior", "latent_kind")
        if y is None or np.ndim(y) != 1:
            raise InvalidArgument(
                f"{type(self).__name__} learns from labels, too; give fit(X, y), y one label a row"
            )
        self.classes_ = np.unique(np.asarray([label for label in _plain(y) if not _missing(label)]))
        if len(self.classes_) < 2:
            raise InvalidArgument("y has fewer than two classes among its labels")

    def _codes(self, n: int, y: Any) -> Array:
        """Return labels of n rows as positions of their classes, NaN where they are missing."""
        at = {label: i for i, label in enumerate(self.classes_.tolist())}
        said = _plain(y) if np.ndim(y) else [y] * n
        if len(said) != n:
            raise InvalidArgument(f"y has {len(said)} labels for {n} rows")
        if unknown := [label for label in said if not _missing(label) and label not in at]:
            raise InvalidArgument(f"the label {unknown[0]!r} is none of the classes {self.classes_.tolist()}")
        codes = np.array([np.nan if _missing(label) else at[label] for label in said])
        return codes if np.isnan(codes).any() else codes.astype(int)

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        told = {} if y is None else {"y": self._codes(len(rows), y)}
        return {**super()._data(rows), **told}

    def score_samples(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the log density of each row, the class summed out; with labels y that of row and class."""
        rows = self._rows(X)
        return np.asarray(self.network_.log_evidence(self._data(rows, y), by="row"))

    def sample(self, n: int = 1, seed: Any = None, y: Any = None) -> Array:
        """Return n rows drawn from the model; with a label y, or one for each, rows of that class."""
        return self._drawn(n, {} if y is None else {"y": self._codes(n, y)}, "x", seed)

    def transform(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the posterior mean of each row's code, also given y where it is told."""
        return self._means("z", self._data(self._rows(X), y))

    def inverse_transform(self, Z: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the mean of rows with some codes; a class that is not told is drawn."""
        codes = np.asarray(Z, dtype=np.float64)
        told = {} if y is None else {"y": self._codes(len(codes), y)}
        return self._drawn(len(codes), {"z": codes, **told}, "mean", 0)

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probabilities of the classes given each row, by Bayes' rule."""
        return self._shares(self._rows(X), "y", len(self.classes_))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _plain(y: Any) -> list[Any]:
    """Return labels as plain values."""
    return [v.item() if isinstance(v, np.generic) else v for v in np.asarray(y, dtype=object)]


def _missing(label: Any) -> bool:
    return label is None or label != label


@dataclass(eq=False, repr=False)
class ConditionalVAE(LabelledVAE):
    """A variational autoencoder whose rows also depend on a class, which is a node "y" beside the code.

    Labels may be missing (NaN or None): they are summed out. `predict` says which class explains a row best.

    Parameters
    ----------
    latent, hidden, layers, likelihood, noise, objective, draws, beta, encoder, decoder
        As in `mk.deep.VAE`; encoder and decoder are also told the class, as one number for each.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> vae = mk.deep.ConditionalVAE(1, hidden=8, epochs=60, learning_rate=0.02, random_state=0)
    >>> vae = vae.fit(rows, ["left", "right"] * 20)
    >>> vae.sample(3, y="left", seed=0).mean(axis=0).round().tolist(), vae.predict(rows[:2]).tolist()
    ([1.0, 1.0, 0.0, 0.0], ['left', 'right'])
    """

    def _priors(self) -> BayesianNetwork:
        m = super()._priors()
        m.add("logits", Parameter(np.zeros(len(self.classes_))))
        m.add("y", nodes.state, plate="row")
        m.add("classes", Parameter(np.eye(len(self.classes_)), fixed=True))
        return m

    def _decode(self, m: BayesianNetwork, outputs: int) -> None:
        size = self._sizes[0] + len(self.classes_)
        m.add("decoder", Parameter(self.decoder or self._mlp(mlp, size, outputs)))
        m.add("decoded", nodes.decoded_in_class, parents=["z", "y", "classes", "decoder"], plate="row")

    def _guides(self, m: BayesianNetwork, width: int) -> None:
        if self.likelihood == "categorical":
            raise InvalidArgument(
                "ConditionalVAE takes no likelihood='categorical'; give 0 and 1 for each state"
            )
        recipe = self._mlp(gaussian_mlp, width + len(self.classes_), self._sizes[0])
        m.add("encoder", Parameter(self.encoder or recipe))
        m.guide("z", nodes.class_guide)


@dataclass(eq=False, repr=False)
class SemiSupervisedVAE(LabelledVAE):
    """A classifier for rows of which few have a label: classes are clusters of the codes of an autoencoder.

    The class y decides where a code is, and the code alone what a row looks like; so rows without labels say where the
    clusters are, and the labels which is which. y is summed out where it is not known.

    Parameters
    ----------
    latent, hidden, layers, likelihood, noise, draws, encoder, decoder
        As in `mk.deep.VAE`.
    target_weight
        How often the log probability of a label given its row counts, beside the bound, where some labels are missing.
    epochs, batch, learning_rate, training, time_limit, progress, random_state
        As in `mk.Training`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    >>> labels = ["left", "right"] + [None] * 38
    >>> vae = mk.deep.SemiSupervisedVAE(1, hidden=8, epochs=60, learning_rate=0.02, random_state=0).fit(rows, labels)
    >>> vae.predict(rows[:2]).tolist()
    ['left', 'right']
    """

    latent: Annotated[Any, LATENT] = 10
    _: KW_ONLY
    hidden: Count = 128
    target_weight: Annotated[float, NOT_NEGATIVE] = 60.0
    epochs: Count = 800
    learning_rate: Positive = 2e-3

    def _priors(self) -> BayesianNetwork:
        m = BayesianNetwork()
        self._add_mixture(m, "y", "z", self._sizes[0], len(self.classes_))
        return m

    def _data(self, rows: Array, y: Any = None) -> dict[str, Any]:
        data = super()._data(rows, y)
        self._partly = np.asarray(data.get("y", 0)).dtype.kind == "f"
        return data

    def _objective(self) -> Any:
        """Return the bound with the labels; where all are known the bound has them already."""
        if not isinstance(self.objective, str) or not self._partly:
            return super()._objective()
        how = {"target": "y", "target_weight": self.target_weight, "draws": self.draws or 1}
        return resolve(_OBJECTIVES + "elbo:ELBO")(**how)
