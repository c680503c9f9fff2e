"""Components that are more than a name: columns of several kinds, distributions, networks, exponential families, models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from markovia.data.tables.frames import as_frame
from markovia.errors import (
    IgnoredColumnWarning,
    InvalidArgument,
    UnsupportedModel,
    check_known,
    warn_user,
)
from markovia.factors.distributions.exponential_family import ExponentialFamily
from markovia.learning.components.columns import CategoricalColumns, Parts, Product
from markovia.learning.components.exponential import ExponentialMembers, values
from markovia.learning.components.families import NOTHING, Components, probabilities
from markovia.learning.components.functions import DistributionFamily, FunctionEmission, first_guess
from markovia.learning.latent.group_starts import TRIES
from markovia.learning.latent.nested_groups import NestedGroups
from markovia.models.classifiers.feature_rows import category_codes, columns, feature_names, numbers
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.mixtures.base import CATEGORIES, MixtureModel
from markovia.models.mixtures.component_families import NUMBERS, START_PRIOR, ComponentRows
from markovia.models.temporal.hidden_states.network_emissions import NetworkEmission, NetworkFamily
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.libraries import pd

MOST_SYMBOLS = 20
PARAMETERS: dict[str, set[str]] = {
    "categorical": {"probs", "categories"},
    "gaussian": {"means", "covariances"},
    "student-t": {"means", "scales", "df"},
    "poisson": {"rates"},
}
"""The parameters by which columns that are given by hand are told apart."""
"""Different whole numbers of a column that are still taken for categories."""
WHOLE = "such components need every cell: fill them or drop the row"


@dataclass(frozen=True)
class ColumnRows:
    """Columns with a family each; `kinds` maps a column, or a tuple of columns, to a name. None guesses."""

    kinds: Mapping[Any, str] | str | None
    kind: str = "full"
    tries: ClassVar[int] = TRIES
    start_prior: ClassVar[dict[str, Any]] = START_PRIOR

    @property
    def priors(self) -> tuple[str, ...]:
        """What a prior may say."""
        named = {*self.kinds.values()} if isinstance(self.kinds, Mapping) else {"gaussian", "categorical"}
        found = [n for name in named if name in NUMBERS for n in NUMBERS[name].priors]
        return (*dict.fromkeys([*found, "concentration"]),)

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Parts:  # noqa: N803
        """Return the columns in parts; what categories there are is kept in the estimator's `categories_`."""
        cells = columns(estimator, X, reset=reset)
        names = feature_names(estimator)
        if reset:
            estimator.component_kinds_ = self._said(cells, names)
            estimator.categories_ = {}
        found: list[Any] = []
        about = []
        for members, name in estimator.component_kinds_.items():
            own = [cells[names.index(one)] for one in members]
            if name == "categorical":
                found.append(category_codes(estimator, members, own, reset=reset))
            else:
                found.append(_numbers(members, own, name, reset))
            symbols = tuple(tuple(estimator.categories_[m]) for m in members) if name == "categorical" else ()
            about.append((members, name, symbols))
        return Parts(tuple(found), tuple(about))

    def _said(self, cells: list[Any], names: list[str]) -> dict[tuple[str, ...], str]:
        if isinstance(self.kinds, str):
            return {tuple(names): self.kinds}
        if self.kinds is None:
            guessed = {name: _guess(column) for name, column in zip(names, cells, strict=True)}
            symbols = tuple(name for name in names if guessed[name] == "categorical")
            rest: dict[tuple[str, ...], str] = {
                (name,): kind for name, kind in guessed.items() if kind != "categorical"
            }
            return {**({symbols: "categorical"} if symbols else {}), **rest}
        found: dict[tuple[str, ...], str] = {}
        for called, kind in self.kinds.items():
            members = called if isinstance(called, tuple) else (called,)
            places = tuple(names[m] if isinstance(m, int) and m < len(names) else m for m in members)
            check_known(places, names, "the data")
            if kind not in (*NUMBERS, "categorical"):
                raise InvalidArgument(
                    f"component[{called!r}] is one of {', '.join((*NUMBERS, 'categorical'))}, not {kind!r}"
                )
            found[places] = kind
        used = {name for members in found for name in members}
        left = [n for n in names if n not in used]
        if left:
            warn_user(
                f"the column {left[0]!r} is in no entry of component=, and is left out", IgnoredColumnWarning
            )
        return found

    def blank(self, rows: Parts, k: int) -> Product:
        """Return components that have learned nothing yet."""
        made: list[Any] = []
        for (_, name, symbols), part in zip(rows.about, rows.parts, strict=True):
            if name == "categorical":
                made.append(
                    CategoricalColumns(tuple(np.full((k, len(s)), 1.0 / len(s)) for s in symbols), symbols)
                )
            else:
                wide = part.shape[1] > 1
                made.append(ComponentRows(name, self.kind if wide else "diag").blank(part, k))
        return Product(tuple(made), tuple(members for members, _, _ in rows.about))

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Refuse parameters."""
        raise InvalidArgument("params_init= is for components of one kind; mixed columns begin with clusters")

    def adopt(
        self, estimator: Any, k: int, params: Mapping[str, Any], names: Sequence[str] | None = None
    ) -> Product:
        """Return components with parameters by columns, and tell the estimator what columns there are."""
        if isinstance(self.kinds, str):  # all columns are of one kind, and their parameters stand alone
            many = len(params.get("probs", ()))
            members = tuple(names) if names is not None else tuple(f"x{i}" for i in range(many))
            kinds, params = {members: self.kinds}, {"+".join(members): params}
        elif self.kinds is None:
            if "probs" in params:  # of all columns, which then are of categories
                return ColumnRows("categorical").adopt(estimator, k, params, names)
            kinds = {tuple(column.split("+")): _family_of(column, own) for column, own in params.items()}
        else:
            kinds = {c if isinstance(c, tuple) else (str(c),): kind for c, kind in self.kinds.items()}
        check_known(params, ["+".join(c) for c in kinds], "the columns")
        estimator.component_kinds_, estimator.categories_ = kinds, {}
        families: list[Any] = []
        for members, kind in kinds.items():
            own = params.get("+".join(members))
            if own is None:
                raise InvalidArgument(
                    f"the column {'+'.join(members)!r} has no parameters; give {members[0]}={{...}}"
                )
            if kind == "categorical":
                families.append(_categories_given(estimator, k, members, own))
            else:
                families.append(ComponentRows(kind, self.kind if len(members) > 1 else "diag").of(k, own))
        every = [one for members in kinds for one in members]
        estimator.n_features_in_ = len(every)
        if names is not None or not isinstance(self.kinds, str):
            estimator.feature_names_in_ = np.array(every if names is None else list(names), dtype=object)
        return Product(tuple(families), tuple(kinds))

    def points(self, rows: Parts) -> Array:
        """Return numbers that stand for the rows."""
        found = []
        for (_, name, _), part in zip(rows.about, rows.parts, strict=True):
            if name != "categorical":
                found.append(ComponentRows(name).points(part))
                continue
            for column in part.T:
                there = (column[:, None] == np.arange(max(int(column.max()) + 1, 1))).astype(np.float64)
                found.append(there - there.mean(axis=0))
        return np.hstack(found)

    def drawn(self, estimator: Any, drawn: Parts) -> Any:
        """Return draws as a frame, or as one array where columns have no names and are all alike."""
        table: dict[str, Any] = {}
        for (members, name), part in zip(estimator.component_kinds_.items(), drawn.parts, strict=True):
            for i, one in enumerate(members):
                symbols = np.array(estimator.categories_.get(one, []))
                table[one] = symbols[part[:, i]] if name == "categorical" else part[:, i]
        if not hasattr(estimator, "feature_names_in_"):
            return np.column_stack([table[n] for n in feature_names(estimator) if n in table])
        return pd.DataFrame({n: table[n] for n in feature_names(estimator) if n in table})


def _categories_given(estimator: Any, k: int, members: tuple[str, ...], own: Mapping[str, Any]) -> Any:
    """Return columns of categories from `probs` and `categories`, a table and a list of symbols a column."""
    check_known(own, ["probs", "categories"], "columns of categories")
    probs = [
        probabilities(one, f"'probs' of {n!r}", (k, None))
        for one, n in zip(own["probs"], members, strict=True)
    ]
    symbols = own.get("categories", [range(one.shape[1]) for one in probs])
    if [len(one) for one in symbols] != [one.shape[1] for one in probs]:
        raise InvalidArgument(
            f"categories= has {[len(one) for one in symbols]} symbols, and 'probs' {[one.shape[1] for one in probs]}"
        )
    estimator.categories_.update({name: list(own) for name, own in zip(members, symbols, strict=True)})
    return CategoricalColumns(tuple(probs), tuple(tuple(one) for one in symbols))


def _family_of(column: str, own: Any) -> str:
    """Return the family of a column by the names of its parameters."""
    named = set(own) if isinstance(own, Mapping) else set()
    for kind, names in PARAMETERS.items():
        if named == names or (kind == "categorical" and named == {"probs"}):
            return kind
    families = ", ".join(f"{kind} ({', '.join(sorted(names))})" for kind, names in PARAMETERS.items())
    raise InvalidArgument(
        f"{column}= is a mapping of the parameters of a family: {families}; columns= says the family of a column otherwise"
    )


def _guess(column: Any) -> str:
    cells = np.asarray(column)
    if cells.dtype.kind in "OUSb" or str(getattr(column, "dtype", "")) == "category":
        return "categorical"
    known = cells[~np.isnan(cells.astype(np.float64))]
    whole = (known == np.floor(known)).all()
    return "categorical" if whole and len(np.unique(known)) <= MOST_SYMBOLS else "gaussian"


def _numbers(members: tuple[str, ...], cells: list[Any], name: str, reset: bool) -> Array:
    made = []
    for called, column in zip(members, cells, strict=True):
        try:
            made.append(np.asarray(column, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"the column {called!r} holds text, where {name} components need numbers; say 'categorical'"
            ) from None
        if np.isinf(made[-1]).any():
            raise InvalidArgument(
                f"the column {called!r} has an infinite number; it is a number or missing (NaN)"
            )
        if reset and np.isnan(made[-1]).all():
            raise InvalidArgument(f"all cells of the column {called!r} are missing; leave it out")
    return np.ascontiguousarray(np.column_stack(made))


@dataclass(frozen=True)
class FunctionRows:
    """Any distribution of `markovia.distributions`, or a function that returns one."""

    make: Any
    given: Mapping[str, Any] | None = None
    priors: ClassVar[tuple[str, ...]] = ()
    tries: ClassVar[int] = 1

    @property
    def _own(self) -> DistributionFamily:
        return DistributionFamily(self.make, self.given)

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Array:  # noqa: N803
        """Return rows of numbers, none missing."""
        return np.asarray(numbers(estimator, X, reset=reset, gaps=WHOLE, text=CATEGORIES))

    def blank(self, rows: Any, k: int) -> Any:
        """Return components that all begin with the same guess."""
        if self.given is not None:
            return self._own.of(k, self.given)
        return FunctionEmission(self.make, first_guess(self._own, rows, k))

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Return checked components from parameters."""
        return self._own.of(k, params)

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows."""
        return ComponentRows("gaussian").points(rows)


@dataclass(frozen=True)
class NetworkRows:
    """Bayesian networks of one structure."""

    network: BayesianNetwork
    priors: ClassVar[tuple[str, ...]] = NetworkFamily.priors
    tries: ClassVar[int] = 2

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return a frame of the network's variables."""
        frame = as_frame(X)
        if isinstance(X, np.ndarray):
            if X.shape[1] != len(self.network.variables):
                raise InvalidArgument(
                    f"X has {X.shape[1]} columns, the network {len(self.network.variables)} variables"
                )
            frame.columns = self.network.variables
        check_known(self.network.variables, list(frame.columns), "the data")
        if reset:
            estimator.n_features_in_ = len(self.network.variables)
            estimator.feature_names_in_ = np.array(self.network.variables, dtype=object)
        return frame[self.network.variables].reset_index(drop=True)

    def blank(self, rows: Any, k: int) -> Any:
        """Return copies of the network."""
        return NetworkEmission((self.network.copy(),) * k)

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Return checked components from networks."""
        return NetworkFamily(self.network).of(k, params)

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows."""
        wide = pd.get_dummies(
            rows.astype({n: object for n in rows if rows[n].dtype.kind not in "f"}), dtype=float
        )
        return ComponentRows("gaussian").points(wide.to_numpy(dtype=np.float64))


