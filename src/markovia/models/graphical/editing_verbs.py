"""Building and editing a directed network.

Each edit is checked first and then made at once, so a failed one leaves the network as it was. The graph is built once
and edited along: adding or removing an edge costs the search for a cycle and the child's table. A removed variable
stays in the graph without edges until the graph itself is asked for, so that removing many is linear.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import DuplicateName, InvalidArgument, InvalidGraph, InvalidTable, UnsupportedModel
from markovia.factors.decisions.utility import Utility, UtilityNode, Worth
from markovia.factors.distributions.discrete_families import Categorical
from markovia.factors.distributions.exponential_family import ExponentialFamily
from markovia.factors.distributions.finite_distributions import finite_values, is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import Parameter, priors_of
from markovia.factors.functions.potential_node import with_nodes
from markovia.factors.functions.reading import as_function_node, read_plates
from markovia.factors.gaussian.linear_gaussian import StateRegressions, as_recipe, continuous_parents
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable, random_table, uniform_table
from markovia.factors.tables.table_forms import LocalModel, argument_names, as_conditional
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.models.graphical.differences import with_names, with_states
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.checks import check_choice
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import generator


class EditingVerbs(DirectedModel):
    """Building and editing a directed network; see `BayesianNetwork`."""

    _functions: bool | None = None
    """Whether some node is a function, whose arguments later nodes may be; None where nobody has looked."""

    @guided
    def add(
        self,
        name: str,
        distribution: Any = None,
        *,
        states: int | Sequence[State] | None = None,
        parents: Sequence[str] | str | None = None,
        p: Any = None,
        normalise: bool = False,
        plate: str | Sequence[str] | Mapping[str, int] | None = None,
        previous: Mapping[str, str | tuple[str, int]] | None = None,
        first: Any = None,
        size: int | Sequence[int] | None = None,
    ) -> None:
        """Add a variable, or a `Parameter`.

        Parameters
        ----------
        name
            A new name.
        distribution, p
            The table, in any form: nested lists (parents first, child last), one row a configuration of the parents (the
            last parent fastest), a dict of rows, a DataFrame, "uniform" or "random", a function of the parents' states,
            or a local model such as `NoisyOr(...)`. A function's argument names are its parents. Without either the node
            has no table yet.

            A quantity has a distribution of `markovia.distributions`, `LinearGaussian(...)`, `Input()`, or a function that
            returns a distribution (or numbers, for a deterministic node). Such a function is called with whole arrays; its
            arguments are nodes, also ones that are added later, plates (their lengths), or constants that come with
            `given`. Arguments with a default are none of these.
        states
            A list of states or their number; read off the table where it can be.
        parents
            Names of variables that are already there.
        normalise
            Whether to divide every row of the table by its sum, for counts and rounded numbers.
        plate
            The plates that the node is repeated over, in the order of its axes; with lengths where they are known
            (`plate={"component": 3}`), otherwise they come with the data.
        previous
            Arguments that are earlier elements of a node along the last plate: `{"before": "z"}`, or `("z", 2)` for two
            steps back. The function is then written for one step.
        first
            With `previous`, the distribution of the elements that have no earlier one: a distribution, a function or
            `Flat()`.
        size
            How many independent numbers with this distribution each element is a vector (or an array) of.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("a", p=[0.5, 0.5])
        >>> bn.add("b", p=[0.9, 0.1])
        >>> bn.add("either", lambda a, b: a or b)
        >>> bn.parents("either"), round(bn.query("either")[1], 6)
        (['a', 'b'], 0.55)
        >>> bn.add("c", parents=["a", "b"], p=[[3, 1], [1, 1], [0, 5], [1, 3]], normalise=True)
        >>> bn["c"].row(a=1, b=0).tolist()
        [0.0, 1.0]
        >>> import markovia.distributions as dist
        >>> bn.add("mu", dist.Normal(0, 5))
        >>> bn.add("y", lambda mu, c: dist.Normal(mu + c, 1), plate="row")
        >>> bn.parents("y")
        ['mu', 'c']
        """
        if name in self:
            raise DuplicateName(f"the network already has a variable {name!r}; use replace() to change it")
        if isinstance(name, str) and name in self._parameters:
            raise DuplicateName(f"the network already has a parameter {name!r}")
        if isinstance(distribution, Parameter) and distribution.prior is None:
            self._add_parameter(name, distribution, plate)
            return
        module = distribution if isinstance(distribution, Parameter) and distribution.is_module else None
        distribution = _sized(name, distribution, size)
        if distribution is not None and p is not None:
            raise InvalidArgument("give the distribution either by position or as p=, not both")
        form = as_recipe(distribution if distribution is not None else p)
        table: Conditional | None = as_function_node(
            self._variables, name, form, states, parents, plate, previous, first
        )
        if table is None:
            named = self._parent_names(form, parents)
            parent_variables = tuple(self.variable(n) for n in named)
            _refuse_rows_of_numbers(name, form, parent_variables)
            variable = variable_of(name, form, states, parent_variables)
            if form is not None:
                table = as_conditional(variable, parent_variables, form, normalise=normalise)
        else:
            variable = table.variable
            named = table.parent_names
        if table is not None:
            _refuse_amounts(name, table, table.parents)
        if table is not None:
            named = table.parent_names
        if module is not None:  # its numbers are those of the node, and functions get the module
            self._parameters = {**self._parameters, name: module}
        if self._functions is None:
            self._functions = any(isinstance(t, FunctionNode) for t in self._tables.values())
        waiting = _waiting_for(name, self._tables) if self._functions else {}
        self._functions = self._functions or isinstance(table, FunctionNode)
        if waiting:
            DAG.from_parents(
                {**self._parents, name: named, **{n: (*self._parents[n], name) for n in waiting}}
            )
        self._take_process(None, table)
        self._variables[name] = variable
        self._parents[name] = tuple(named)
        self._tables[name] = table
        self._potentials = with_nodes(self._potentials, self._variables)
        if self._graph is not None:
            graph = self._dag() if name in self._removed else self._graph
            graph.add_node(name)
            for parent in named:
                graph.add_edge(parent, name)
        for child, node in waiting.items():
            self._parents[child] = (*self._parents[child], name)
            self._tables[child] = node.with_parents((*node.parents, variable))
            if self._graph is not None:
                self._graph.add_edge(name, child)

    def _add_parameter(self, name: str, parameter: Parameter, plate: Any) -> None:
        """Take up what `fit` learns; declared plates are the first axes of its array."""
        plates, lengths = read_plates(name, plate)
        if plates:
            value = parameter.value
            if parameter.is_module or lengths.keys() != set(plates):
                raise InvalidArgument(
                    f"the parameter {name!r} may be an array along plates of declared length, plate={{'component': 3}}; one "
                    "number a row is a latent variable"
                )
            if value.shape[: len(plates)] != tuple(lengths[p] for p in plates):
                raise InvalidArgument(
                    f"the parameter {name!r} has shape {value.shape}, but its plates are {lengths}"
                )
        self._parameters = {**self._parameters, name: parameter.on(plates)}

    def _take_process(self, old: Conditional | None, new: Conditional | None) -> None:
        """Take up the parameters that a process brings along, in place of those of the one before it."""
        gone = getattr(getattr(old, "form", None), "hypers", {})
        fitted: dict[str, Any] = getattr(getattr(new, "form", None), "network_parameters", dict)()
        if gone or fitted:
            self._parameters = {**{n: p for n, p in self._parameters.items() if n not in gone}, **fitted}

    @guided
    def replace(
        self,
        name: str,
        distribution: Any = None,
        *,
        parents: Sequence[str] | str | None = None,
        p: Any = None,
        normalise: bool = False,
        previous: Mapping[str, str | tuple[str, int]] | None = None,
        first: Any = None,
    ) -> None:
        """Give a variable a new table, and new parents if they are named; the arguments are those of `add`.

        A quantity gets a new distribution or function and stays on its plates; its children keep theirs.

        Raises
        ------
        CycleError
            If the new parents would close a directed cycle; the network is left as it was.
        """
        variable = self.variable(name)
        form = as_recipe(distribution if distribution is not None else p)
        if form is None:
            raise InvalidArgument(f"replace({name!r}) needs a distribution or p=")
        if isinstance(variable, Quantity) and not isinstance(form, LocalModel):
            table: Conditional = self._new_function(variable, form, parents, previous, first)
            self._graph, self._removed = DAG.from_parents({**self._parents, name: table.parent_names}), set()
            self._take_process(self._tables[name], table)
            self._parents[name], self._functions, self._tables[name] = table.parent_names, None, table
            return
        if parents is None and isinstance(form, StateRegressions):
            parents = [q for q in self._parents[name] if not isinstance(self._variables[q], Quantity)]
        named = (
            self._parent_names(form, parents)
            if parents is not None or _names_parents(form)
            else self._parents[name]
        )
        parent_variables = tuple(self.variable(n) for n in named)
        _refuse_rows_of_numbers(name, form, parent_variables)
        table = as_conditional(variable, parent_variables, form, normalise=normalise)
        if table.parent_names != self._parents[name]:
            self._graph, self._removed = DAG.from_parents({**self._parents, name: table.parent_names}), set()
        self._parents[name] = table.parent_names
        self._functions = None
        self._tables[name] = table

    def _new_function(
        self,
        variable: Quantity,
        form: Any,
        parents: Sequence[str] | str | None,
        previous: Mapping[str, str | tuple[str, int]] | None,
        first: Any,
    ) -> FunctionNode:
        """Return a quantity's new distribution, on the plates that it has."""
        others = {n: v for n, v in self._variables.items() if n != variable.name}
        labels = variable.labels or None
        plates = variable.plates or None
        node = as_function_node(others, variable.name, form, labels, parents, plates, previous, first)
        if node is None:
            raise InvalidArgument(
                f"{variable.name!r} is a number, and this is a distribution over states; remove() it and add() it again"
            )
        return node.with_variable(variable)

    def fill(self, tables: str, seed: Any = None, *, only_missing: bool = False) -> None:
        """Fill tables with "uniform" or "random" (Dirichlet) rows; all of them, or only those that are missing.

        Numbers, and what depends on numbers, have no tables and keep their distributions.
        """
        check_choice("tables", tables, ("uniform", "random"))
        rng = generator(seed)
        with_rows = [
            n
            for n, parents in self._parents.items()
            if not any(isinstance(self._variables[q], Quantity) for q in (n, *parents))
        ]
        if not with_rows and self._variables:
            raise UnsupportedModel(
                "fill() is for tables, and this model is of numbers, which have none; replace() gives a number another "
                "distribution, and fit() learns it"
            )
        for name in with_rows:
            variable = self._variables[name]
            if only_missing and self._tables[name] is not None:
                continue
            parents = tuple(self._variables[q] for q in self._parents[name])
            self._tables[name] = (
                uniform_table(variable, parents)
                if tables == "uniform"
                else random_table(variable, parents, rng)
            )

    def remove(self, name: str) -> None:
        """Remove a variable that has no children."""
        self.variable(name)
        graph = self._live_graph()
        children = graph.children(name)
        if children:
            raise InvalidGraph(
                f"{name!r} has children {children}; remove them first, or give them other parents with replace()"
            )
        if weight := next((n for n, p in self._potentials.items() if name in p.parent_names), None):
            raise InvalidGraph(f"the potential {weight!r} takes {name!r}, so it cannot be removed")
        for parent in self._parents[name]:
            graph.remove_edge(parent, name)
        self._removed.add(name)
        self._take_process(self._tables[name], None)
        for store in (self._variables, self._parents, self._tables, self.node_properties):
            store.pop(name, None)

    def rename(self, old: str | Mapping[str, str], new: str | None = None) -> None:
        """Rename variables: `rename("a", "b")` or `rename({"a": "b", ...})`."""
        self._rebind(with_names(self._variables, old, new))

    def rename_states(self, name: str, states: Mapping[State, State] | Sequence[State]) -> None:
        """Rename a variable's states: a mapping from old to new, or all new states in order."""
        self._rebind({**self._variables, name: with_states(self.variable(name), states)})

    @guided
    def add_edge(self, parent: str, child: str, p: Any = None) -> None:
        """Add an edge; without a new table the child's rows are repeated, which leaves the distribution as it is."""
        self.variable(parent)
        if parent in self._parents[self.variable(child).name]:
            raise InvalidGraph(f"there is already an edge {parent} -> {child}")
        named = (*self._parents[child], parent)
        graph = self._live_graph()
        graph.add_edge(parent, child)
        try:
            table = self._extended_table(child, tuple(self._variables[n] for n in named), p)
        except BaseException:
            graph.remove_edge(parent, child)
            raise
        self._parents[child], self._tables[child] = named, table

    @guided
    def remove_edge(self, parent: str, child: str, p: Any = None) -> None:
        """Remove an edge; the child's new table is needed unless it does not depend on that parent."""
        self.variable(parent)
        if parent not in self._parents[self.variable(child).name]:
            raise InvalidGraph(f"there is no edge {parent} -> {child}")
        named = tuple(n for n in self._parents[child] if n != parent)
        parents = tuple(self._variables[n] for n in named)
        old = self._tables[child]
        table: Conditional | None = None
        if p is not None:
            table = as_conditional(self._variables[child], parents, p)
        elif old is not None:
            axis = old.parent_names.index(parent)
            first = old.values.take([0], axis=axis)
            if not np.allclose(old.values, first, rtol=0.0, atol=1e-12):
                raise InvalidTable(
                    f"{child!r} depends on {parent!r}; say its table without that parent: remove_edge(..., p=...)"
                )
            table = ConditionalTable.of(self._variables[child], parents, first.squeeze(axis).copy())
        self._live_graph().remove_edge(parent, child)
        self._parents[child], self._tables[child] = named, table

    # -- inside ---------------------------------------------------------------------------------------------------

    def _live_graph(self) -> DAG:
        """Return the graph for one more edit; removed variables may still be in it, without edges."""
        return self._dag() if self._graph is None else self._graph

    def _extended_table(self, child: str, parents: tuple[Variable, ...], p: Any) -> Conditional | None:
        """Return a node's table with one parent more at the end: a new one, or the old rows repeated."""
        old = self._tables[child]
        if p is not None:
            return as_conditional(self._variables[child], parents, p)
        if old is None:
            return None
        _refuse_rows_of_numbers(child, old, parents[-1:])
        if isinstance(self._variables[child], Quantity):
            raise UnsupportedModel(
                f"{child!r} is a number, whose distribution says what it depends on; replace({child!r}, ...) gives it one "
                f"with {parents[-1].name!r}"
            )
        repeated = np.repeat(old.values[..., None, :], len(parents[-1]), axis=-2)
        return ConditionalTable.of(self._variables[child], parents, repeated)

    def _parent_names(self, form: Any, parents: Sequence[str] | str | None) -> tuple[str, ...]:
        if isinstance(form, type):
            raise InvalidArgument(f"{form.__name__} is a class; write {form.__name__}(...)")
        if parents is not None:
            listed = parent_list(parents)
            return (*listed, *(n for n in continuous_parents(form) if n not in listed))
        if isinstance(form, Conditional | LocalModel):
            return parent_list(form.parent_names or ())
        if callable(form) and not hasattr(form, "columns") and not is_distribution(form):
            return argument_names(form)
        return ()

    def _rebind(self, fresh: Mapping[str, Variable]) -> None:
        """Give every variable (by old name) its new name and states, everywhere."""
        self._assumed = {
            fresh[n].name
            for n in self._assumed
            if n in self._variables and fresh[n].states == self._variables[n].states
        }
        unsettled = [frozenset(fresh[n].name for n in pair) for pair in self._unsettled_pairs()]
        tables = {}
        for name, table in self._tables.items():
            if table is not None:
                table = table.rebound(fresh[name], tuple(fresh[q] for q in self._parents[name]))
            tables[fresh[name].name] = table
        self._potentials = {
            n: p.rebound(p.variable, tuple(fresh[v.name] for v in p.parents))
            for n, p in self._potentials.items()
        }
        self._parents = {fresh[n].name: tuple(fresh[q].name for q in ps) for n, ps in self._parents.items()}
        self.node_properties = {fresh[n].name: q for n, q in self.node_properties.items()}
        self._tables = tables
        self._variables = {v.name: v for v in fresh.values()}
        self._graph = None
        self._leave_unsettled(unsettled)


