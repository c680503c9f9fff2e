"""Conditional random fields whose potentials come from a neural network, or any other JAX function of the input.

The network says how well each label suits each node and each pair of labels each edge; the field couples the labels.
The gradient of log Z by the scores is the marginals, so a step is: scores from the network (forward), exact or
approximate marginals of the labels in compiled code, then marginals minus observed labels through the network
backwards. Nothing is differentiated through inference, and any graph and any method of `CRF` works, unless inference of a
fixed number of steps is asked for, which is trained as it will be used. References: Peng, Bo and Xu (2009), conditional
neural fields; Do and Artieres (2010); Domke (2013) for steps. Training is Adam (Kingma and Ba 2015) on
mini-batches; it is not convex. Cost of a step: the network's, plus one pass of inference.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, cast

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, Method
from markovia.learning.conditional_fields.neural_fields import (
    NeuralFieldLoss,
    PotentialNetwork,
    Potentials,
    field_graphs,
    potential_network,
    split_module,
)
from markovia.learning.conditional_fields.reading import code_labels, read_labels
from markovia.learning.conditional_fields.unrolled_inference import UNROLLED, Unrolled, UnrolledFieldLoss
from markovia.models.crf.base import ConditionalField, Scored
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Damping, Kind, Positive, Tolerance, check_options
from markovia.runtime.double_precision import x64
from markovia.runtime.seeds import generator


@dataclass(eq=False, repr=False)
class NeuralCRF(ConditionalField):
    """A conditional random field with potentials from a JAX function.

    Parameters
    ----------
    potentials
        `potentials(params, x)` returns node scores, shape (nodes, labels), and edge scores, shape (edges, labels,
        labels), or one table (labels, labels) for all edges. It must be traceable by JAX. Or an Equinox module, or a
        recipe of `mk.networks`, without `params`: called with each node's features it returns the node's scores, and one
        table for all edges is learned beside it. With `sees="input"` it is called with x, and may return such a pair.
    params
        The start of the parameters: any pytree of arrays, or an Equinox module with parts that are none.
    graph
        "chain", pairs of nodes, an `UndirectedGraph`, or a function that returns the edges of an input x.
    sees
        What a module is called with: each "node" of an input by itself, or the whole "input".
    weight_decay
        The penalty `weight_decay * ||params||^2`, shared out over the instances.
    inference, decoding, damping
        As in `CRF`; besides "unrolled-mean-field" or "unrolled-bp": `steps` steps of mean field or belief propagation, whose
        last beliefs of the observed labels are what training maximises, through all steps, and what predictions are made of.
        `log_prob`, `log_partition`, `predict_edges` and `network` are about the field itself all the same.
    steps
        How many steps are unrolled.
    epochs, batch_size, learning_rate
        Passes over the data, instances a step, and Adam's step size.
    tol
        Stop when the mean loss of a pass fell by less than this in each of the last five passes; zero to make all passes.
    random_state
        The seed of the order of instances.
    progress
        Whether to show a progress bar.

    Attributes
    ----------
    params_
        The trained parameters. `module_` is the trained module, and `transitions_` the table of edges learned beside it.
    loss_curve_
        The mean loss (negative log likelihood plus penalty) an instance in each pass.

    Notes
    -----
    Instances whose inputs have equal shapes go through the network together; many different shapes mean many
    compilations, so pad where there are hundreds. Numbers are 64-bit inside, whatever JAX is set to outside.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> def potentials(params, x):
    ...     hidden = jnp.tanh(x @ params["first"])
    ...     return hidden @ params["second"], params["edges"]
    >>> rng = np.random.default_rng(0)
    >>> Y = [np.repeat(rng.integers(2, size=3), 4) for _ in range(30)]
    >>> X = [np.where(y, 1, 0)[:, None] * [[1.0, -1.0]] + rng.normal(size=(12, 2)) for y in Y]
    >>> start = {"first": rng.normal(size=(2, 4)), "second": rng.normal(size=(4, 2)), "edges": np.zeros((2, 2))}
    >>> crf = NeuralCRF(potentials, start, epochs=30, random_state=0).fit(X, Y)
    >>> bool(crf.score(X, Y) > 0.8)
    True
    """

    potentials: Annotated[Potentials, Kind((Callable, ModuleRecipe), "a function of params and x")]
    params: Any = None
    _: KW_ONLY
    graph: Any = "chain"
    sees: Literal["node", "input"] = "node"
    weight_decay: Tolerance = 0.0
    inference: Literal[Method, Unrolled] = "auto"  # type: ignore[assignment]
    steps: Count = 10
    decoding: Any = "auto"
    damping: Damping = 0.0
    epochs: Count = 50
    batch_size: Count = 16
    learning_rate: Positive = 0.02
    tol: Tolerance = 0.0
    random_state: Any = None
    progress: bool | None = None

    def fit(self, X: Any, Y: Any) -> Self:  # noqa: N803
        """Train the parameters from `params` on, by Adam.

        Ctrl-C keeps what was learned so far.
        """
        import jax

        check_options(self)
        rng = generator(self.random_state)
        inputs = list(X)
        with x64():
            seed = int(rng.integers(2**32))
            potentials, start, whole = split_module(self.potentials, self.params, inputs, self.sees, seed)
            params = jax.tree.map(
                lambda a: jax.numpy.asarray(finite_numbers(np.asarray(a), "params=")), start
            )
            network = potential_network(potentials)
            fields, graph = field_graphs(self.graph, inputs, network.scores(params, inputs))
            flat = read_labels(Y, fields.node_ptr, graph)
            classes = np.unique(flat)
            if not len(classes):
                raise InvalidArgument("no instance has a node")
            if len(classes) > fields.k:
                raise InvalidArgument(f"the network scores {fields.k} labels but the data has {len(classes)}")
            if len(classes) < fields.k:
                classes = _filled(classes, fields.k)
            sampler = FieldSampler.of(fields, rng) if self.inference == "gibbs" else None
            objective = self._loss(network, inputs, fields, code_labels(flat, classes), sampler)
            training = Training(
                epochs=self.epochs,
                batch=self.batch_size,
                seed=seed,
                progress=self.progress,
            )
            trained = objective.fit(params, training, self.learning_rate, self.tol)
            if trained.failed:
                raise InvalidArgument("the loss is no number any more; try a smaller learning_rate=")
            self.params_ = jax.tree.map(np.asarray, trained.parameters["potentials"])
            self._function = potentials
            if whole is not None:
                self.module_, self.transitions_ = whole(self.params_)
        self.classes_ = classes
        self.loss_curve_ = list(trained.curve)
        self.n_iter_ = len(trained.curve)
        if trained.reason == "interrupted":
            warn_user(
                f"training was interrupted after {self.n_iter_} passes; the parameters so far are kept",
                ConvergenceWarning,
            )
        return self

    def _loss(
        self, network: PotentialNetwork, inputs: list[Any], fields: Fields, codes: Ints, sampler: FieldSampler | None = None
    ) -> NeuralFieldLoss:  # fmt: skip
        """Return what training minimises."""
        if self.inference in UNROLLED:
            return UnrolledFieldLoss(
                network, inputs, fields, codes, damping=self.damping, weight_decay=self.weight_decay,
                unrolled=cast(Unrolled, self.inference), steps=self.steps,
            )  # fmt: skip
        how = cast(Method, self.inference)
        return NeuralFieldLoss(network, inputs, fields, codes, how, self.damping, sampler, self.weight_decay)

    def _node_beliefs(self, scored: Scored) -> Array:
        if self.inference not in UNROLLED:
            return super()._node_beliefs(scored)
        fields, labels = scored.fields, np.zeros(len(scored.scores), dtype=np.int64)
        with x64():
            loss = self._loss(potential_network(self._function), [], fields, labels)
            assert isinstance(loss, UnrolledFieldLoss)
            cuts = zip(pairwise(fields.node_ptr.tolist()), pairwise(fields.edge_ptr.tolist()), strict=True)
            scores = [(scored.scores[slice(*own)], scored.tables[slice(*links)]) for own, links in cuts]
            return loss.beliefs(np.arange(fields.n_graphs), scores)

    def _best(self, scored: Scored) -> Ints:
        if self.inference in UNROLLED:  # the best label of each node, as trained
            return np.asarray(self._node_beliefs(scored).argmax(axis=1))
        return super()._best(scored)

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        self._need_fit()
        listed = list(inputs)
        with x64():
            found = potential_network(self._function).scores(self.params_, listed)
        fields, graph = field_graphs(self.graph, listed, found)
        sizes = np.diff(fields.edge_ptr).tolist()
        spread = [
            np.broadcast_to(edge, (m, *edge.shape[-2:])) for (_, edge), m in zip(found, sizes, strict=True)
        ]
        return Scored(fields, np.concatenate([node for node, _ in found]), np.concatenate(spread), graph)


def _filled(classes: Any, k: int) -> Any:
    """Return `0 ... k-1` where whole-number labels below k leave some out."""
    if classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() < k:
        return np.arange(k)
    raise InvalidArgument(
        f"the network scores {k} labels but the data has {len(classes)}; use the numbers 0 ... {k - 1} as labels"
    )
