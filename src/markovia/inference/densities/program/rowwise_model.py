"""A model of rows with its guide: bounds on the log evidence of some rows at a time, for any values of the parameters.

A plate is one of rows if everything observed is on it and nothing outside looks at it. Latent quantities on it are proposed
by the guide, a second network over the same names (`GuideNetwork`). Discrete ones are summed out: by elimination, or, where
the guide looks at them, around it, with a bound for each of their states. Sums over rows are computed for a whole batch
at once; numbers of each row come from the program of one row, mapped over the rows.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidEvidence, UnsupportedModel
from markovia.factors.functions.function_node import FunctionNode, Input
from markovia.factors.quantities.columns import Column
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.densities.program.automatic_guides import SharedQuantities, reading, settled_guides
from markovia.inference.densities.program.layout import BOUND_KEY, SEEN, QuantityLayout, Site, lay_out
from markovia.inference.densities.program.node_densities import Nodes
from markovia.inference.densities.program.node_tracing import trace
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.densities.program.row_batches import layout_of_length, row_axes, shortened
from markovia.inference.densities.program.simulation import drawn_value, groups, simulate
from markovia.inference.problem import Problem
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp, laws
from markovia.runtime.seeds import row_marks

FEW = 6
"""Rows that functions are traced and tried with."""
LABELS = "labels of "
"""What the known states of a variable that is observed in some rows only are called among the rows; -1 is unknown."""


class RowwiseModel:
    """Bounds on the log evidence of rows.

    Attributes
    ----------
    plate, n_rows
        The plate of rows and its length in the data.
    program
        The model, traced with a few rows.
    guide
        What latent quantities are proposed from; None where there are none.
    around
        Discrete variables that the guide looks at and that are not observed everywhere, with the number of their states.
    bounded
        Nodes that have no density, but a bound on it.
    rows, constants
        Arrays of the data that have rows, rows in front; and others, parameters left out.
    shared
        With `shares`, latent quantities that all rows share: their values come with the parameters.
    compared
        Whether draws are compared with the data and nothing is conditioned on them: then functions of other nodes may
        have data, and latent quantities need no guide.
    """

    def __init__(
        self, problem: Problem, guides: Mapping[str, FunctionNode], *, compared: bool = False, shares: bool = False
    ) -> None:  # fmt: skip
        self.problem, self.compared = problem, compared
        with x64():
            whole = lay_out(problem)
            whole.compared = compared
            self.plate = _row_plate(whole, guides)
            self.n_rows = whole.lengths[self.plate]
            self._axes = row_axes(whole, self.plate)
            self.rows = {n: np.moveaxis(whole.data[n], axis, 0) for n, axis in self._axes.items()}
            self._take_labels(whole)
            guides = reading(problem, guides, whole)
            self.shared = SharedQuantities.given_to(problem, whole, self.plate) if shares else None
            few = _first_rows(whole, self.plate, self._axes, min(self.n_rows, FEW))
            self.around = self._looked_at(few, guides)
            for name in self.around:
                few.sites[name].role = "observed"
                few.data[name] = np.zeros(few.shape_of(few.sites[name].plates), dtype=np.int64)
            self.program = program_of(problem, "none", layout=few, proposed=guides)
            guides = settled_guides(guides, self.program.layout.sites)
            self.guide = GuideNetwork(problem, guides, self.program.layout, self.plate) if guides else None
            self._check(whole)
        self.bounded = tuple(s.name for s in self.program.layout.sites.values() if s.bounded)
        held = {*self._axes, *whole.parameters, *self.around, *(self.shared.names if self.shared else ())}
        self.constants = {n: v for n, v in self.program.density.data.items() if n not in held}

    @property
    def marks(self) -> Any:
        """A number for each row that depends on what stands in it; on its place where nothing does."""
        return row_marks(self.rows.values()) if self.rows else np.arange(self.n_rows, dtype=np.uint32)

    def _take_labels(self, whole: QuantityLayout) -> None:
        """Make states that are observed in some rows only labels, and the variable one that is not observed."""
        for site in whole.sites.values():
            if site.role == "observed" and site.holes is not None and site.plates == (self.plate,):
                codes = self.rows.pop(site.name).astype(np.int64)
                codes[site.holes[0]] = -1
                self.rows[LABELS + site.name] = codes
                site.role, site.holes = "latent", None
                del whole.data[site.name], self._axes[site.name]

    def _looked_at(self, few: QuantityLayout, guides: Mapping[str, FunctionNode]) -> dict[str, int]:
        """Return the discrete variables that guides look at and that are not observed, with their numbers of states."""
        read = {source for guide in guides.values() for source in guide.arguments.values()} - guides.keys()
        hidden = [n for n in few.sites if n in read and few.sites[n].role == "latent"]
        if not hidden:
            return {}
        tried = replace(few, sites={n: replace(s) for n, s in few.sites.items()})
        trace(tried, Nodes(tried), False, guides)
        for name in hidden:
            if tried.sites[name].role != "discrete":
                raise InvalidArgument(
                    f"a guide looks at {name!r}, which is neither observed nor proposed by a guide of its own"
                )
        return {name: tried.sites[name].states for name in hidden}

    def _check(self, whole: QuantityLayout) -> None:
        """Refuse what has no bound: latent quantities that nothing proposes, and values outside their support."""
        for site in self.program.layout.sites.values():
            if LABELS + site.name in self.rows and site.name not in self.around and site.role != "discrete":
                raise InvalidEvidence(
                    f"{site.name!r} has missing entries and is no variable with states; drop those rows"
                )
            inside = self.plate in site.plates
            guided = self.compared or (self.guide is not None and site.name in self.guide.names)
            if site.role == "latent" and inside and not guided:
                raise UnsupportedModel(
                    f"{site.name!r} is latent, one for each {self.plate}, so fit needs to be told what to propose it from: "
                    f"m.guide({site.name!r}, lambda ...: ...), or mk.guides.Amortised() in place of the function"
                )
            if site.role == "latent" and not inside:
                raise UnsupportedModel(
                    f"{site.name!r} is inferred and not learned: say mk.Parameter(...) for what fit is to learn, or ask for "
                    "its posterior with query"
                )
            if site.role == "observed" and site.name in whole.data and site.support is not None:
                with jax.ensure_compile_time_eval():
                    fits = np.asarray(site.support(whole.data[site.name]))
                if not fits.all():
                    at = np.argwhere(~fits)[0]
                    raise InvalidEvidence(
                        f"{site.name!r} cannot be {whole.data[site.name][tuple(at)]} at {tuple(map(int, at))}: its "
                        f"distribution is on {site.support}"
                    )

    def some(self, rows: Any) -> Problem:
        """Return the problem of some rows."""

        def taken(name: str, value: Any) -> Any:
            return np.take(value, rows, self._axes[name]) if name in self._axes else value

        findings = {
            n: replace(f, value=taken(n, np.asarray(f.value))) if n in self._axes else f
            for n, f in self.problem.findings.items()
        }
        inputs = {
            n: Column(taken(n, v.values), v.plate) if isinstance(v, Column) else taken(n, v)
            for n, v in self.problem.inputs.items()
            if n != self.plate
        }
        return replace(self.problem, findings=findings, inputs=inputs, memory=None)

    # -- values -----------------------------------------------------------------------------------------------------

    def _of_length(self, length: int, weight: Any = None) -> Program:
        few = shortened(self.program, self.plate, length)
        few.row_weights = None if weight is None else (self.plate, weight)
        return few

    def _data(self, parameters: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return constants, parameters and some rows, each with its axes in order."""
        placed = {n: jnp.moveaxis(v, 0, self._axes[n]) for n, v in rows.items() if n in self._axes}
        held = {n: jax.tree.map(jnp.asarray, v) for n, v in {**self.constants, **parameters}.items()}
        return {**held, **placed}

    def _tilts(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return log weights on states that labels leave, states in front of rows."""
        found = {}
        for name, hidden in self.program.hidden.items():
            if (labels := rows.get(LABELS + name)) is not None:
                states = jnp.arange(hidden.states)[:, None]
                found[name] = jnp.where((labels[None] < 0) | (labels[None] == states), 0.0, -jnp.inf)
        return found

    # -- bounds -----------------------------------------------------------------------------------------------------

    def bound(
        self,
        parameters: Mapping[str, Any],
        rows: Mapping[str, Any],
        weight: Any,
        key: Any,
        beta: float = 1.0,
        relaxed: Callable[["Proposals", Any], Mapping[str, Any]] | None = None,
    ) -> Any:
        """Return the evidence lower bound of a batch, summed over rows by their weights (1 or 0).

        Divergences of proposals from priors are taken in closed form where there is one. They count `beta` times, and
        `relaxed(proposals, key)` returns values that stand in for those proposed, and for functions of them.
        """
        if self.around:
            if beta != 1.0 or relaxed is not None:
                looked = ", ".join(map(repr, self.around))
                raise UnsupportedModel(
                    f"a guide looks at {looked}, whose states are summed out around it, so that there is no divergence of "
                    "its own to weigh or relax; leave beta= at 1"
                )
            return jnp.sum(weight * self.log_weights(parameters, rows, key))
        few = self._of_length(len(weight), weight)
        data = self._data(parameters, rows)
        env: dict[str, Any] = {**few.layout.fixed, **data, BOUND_KEY: jax.random.fold_in(key, 2)}
        known, lost = set(), jnp.zeros(())
        held: Mapping[str, Any] = {}
        if self.guide is not None:
            drawn = self.guide.draw(key, env, len(weight))
            env.update(drawn.values)
            logs = drawn.log_probs
            if relaxed is not None:
                held = relaxed(drawn, jax.random.fold_in(key, 3))
                env.update(held)
                logs = self.guide.log_probs(env, len(weight))
            env = _with_functions(few, env, held)
            for name, proposal in drawn.distributions.items():
                site = few.layout.sites[name]
                log_q = _divergence(few, site, proposal, env)
                if log_q is not None:
                    known.add(name)
                else:
                    log_q = logs[name]
                lost = lost + jnp.sum(few._counted(site, log_q))
        else:
            env = _with_functions(few, env)
        total = few.log_joint_at(env, data, tilts=self._tilts(rows), left_out=known) - lost
        if beta == 1.0 or self.guide is None:
            return total
        # the bound is E log p(seen | latent) - KL, so that the first alone is enough to weigh the second anew
        seen = [s for s in few._stochastic() if s.role == "observed"]
        if summed := [s.name for s in seen if few.needs.get(s.name)]:
            raise UnsupportedModel(
                f"{summed[0]!r} depends on a variable that is summed out, so that there is no divergence of its own to "
                "weigh; leave beta= at 1"
            )
        said = [jnp.sum(few._counted(s, few.nodes.log_probs(s, env[s.name], env))) for s in seen]
        return beta * total + (1.0 - beta) * sum(said, jnp.zeros(()))

    def drawn(self, parameters: Mapping[str, Any], rows: Mapping[str, Any], key: Any) -> "Proposals":
        """Return what the guide proposes for some rows, with the distributions that it is drawn from."""
        n = len(next(iter(rows.values())))
        assert self.guide is not None
        return self.guide.draw(key, {**self._of_length(n).layout.fixed, **self._data(parameters, rows)}, n)

    def log_weights(self, parameters: Mapping[str, Any], rows: Mapping[str, Any], key: Any) -> Any:
        """Return for each row a draw of log p(row, proposed) - log q(proposed), discrete variables summed out.

        Its mean is a lower bound on the row's log evidence, and the mean of its exponential is the evidence.
        """
        return self.scored_proposals(parameters, rows, key)[1]

    def proposals(
        self, parameters: Mapping[str, Any], rows: Mapping[str, Any], marks: Any, key: Any
    ) -> tuple[dict[str, Any], Any]:
        """Return a proposal of the guided quantities for each row, rows in front, and its log weight.

        A row's proposals depend on its mark (`row_marks`) and on the key, and not on its place among the rows.
        """
        keys = jax.vmap(lambda mark: jax.random.fold_in(key, mark))(marks)
        values, total, _ = jax.vmap(lambda k, one: self._of_one(parameters, one, k))(keys, dict(rows))
        return values, total

    def scored_proposals(
        self, parameters: Mapping[str, Any], rows: Mapping[str, Any], key: Any
    ) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """Return a proposal for each row, its log weight, and log q of each quantity, which is part of the weight."""
        n = len(next(iter(rows.values())))
        keys = jax.random.split(key, n)
        if self.around or self.program.hidden:
            return jax.vmap(lambda k, one: self._of_one(parameters, one, k))(keys, dict(rows))
        few, data = self._of_length(n), self._data(parameters, rows)
        values: dict[str, Any] = {}
        env: dict[str, Any] = {**few.layout.fixed, **data, BOUND_KEY: jax.random.fold_in(key, 2)}
        total, lost = jnp.zeros(n), {}
        if self.guide is not None:
            drawn = self.guide.draw(key, env, n)
            values = drawn.values
            env.update(values)
            lost = {m: self._by_row(few.layout.sites[m], log_q) for m, log_q in drawn.log_probs.items()}
            total = total - sum(lost.values())
        env = _with_functions(few, env)
        for site in few._stochastic():
            total = total + self._by_row(site, few.nodes.log_probs(site, env[site.name], env))
        return values, total, lost

    # -- what other objectives are made of ---------------------------------------------------------------------------

    def law(self, name: str, parameters: Mapping[str, Any], rows: Mapping[str, Any]) -> Any:
        """Return the distribution of a node whose parents are all known, for some rows."""
        few = self._of_length(len(next(iter(rows.values()))))
        env = _with_functions(few, {**few.layout.fixed, **self._data(parameters, rows)})
        site = few.layout.sites[name]
        return few.nodes.spread(site, few.nodes.call(site, env), site.plates)

    def dream(
        self, parameters: Mapping[str, Any], rows: Mapping[str, Any], key: Any, kept: Container[str] = ()
    ) -> dict[str, Any]:
        """Return draws of all nodes from the model itself, as many rows as those given, whose inputs and more are kept."""
        n = len(next(iter(rows.values())))
        few = self._of_length(n)
        sites = few.layout.sites
        data = {
            k: v
            for k, v in self._data(parameters, rows).items()
            if k not in sites or sites[k].role == "input" or k in kept
        }
        return simulate(key, few.nodes, {**few.layout.fixed, **data}, {})

    def proposed(self, parameters: Mapping[str, Any], rows: Mapping[str, Any], key: Any) -> dict[str, Any]:
        """Return the values of all nodes with latent ones proposed by the guide from some rows.

        Where draws are compared with data, those that are known: data and proposals.
        """
        n = len(next(iter(rows.values())))
        few = self._of_length(n)
        env: dict[str, Any] = {**few.layout.fixed, **self._data(parameters, rows)}
        if self.guide is not None:
            env.update(self.guide.draw(key, env, n).values)
        if not self.compared:
            env = _with_functions(few, env)
        return {name: env[name] for name in few.layout.sites if name in env}

    def joint_log_probs(
        self,
        parameters: Mapping[str, Any],
        rows: Mapping[str, Any],
        values: Mapping[str, Any],
        names: Container[str] | None = None,
        held: Container[str] = (),
    ) -> Any:
        """Return the log density of the model at values of all nodes, by row; of some nodes given the others.

        Functions of other nodes are computed anew, `held` ones aside, which are as `values` say.
        """
        n = len(next(iter(rows.values())))
        few = self._of_length(n)
        env = {**few.layout.fixed, **self._data(parameters, rows), **values}
        env = _with_functions(few, env, held)
        sites = [s for s in few._stochastic() if names is None or s.name in names]
        return sum((self._by_row(s, few.nodes.log_probs(s, env[s.name], env)) for s in sites), jnp.zeros(n))

    def guide_log_probs(
        self, parameters: Mapping[str, Any], rows: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        """Return the log density of the guide at values of all nodes, by row."""
        n = len(next(iter(rows.values())))
        assert self.guide is not None
        env = {**self._of_length(n).layout.fixed, **self._data(parameters, rows), **values}
        found = self.guide.log_probs(env, n)
        return sum((self._by_row(self.program.layout.sites[m], v) for m, v in found.items()), jnp.zeros(n))

    def _by_row(self, site: Site, logs: Any) -> Any:
        """Return log densities of elements summed within each row."""
        at = site.plates.index(self.plate)
        return jnp.sum(logs, axis=tuple(i for i in range(jnp.ndim(logs)) if i != at))

    def _of_one(
        self, parameters: Mapping[str, Any], row: Mapping[str, Any], key: Any
    ) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """Return a proposal for one row, its log weight, and log q of each quantity.

        Each state of what the guide looks at has a proposal of its own; the weight is that of all, and one is picked by its
        share of it.
        """
        one = {n: v[None] for n, v in row.items()}
        few, data = self._of_length(1), self._data(parameters, one)

        def at(states: Mapping[str, Any]) -> tuple[dict[str, Any], Any, dict[str, Any]]:
            chosen = {n: jnp.full((1,), k) for n, k in states.items()}
            env: dict[str, Any] = {
                **few.layout.fixed,
                **data,
                **chosen,
                BOUND_KEY: jax.random.fold_in(key, 2),
            }
            lost, values = {}, {}
            if self.guide is not None:
                drawn = self.guide.draw(key, env, 1)
                values = {n: v[0] for n, v in drawn.values.items()}
                env.update(drawn.values)
                lost = {n: jnp.sum(log_q) for n, log_q in drawn.log_probs.items()}
            env = _with_functions(few, env)
            found = few.log_joint_at(env, {**data, **chosen}, tilts=self._tilts(one))
            found = found - sum(lost.values(), jnp.zeros(()))
            for name, k in states.items():  # of what has a label, other states do not count
                if (label := one.get(LABELS + name)) is not None:
                    found = jnp.where((label[0] < 0) | (label[0] == k), found, -jnp.inf)
            return values, found, lost

        if not self.around:
            return at({})
        grid = np.indices([*self.around.values()]).reshape(len(self.around), -1)
        found = jax.vmap(lambda *k: at(dict(zip(self.around, k, strict=True))))(*jnp.asarray(grid))
        every = found[1]
        picked = jax.random.categorical(jax.random.fold_in(key, 1), jax.lax.stop_gradient(every))
        values, lost = ({n: v[picked] for n, v in part.items()} for part in (found[0], found[2]))
        return values, jax.nn.logsumexp(every), lost


class Proposals:
    """What a guide proposed: values, log q of every element, and the distributions that they were drawn from."""

    def __init__(
        self, values: dict[str, Any], log_probs: dict[str, Any], distributions: dict[str, Any]
    ) -> None:
        self.values, self.log_probs, self.distributions = values, log_probs, distributions


class GuideNetwork:
    """A network over a model's names that proposes its latent quantities from what is observed.

    Attributes
    ----------
    names
        What it proposes.
    layout
        Its nodes, and what they look at as inputs.
    """

    def __init__(
        self, problem: Problem, guides: Mapping[str, FunctionNode], model: QuantityLayout, plate: str
    ) -> None:
        self.names, self.plate = tuple(guides), plate
        read = {source for guide in guides.values() for source in guide.arguments.values()}
        seen = [n for n in model.sites if n in read and n not in guides]
        inputs = [FunctionNode(Quantity(n, "input", model.sites[n].plates, {}), Input()) for n in seen]
        arrays = {n: model.data[n] if n in model.data else model.fixed[n] for n in seen}
        # which entries of a node were seen, for guides that take an argument of its name and "_seen"
        self.masks = {n + "_seen": n for n in model.sites if n in model.data and n + "_seen" in read}
        for mask, n in self.masks.items():
            inputs.append(FunctionNode(Quantity(mask, "input", model.sites[n].plates, {}), Input()))
            arrays[mask] = np.asarray(model.data.get(SEEN + n, np.ones_like(model.data[n])), float)
        given = {n: v for n, v in problem.inputs.items() if n in read}
        constants = {n: model.data[n] for n in given if n in model.data and n not in model.parameters}
        lengths = dict(model.lengths)
        about = replace(
            problem,
            pieces=[*inputs, *guides.values()],
            findings={},
            inputs={**lengths, **given, **constants, **arrays},
        )
        used = {p for piece in (*inputs, *guides.values()) for p in piece.variable.plates}
        about = replace(
            about, inputs={n: v for n, v in about.inputs.items() if n not in lengths or n in used}
        )
        self.layout = lay_out(about)
        self.nodes = Nodes(self.layout, plate)
        trace(self.layout, self.nodes, True)
        for name in self.names:
            self._check(self.layout.sites[name], model.sites[name])

    def _check(self, guide: Site, node: Site) -> None:
        if guide.role not in ("latent", "discrete"):
            raise InvalidArgument(f"the guide of {node.name!r} returns no distribution")
        if guide.shape != node.shape:
            raise InvalidArgument(
                f"the guide of {node.name!r} proposes values of shape {guide.shape}, but the node has {node.shape}"
            )
        if node.role == "observed":
            raise InvalidArgument(f"{node.name!r} is observed, so there is nothing for its guide to propose")

    def _of_length(self, length: int) -> Nodes:
        return Nodes(layout_of_length(self.layout, self.plate, length), self.plate)

    def _seen(self, known: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a guide sees of arrays with missing entries, 0 there, and masks; the weights stay honest."""
        found = {n: jnp.where(env[SEEN + n], v, 0) for n, v in known.items() if SEEN + n in env}
        for mask, n in self.masks.items():
            found[mask] = jnp.asarray(env.get(SEEN + n, jnp.ones(jnp.shape(env[n]))), jnp.result_type(float))
        return found

    def log_probs(self, env: Mapping[str, Any], length: int) -> dict[str, Any]:
        """Return log q of every element at values of the nodes that are proposed."""
        nodes = self._of_length(length)
        known = {
            n: v
            for n, v in env.items()
            if n in nodes.layout.data or n in nodes.layout.fixed or n in self.names
        }
        known |= self._seen(known, env)
        sites = nodes.layout.sites
        return {n: nodes.log_probs(sites[n], known[n], {**nodes.layout.fixed, **known}) for n in self.names}

    def draw(self, key: Any, env: Mapping[str, Any], length: int) -> Proposals:
        """Return proposals for some rows, whose values are differentiable by what they are proposed from."""
        nodes = self._of_length(length)
        nodes.said = {}
        known = {n: v for n, v in env.items() if n in nodes.layout.data or n in nodes.layout.fixed}
        known |= self._seen(known, env)
        sites = nodes.layout.sites
        around = {**nodes.layout.fixed, **known}
        order = [s for group in groups(nodes.layout) for s in group if s.name in self.names]
        if any(s.lags for s in order):
            around |= simulate(key, nodes, known, {})
        else:
            for mine, site in zip(jax.random.split(key, len(order)), order, strict=True):
                around[site.name] = nodes.unrolled(site, around, partial(drawn_value, mine, nodes, site))
        values = {n: around[n] for n in self.names}
        log_probs = {n: nodes.log_probs(sites[n], values[n], around) for n in self.names}
        plain = {n: nodes.spread(sites[n], nodes.call(sites[n], around), sites[n].plates)
                 for n in self.names if not sites[n].lags}  # fmt: skip
        return Proposals(values, log_probs, plain)


def _with_functions(program: Program, env: dict[str, Any], held: Container[str] = ()) -> dict[str, Any]:
    """Return an environment with the nodes that are functions of others, of discrete latent ones and held ones aside."""
    for site in program.layout.sites.values():
        if site.role == "deterministic" and not program.needs[site.name] and site.name not in held:
            env[site.name] = program.nodes.deterministic(site, env)
    return env


def _divergence(program: Program, site: Site, proposal: Any, env: Mapping[str, Any]) -> Any:
    """Return KL(proposal || prior) of every element in closed form; None where there is none, or the prior is a mixture."""
    from numpyro.distributions.kl import kl_divergence

    if site.lags or program._axes(site) or site.soft is not None:
        return None
    prior = program.nodes.spread(site, program.nodes.call(site, env), site.plates)
    try:
        return kl_divergence(proposal, prior)
    except NotImplementedError:
        return _state_divergence(proposal, prior)


def _state_divergence(proposal: Any, prior: Any) -> Any:
    """Return the divergence of states, which NumPyro has for probabilities alone; None of other families."""
    batch = len(proposal.batch_shape)
    logs = [state_logits(d) for d in (proposal, prior)]
    if logs[0] is None or logs[1] is None:
        return None
    own, other = (jax.nn.log_softmax(x) for x in logs)
    terms = jnp.where(own > -jnp.inf, jnp.exp(own) * (own - other), 0.0)
    return jnp.sum(terms, axis=tuple(range(batch, terms.ndim)))


def state_logits(law: Any) -> Any:
    """Return log probabilities of states, but for a constant, of a `Categorical` on any axes; None of other families."""
    while hasattr(law, "base_dist"):
        law = law.base_dist
    return law.logits if isinstance(law, laws.CategoricalLogits | laws.CategoricalProbs) else None


def _row_plate(layout: QuantityLayout, guides: Mapping[str, FunctionNode]) -> str:
    """Return the longest plate that everything observed is on, the first of all its nodes, and that nothing looks into."""
    observed = [s for s in layout.sites.values() if s.role == "observed"]
    if not observed:
        raise InvalidArgument("nothing is observed: fit takes the data of nodes by name, {'x': array}")
    for plate in sorted(layout.lengths, key=layout.lengths.__getitem__, reverse=True):
        on = {s.name for s in layout.sites.values() if plate in s.plates}
        if all(
            (s.plates[0] == plate and not (s.lags and s.plates[-1] == plate) and plate not in s.sources)
            if s.name in on
            else s.role != "observed" and not on & set(s.sources)
            for s in layout.sites.values()
        ):
            return plate
    names = ", ".join(repr(s.name) for s in observed[:3])
    raise UnsupportedModel(
        f"there is no plate of rows: everything observed ({names}) has to be on one plate, the first of its plates, and "
        "nothing outside may depend on it; with a single row say plate='row' and give arrays with a first axis of one"
    )


def _first_rows(layout: QuantityLayout, plate: str, axes: Mapping[str, int], n: int) -> QuantityLayout:
    """Return a layout with the first rows of the data."""
    few = layout_of_length(layout, plate, n)
    data = {k: np.take(v, range(n), axes[k]) if k in axes else v for k, v in layout.data.items()}
    return replace(few, data=data)