def _refuse_amounts(name: str, form: Any, parents: Sequence[Variable]) -> None:
    """Refuse a node that is no utility and depends on one: an amount is a consequence of nothing else."""
    amount = next((q.name for q in parents if isinstance(q, Worth)), None)
    if amount is not None and not isinstance(form, Utility | UtilityNode):
        raise InvalidGraph(
            f"{amount!r} is a utility, whose children are utilities; let {name!r} depend on what {amount!r} depends on"
        )


def _refuse_rows_of_numbers(name: str, form: Any, parents: Sequence[Variable]) -> None:
    """Refuse a table that would need a row for every value of a number."""
    _refuse_amounts(name, form, parents)
    number = next((q.name for q in parents if isinstance(q, Quantity)), None)
    if number is not None and form is not None and not isinstance(form, LocalModel):
        raise UnsupportedModel(
            f"the table of {name!r} cannot have rows for {number!r}, which is a number; write a function instead: "
            f"add({name!r}, lambda {number}: dist.Bernoulli(logits={number}))"
        )


def parent_list(parents: str | Iterable[str]) -> tuple[str, ...]:
    """Return one parent or several, in the order of the table's axes."""
    if isinstance(parents, set | frozenset):
        raise InvalidArgument("parents have an order, that of the table's axes; give a list, not a set")
    if not isinstance(parents, str) and not isinstance(parents, Iterable):
        raise InvalidArgument(f"parents are a name or a list of names, not {parents!r}")
    names = (parents,) if isinstance(parents, str) else tuple(parents)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"a parent is named by a string, not {name!r}")
    if len(set(names)) < len(names):
        raise DuplicateName(f"a parent is listed twice: {', '.join(names)}")
    return names