@dataclass(frozen=True)
class MemberRows:
    """Members of the exponential family that one of them shows."""

    member: ExponentialFamily
    priors: ClassVar[tuple[str, ...]] = ()
    tries: ClassVar[int] = TRIES

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Array:  # noqa: N803
        """Return rows in the support of the family."""
        rows = np.asarray(numbers(estimator, X, reset=reset, gaps=WHOLE, text=CATEGORIES))
        try:
            base = np.asarray(self.member.log_base_measure(values(rows)))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"rows are values of {type(self.member).__name__}: {error}") from None
        if base.shape != (len(rows),):
            raise InvalidArgument(
                f"{type(self.member).__name__} has one number a row, not {rows.shape[1]} columns; "
                "component={column: name} takes several"
            )
        if np.isneginf(base).any():
            row = int(np.argmax(np.isneginf(base)))
            raise InvalidArgument(f"row {row} is outside the support of {type(self.member).__name__}")
        return rows

    def blank(self, rows: Any, k: int) -> Any:
        """Return copies of the member."""
        return ExponentialMembers((self.member,) * k)

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Return components from members."""
        given = tuple(params["members"])
        if len(given) != k or not all(type(one) is type(self.member) for one in given):
            raise InvalidArgument(f"params_init['members'] are {k} members of {type(self.member).__name__}")
        return ExponentialMembers(given)

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows."""
        found = np.asarray(self.member.sufficient_statistics(values(rows))).reshape(len(rows), -1)
        return ComponentRows("gaussian").points(found)


