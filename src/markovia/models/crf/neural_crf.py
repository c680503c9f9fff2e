"""Conditional random fields whose potentials come from a neural network, or any other JAX function of the input.

The network says how well each label suits each node and each pair of labels each edge; the field couples the labels.
The gradient of log Z by the scores is the marginals, so a step is: scores from the network (forward), exact or
approximate marginals of the labels in compiled code, then marginals minus observed labels through the network
backwards. Nothing is differentiated through inference, and any graph and any method of `CRF` works. References: Peng,
Bo and Xu (2009), conditional neural fields; Do and Artieres (2010). Training is Adam (Kingma and Ba 2015) on
mini-batches; it is not convex. Cost of a step: the network's, plus one pass of inference.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, Method, check_method, field_marginals
from markovia.learning.conditional_fields.reading import FieldGraph, code_labels, graph_edges, read_labels
from markovia.models.crf.base import ConditionalField, Scored
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.double_precision import x64
from markovia.runtime.progress import progress_bar
from markovia.runtime.seeds import generator

Potentials = Callable[[Any, Any], tuple[Any, Any]]


class NeuralCRF(ConditionalField):
    """A conditional random field with potentials from a JAX function.

    Parameters
    ----------
    potentials
        `potentials(params, x)` returns node scores, shape (nodes, labels), and edge scores, shape (edges, labels,
        labels), or one table (labels, labels) for all edges. It must be traceable by JAX. Or an Equinox module, without
        `params`: called with an input x, or with each node's features where it cannot take them all, it returns such a
        pair, or node scores alone, and then one table for all edges is learned beside it.
    params
        The start of the parameters: any pytree of arrays, or an Equinox module with parts that are none.
    graph
        "chain", pairs of nodes, an `UndirectedGraph`, or a function that returns the edges of an input x.
    weight_decay
        The penalty `weight_decay * ||params||^2`, shared out over the instances.
    inference, decoding, damping
        As in `CRF`.
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

    def __init__(
        self,
        potentials: Potentials,
        params: Any = None,
        *,
        graph: Any = "chain",
        weight_decay: float = 0.0,
        inference: Method = "auto",
        decoding: Any = "auto",
        damping: float = 0.0,
        epochs: int = 50,
        batch_size: int = 16,
        learning_rate: float = 0.02,
        tol: float = 0.0,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.potentials = potentials
        self.params = params
        self.graph = graph
        self.weight_decay = weight_decay
        self.inference = inference
        self.decoding = decoding
        self.damping = damping
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.tol = tol
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, Y: Any) -> Self:  # noqa: N803
        """Train the parameters from `params` on, by Adam.

        Ctrl-C keeps the parameters of the last whole pass.
        """
        import jax

        check_method(self.inference)
        if not callable(self.potentials):
            raise InvalidArgument(f"potentials= is a function of params and x, not {self.potentials!r}")
        for what, count in (("epochs", self.epochs), ("batch_size", self.batch_size)):
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
                raise InvalidArgument(f"{what}= is a whole number, at least 1, not {count!r}")
        for what, least, number in (
            ("learning_rate", 1e-300, self.learning_rate), ("weight_decay", 0.0, self.weight_decay), ("tol", 0.0, self.tol),
        ):  # fmt: skip
            if (
                isinstance(number, bool)
                or not isinstance(number, int | float | np.number)
                or not least <= number < np.inf
            ):
                kind = "a positive number" if least else "zero or a positive number"
                raise InvalidArgument(f"{what}= is {kind}, not {number!r}")
        rng = generator(self.random_state)
        inputs = list(X)
        with x64():
            potentials, start, whole = _parts(self.potentials, self.params, inputs)
            params = jax.tree.map(
                lambda a: jax.numpy.asarray(finite_numbers(np.asarray(a), "params=")), start
            )
            network = _network(potentials)
            fields, graph = self._graphs(network.scores(params, inputs))(inputs)
            flat = read_labels(Y, fields.node_ptr, graph)
            classes = np.unique(flat)
            if not len(classes):
                raise InvalidArgument("no instance has a node")
            if len(classes) > fields.k:
                raise InvalidArgument(f"the network scores {fields.k} labels but the data has {len(classes)}")
            if len(classes) < fields.k:
                classes = _filled(classes, fields.k)
            labels = code_labels(flat, classes)
            sampler = FieldSampler.of(fields, rng) if self.inference == "gibbs" else None
            trained, losses, stopped = self._train(jax, network, params, inputs, fields, labels, sampler, rng)
            self.params_ = jax.tree.map(np.asarray, trained)
            self._function = potentials
            if whole is not None:
                self.module_, self.transitions_ = whole(self.params_)
        self.classes_ = classes
        self.loss_curve_ = losses
        self.n_iter_ = len(losses)
        if stopped:
            warnings.warn(stopped, ConvergenceWarning, stacklevel=2)
        return self

    def _train(
        self,
        jax: Any,
        network: "_Network",
        params: Any,
        inputs: list[Any],
        fields: Fields,
        labels: Ints,
        sampler: FieldSampler | None,
        rng: np.random.Generator,
    ) -> tuple[Any, list[float], str]:
        n = len(inputs)
        kept, losses = params, []
        adam = _Adam(jax, params, self.learning_rate)
        decay = self.weight_decay
        try:
            with progress_bar(self.progress, self.epochs) as tick:
                for _ in range(self.epochs):
                    total = 0.0
                    for which in np.array_split(rng.permutation(n), max(1, -(-n // self.batch_size))):
                        chosen = np.sort(which)
                        some = [inputs[g] for g in chosen.tolist()]
                        scored = network.scores(params, some)
                        loss, slopes = self._loss(fields, chosen, scored, labels, sampler)
                        gradient = network.pull_back(params, some, slopes)
                        share = len(which) / n
                        if decay:
                            gradient = jax.tree.map(
                                lambda g, p, s=share: g + 2 * s * decay * p, gradient, params
                            )
                            loss += share * decay * sum(float((p**2).sum()) for p in jax.tree.leaves(params))
                        params = adam.step(params, gradient, len(which))
                        total += loss
                    if self.inference != "gibbs" and not np.isfinite(total):
                        raise InvalidArgument("the loss is no number any more; try a smaller learning_rate=")
                    kept = params
                    losses.append(total / n)
                    tick(1)
                    last = np.array(losses[-6:])
                    if self.tol > 0 and len(last) == 6 and bool(np.all(last[:-1] - last[1:] < self.tol)):
                        break
        except KeyboardInterrupt:
            return (
                kept,
                losses,
                f"training was interrupted after {len(losses)} passes; the parameters so far are kept",
            )
        return kept, losses, ""

    def _loss(
        self,
        fields: Fields,
        which: Ints,
        scored: list[tuple[Array, Array]],
        labels: Ints,
        sampler: FieldSampler | None,
    ) -> tuple[float, list[tuple[Array, Array]]]:
        """Return the negative log likelihood of some instances and its gradient by their scores."""
        scores = np.zeros((int(fields.node_ptr[-1]), fields.k))
        tables = np.zeros((len(fields.tails), fields.k, fields.k))
        ends = [
            (slice(*fields.node_ptr[g : g + 2].tolist()), slice(*fields.edge_ptr[g : g + 2].tolist()))
            for g in which.tolist()
        ]
        for (nodes, edges), (node, edge) in zip(ends, scored, strict=True):
            scores[nodes], tables[edges] = node, edge
        found = field_marginals(
            fields,
            scores,
            tables,
            self.inference,
            which,
            labels=labels,
            sampler=sampler,
            damping=self.damping,
        )
        loss = float(found.log_mass[which].sum())
        twice = 2.0 if self.inference == "pseudo-likelihood" else 1.0
        slopes = []
        for (nodes, edges), (_, edge) in zip(ends, scored, strict=True):
            own = labels[nodes]
            place = np.arange(len(own))
            node_slope, pair_slope = found.beliefs[nodes].copy(), found.pairs[edges].copy()
            loss -= float(scores[nodes][place, own].sum())
            node_slope[place, own] -= 1.0
            at = (np.arange(len(pair_slope)), labels[fields.tails[edges]], labels[fields.heads[edges]])
            loss -= twice * float(tables[edges][at].sum())
            pair_slope[at] -= twice
            slopes.append((node_slope, pair_slope if edge.ndim == 3 else pair_slope.sum(axis=0)))
        return loss, slopes

    def _graphs(
        self, scored: list[tuple[Array, Array]]
    ) -> Callable[[list[Any]], tuple[Fields, FieldGraph | None]]:
        """Return what makes the graphs of inputs from the shapes of their scores."""

        def make(inputs: list[Any]) -> tuple[Fields, FieldGraph | None]:
            sizes, k = [len(node) for node, _ in scored], scored[0][0].shape[1]
            node_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
            chosen = self.graph
            given = callable(chosen)
            graph = None if given else FieldGraph.of(chosen)
            own = [chosen(x) if given else None for x in inputs]
            tails, heads, edge_ptr = graph_edges(own, graph, node_ptr)
            for g, (_, edge) in enumerate(scored):
                m = int(edge_ptr[g + 1] - edge_ptr[g])
                if edge.shape not in ((m, k, k), (k, k)):
                    raise InvalidArgument(
                        f"instance {g} has {m} edges and {k} labels, but edge scores of shape {edge.shape}; "
                        f"({m}, {k}, {k}) or ({k}, {k}) is needed"
                    )
            return Fields.of(
                k, node_ptr, edge_ptr, tails, heads, np.ones((len(tails), 1)), share=False
            ), graph

        return make

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        self._need_fit()
        listed = list(inputs)
        with x64():
            found = _network(self._function).scores(self.params_, listed)
        fields, graph = self._graphs(found)(listed)
        sizes = np.diff(fields.edge_ptr).tolist()
        spread = [
            np.broadcast_to(edge, (m, *edge.shape[-2:])) for (_, edge), m in zip(found, sizes, strict=True)
        ]
        return Scored(fields, np.concatenate([node for node, _ in found]), np.concatenate(spread), graph)


def _parts(potentials: Any, params: Any, inputs: list[Any]) -> tuple[Potentials, Any, Any]:
    """Return a function of arrays and an input, the arrays to start from, and what makes a module of trained ones."""
    import jax

    numeric = all(np.asarray(leaf).dtype.kind in "fiub" for leaf in jax.tree.leaves(params))
    if params is not None and numeric:
        return potentials, params, None
    import equinox as eqx

    given = potentials if params is None else params
    arrays, rest = eqx.partition(given, eqx.is_inexact_array)
    if not jax.tree.leaves(arrays):
        raise InvalidArgument(
            "params= has no arrays to train; give a pytree of arrays, or an Equinox module as potentials="
        )
    if params is not None:
        return (
            lambda held, x: potentials(eqx.combine(held, rest), x),
            arrays,
            lambda held: (eqx.combine(held, rest), None),
        )
    if not inputs:
        raise InvalidArgument("there is no instance; give a list with at least one")
    first = jax.tree.map(np.asarray, inputs[0])
    call = given
    try:
        shape = jax.eval_shape(call, first)
    except (TypeError, ValueError):  # a module for one node
        shape = jax.eval_shape(jax.vmap(given), first)
        call = None

    def scores(held: Any, x: Any) -> Any:
        module = eqx.combine(held, rest)
        return module(x) if call is not None else jax.vmap(module)(x)

    if isinstance(shape, tuple):
        return scores, arrays, lambda held: (eqx.combine(held, rest), None)
    start = {"module": arrays, "edges": np.zeros((shape.shape[-1],) * 2)}
    return (
        lambda held, x: (scores(held["module"], x), held["edges"]),
        start,
        lambda held: (eqx.combine(held["module"], rest), held["edges"]),
    )


class _Network:
    """The potential function, applied to groups of inputs of equal shape at once, forwards and backwards."""

    def __init__(self, jax: Any, potentials: Potentials) -> None:
        self.jax = jax

        def forward(params: Any, stacked: Any) -> Any:
            return jax.vmap(lambda x: potentials(params, x))(stacked)

        def backward(params: Any, stacked: Any, slopes: Any) -> Any:
            _, pull = jax.vjp(lambda p: forward(p, stacked), params)
            return pull(slopes)[0]

        self.forward = jax.jit(forward)
        self.backward = jax.jit(backward)

    def scores(self, params: Any, inputs: list[Any]) -> list[tuple[Array, Array]]:
        """Return node and edge scores of every input."""
        if not inputs:
            raise InvalidArgument("there is no instance; give a list with at least one")
        found: list[Any] = [None] * len(inputs)
        for group in self._groups(inputs):
            answer = self.forward(params, self._stacked(inputs, group))
            if (
                not isinstance(answer, tuple)
                or len(answer) != 2
                or answer[0].ndim != 3
                or answer[1].ndim not in (3, 4)
            ):
                raise InvalidArgument(
                    "potentials= returns a pair: node scores (nodes, labels) and edge scores (edges, labels, labels) or "
                    "(labels, labels)"
                )
            node, edge = (np.asarray(part, dtype=np.float64) for part in answer)
            for at, g in enumerate(group):
                found[g] = (node[at], edge[at])
                if (
                    np.isnan(node[at]).any()
                    or np.isnan(edge[at]).any()
                    or np.inf in (node[at].max(initial=0.0), edge[at].max(initial=0.0))
                ):
                    raise InvalidArgument(
                        f"the scores of instance {g} are missing or infinite; look for such numbers in its input, or try a "
                        "smaller learning_rate="
                    )
        return found

    def pull_back(self, params: Any, inputs: list[Any], slopes: list[tuple[Array, Array]]) -> Any:
        """Return the gradient by the parameters, given that by the scores."""
        total: Any = None
        for group in self._groups(inputs):
            both = tuple(np.stack([slopes[g][part] for g in group]) for part in (0, 1))
            found = self.backward(params, self._stacked(inputs, group), both)
            total = found if total is None else self.jax.tree.map(lambda a, b: a + b, total, found)
        return total

    def _groups(self, inputs: list[Any]) -> list[list[int]]:
        groups: dict[Any, list[int]] = {}
        for g, x in enumerate(inputs):
            leaves, shape = self.jax.tree.flatten(x)
            groups.setdefault((shape, tuple(np.shape(leaf) for leaf in leaves)), []).append(g)
        return list(groups.values())

    def _stacked(self, inputs: list[Any], group: list[int]) -> Any:
        return self.jax.tree.map(
            lambda *leaves: np.stack([np.asarray(a) for a in leaves]), *[inputs[g] for g in group]
        )


@lru_cache(maxsize=32)
def _network(potentials: Potentials) -> _Network:
    """Return the compiled network of a function; the last few are kept, so that asking again compiles nothing."""
    import jax

    return _Network(jax, potentials)


class _Adam:
    """Adam with its usual constants."""

    def __init__(self, jax: Any, params: Any, rate: float) -> None:
        zeros = jax.tree.map(lambda p: jax.numpy.zeros_like(p), params)
        self.state = (zeros, zeros)
        self.steps = 0
        self.rate = float(rate)

    def step(self, params: Any, gradient: Any, size: int) -> Any:
        """Return the parameters after one step along a gradient that is a sum over `size` instances."""
        self.steps += 1
        numbers = np.array([self.rate, float(self.steps), 1.0 / size])
        moved, *state = _adam_update()(params, gradient, *self.state, numbers)
        self.state = (state[0], state[1])
        return moved


@lru_cache(maxsize=1)
def _adam_update() -> Any:
    """Return the compiled update, one for all models."""
    import jax

    def update(params: Any, gradient: Any, first: Any, second: Any, numbers: Any) -> Any:
        rate, t, share = numbers
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * share * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * (share * g) ** 2, second, gradient)
        size = rate / (1 - 0.9**t)
        root = 1 / (1 - 0.999**t)
        moved = jax.tree.map(
            lambda p, m, v: p - size * m / (jax.numpy.sqrt(root * v) + 1e-8), params, first, second
        )
        return moved, first, second

    return jax.jit(update)


def _filled(classes: Any, k: int) -> Any:
    """Return `0 ... k-1` where whole-number labels below k leave some out."""
    if classes.dtype.kind in "iu" and classes.min() >= 0 and classes.max() < k:
        return np.arange(k)
    raise InvalidArgument(
        f"the network scores {k} labels but the data has {len(classes)}; use the numbers 0 ... {k - 1} as labels"
    )