def _names_parents(form: Any) -> bool:
    return isinstance(form, Conditional) or (isinstance(form, LocalModel) and form.parent_names is not None)


def variable_of(
    name: str, form: Any, states: int | Sequence[State] | None, parents: tuple[Variable, ...]
) -> Variable:
    """Return the variable that a form of distribution implies."""
    recipes = list(form.values()) if isinstance(form, Mapping) and form else [form]
    if recipes and all(getattr(recipe, "domain", "states") != "states" for recipe in recipes):
        if states is not None:
            raise InvalidArgument(f"{name!r} is a number and has no states; leave states= out")
        if isinstance(recipes[0], Utility):
            return recipes[0].variable_named(name)
        return Quantity(name, recipes[0].domain)
    return Variable(name, _states_of(form, states, parents))


def _waiting_for(name: str, tables: Mapping[str, Conditional | None]) -> dict[str, FunctionNode]:
    """Return the function nodes that have an argument of this name, which was no node until now."""
    return {n: t for n, t in tables.items() if isinstance(t, FunctionNode) and name in t.arguments.values()}


def _first_answer(function: Any, parents: tuple[Variable, ...]) -> Any:
    """Return what a function of states says for the first of each; None where it fails (its reading will say why)."""
    try:
        return function(*(q.states[0] for q in parents))
    except Exception:
        return None