@dataclass(frozen=True)
class NestedRows:
    """Mixtures in a mixture."""

    template: MixtureModel
    tries: ClassVar[int] = 2

    @property
    def inner(self) -> Any:
        """The family of the inner components."""
        return self.template._family()

    @property
    def priors(self) -> tuple[str, ...]:
        """What a prior may say."""
        return tuple(self.inner.priors)

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return rows as the inner components take them."""
        return self.inner.read(estimator, X, reset=reset)

    @property
    def inner_size(self) -> int:
        """How many inner components there are."""
        return int(self.template.n_components)

    def blank(self, rows: Any, k: int) -> Any:
        """Return mixtures that have learned nothing yet."""
        return NestedGroups((), self, k)

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Refuse parameters."""
        raise InvalidArgument(
            "params_init= is for components of one kind; mixtures in a mixture begin with clusters"
        )

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows."""
        return np.asarray(self.inner.points(rows))


@dataclass(frozen=True)
class ModelRows:
    """Any model with `fit(rows, sample_weight=)` and `log_prob(rows)`."""

    template: Any
    priors: ClassVar[tuple[str, ...]] = ()
    tries: ClassVar[int] = 1

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return rows as they are; frames, arrays and lists can be cut."""
        if not hasattr(X, "__len__") or not len(X):
            raise InvalidArgument("X has no rows; it is a frame, an array or a list")
        if reset:
            estimator.n_features_in_ = int(np.shape(X)[1]) if np.ndim(X) == 2 else 1
        return X

    def blank(self, rows: Any, k: int) -> Any:
        """Return copies of the model."""
        return Models((self.template,) * k)

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Return components from models."""
        given = tuple(params["models"])
        if len(given) != k:
            raise InvalidArgument(f"params_init['models'] are {k} models, not {len(given)}")
        return Models(given)

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows, or noise where they are no numbers."""
        try:
            return ComponentRows("gaussian").points(np.asarray(rows, dtype=np.float64))
        except (TypeError, ValueError):
            return np.random.default_rng(0).random((len(rows), 1))