def _states_of(form: Any, states: int | Sequence[State] | None, parents: tuple[Variable, ...]) -> Any:
    """Return the states as given, or as the form of the distribution implies them."""
    if states is not None:
        return states
    if isinstance(form, Conditional):
        return form.variable.states
    if isinstance(form, LocalModel):
        implied = form.implied_states(parents) if hasattr(form, "implied_states") else None
        return implied or form.default_states() or 2
    if isinstance(form, Categorical):
        return len(form.probs)
    implied_by = _first_answer(form, parents) if callable(form) and not is_distribution(form) else form
    if is_distribution(implied_by):
        return finite_values(implied_by)
    if isinstance(form, Mapping) and form and not parents and set(form) != {()}:
        return list(form)
    if hasattr(form, "columns") and not {q.name for q in parents} & set(form.columns):
        return list(form.columns)
    if form is None or callable(form) or isinstance(form, str | Mapping | ExponentialFamily):
        return 2
    try:
        shape = np.shape(form)
    except ValueError:
        return 2
    if len(shape) == 1 and parents:
        rows = int(np.prod([len(q) for q in parents]))
        return max(1, shape[0] // rows)
    return shape[-1] if shape else 2


def _sized(name: str, form: Any, size: int | Sequence[int] | None) -> Any:
    """Return a distribution of vectors where size= asks for them, or of all numbers of a parameter with a prior."""
    if isinstance(form, Parameter):
        return priors_of(form)
    if size is None:
        return form
    shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
    if (
        not is_distribution(form)
        or not shape
        or any(not isinstance(n, int | np.integer) or n < 1 for n in shape)
    ):
        raise InvalidArgument(
            f"size= of {name!r} is a number of independent elements, 1 or more, of a distribution; a function returns a "
            "distribution of the size that it wants"
        )
    return form.expand((*shape, *form.batch_shape)).to_event(len(shape) + len(form.batch_shape))