@dataclass(frozen=True)
class Models(Components):
    """Models of one kind, one a component."""

    models: tuple[Any, ...]
    names: ClassVar = ("models",)
    width: ClassVar = None

    @property
    def params(self) -> dict[str, Any]:
        """The models."""
        return {"models": list(self.models)}

    @property
    def n_free(self) -> int:
        """The number of free parameters, where models tell."""
        return sum(model_size(one) for one in self.models)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each component."""
        return np.column_stack([np.asarray(one.log_prob(rows)) for one in self.models])

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> "Models":
        """Return the models fitted to weighted rows."""
        made = [
            clone(one).fit(rows, sample_weight=own) if own.sum() > NOTHING else one
            for one, own in zip(self.models, weights.T, strict=True)
        ]
        return Models(tuple(made))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return what a model draws, from each of some components."""
        drawn = [self.models[k].sample(1, seed=rng) for k in states.tolist()]
        return [one[0] if isinstance(one, tuple) else one for one in drawn]


def model_size(model: Any) -> int:
    """Return the number of free parameters of a model."""
    for name in ("n_free", "n_parameters"):
        if hasattr(model, name):
            found = getattr(model, name)
            return int(found() if callable(found) else found)
    if hasattr(model, "_model"):
        return int(model._model().n_free)
    raise UnsupportedModel(f"a {type(model).__name__} does not count its parameters, which bic and aic need")


def family_of(component: Any, kind: str, given: Mapping[str, Any] | None = None, rank: int = 1) -> Any:
    """Return the family that a component stands for."""
    if isinstance(component, str):
        if component in NUMBERS:
            return ComponentRows(component, kind, rank=rank)
        if component == "categorical":
            return ColumnRows("categorical", kind)
    elif isinstance(component, Mapping):
        return ColumnRows(component, kind)
    elif isinstance(component, MixtureModel):
        return NestedRows(component)
    elif isinstance(component, BayesianNetwork):
        return NetworkRows(component)
    elif isinstance(component, ExponentialFamily):
        return MemberRows(component)
    elif hasattr(component, "fit") and hasattr(component, "log_prob") and not isinstance(component, type):
        return ModelRows(component)
    elif callable(component):
        return FunctionRows(component, given)
    raise InvalidArgument(
        f"component= is one of {', '.join((*NUMBERS, 'categorical'))}, a mapping of columns to these, a distribution of "
        f"markovia.distributions or a function that returns one, a member of an exponential family, a BayesianNetwork, or "
        f"a model with fit and log_prob, not {component!r}"
    )
