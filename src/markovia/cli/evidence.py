"""From `variable=state` on the command line to evidence, interventions and lists of names.

Text is matched against the model, so names and states may hold `=`, commas and spaces: of all places where a
text could be split, the one that makes sense to the model is taken.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from markovia.cli.terminal.loading import states_of
from markovia.errors import InvalidArgument, InvalidEvidence, UnknownState, UnknownVariable
from markovia.factors.tables.evidence import Not
from markovia.factors.tables.variable import State, Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.model import Model

Value = TypeVar("Value")


def read_given(
    model: Model, hard: Sequence[str] = (), soft: Sequence[str] = (), ruled_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the evidence that the options --given, --soft and --not say together.

    Parameters
    ----------
    model
        Whose variables and states the texts name.
    hard, ruled_out
        Texts `variable=state`; several in one text are separated by commas.
    soft
        Texts `variable=0.2,0.8`, one likelihood a state in the order of the states.

    Raises
    ------
    InvalidEvidence, UnknownVariable, UnknownState
        If a text has another form, names nothing in the model, or speaks of a variable again.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> read_given(asia(), ["smoke=yes"], ["xray=0.9,0.1"], ["dysp=no"])
    {'smoke': 'yes', 'xray': [0.9, 0.1], 'dysp': Not('no')}
    """
    given: dict[str, Any] = {}
    for name, state in _states(model, hard, "--given"):
        _once(given, name)
        given[name] = state
    for text in soft:
        variable, numbers = _split(model, text, _likelihoods, f"--soft {_soft_example(model)}")
        _once(given, variable.name)
        given[variable.name] = numbers
    excluded: dict[str, list[State]] = {}
    for name, state in _states(model, ruled_out, "--not"):
        if name not in excluded:
            _once(given, name)
        excluded.setdefault(name, []).append(state)
        given[name] = Not(*excluded[name])
    return given


def read_interventions(model: Model, texts: Sequence[str]) -> dict[str, State]:
    """Return the interventions of --do as name and state.

    Raises
    ------
    InvalidArgument
        If the model is undirected, where there is no cause to cut off, or a variable is set twice.
    """
    if texts and not isinstance(model, BayesianNetwork):
        raise InvalidArgument(f"--do needs a Bayesian network; this is a {type(model).__name__}")
    done: dict[str, State] = {}
    for name, state in _states(model, texts, "--do"):
        if name in done:
            raise InvalidArgument(f"--do sets {name!r} twice")
        done[name] = state
    return done


def intervened(model: Model, texts: Sequence[str]) -> tuple[Model, dict[str, State]]:
    """Return the model after the interventions of --do, and the interventions."""
    done = read_interventions(model, texts)
    return (model.do(done) if done and isinstance(model, BayesianNetwork) else model), done


def read_names(model: Model, texts: Sequence[str]) -> list[str]:
    """Return the variables that texts name, one or several separated by commas in each.

    Examples
    --------
    >>> from markovia.models.gallery.examples import asia
    >>> read_names(asia(), ["lung,bronc", "smoke"])
    ['lung', 'bronc', 'smoke']
    """
    names: list[str] = []
    for text in texts:
        for word in [text] if text in model or "," not in text else text.split(","):
            name = word if word in model else word.strip()
            if name not in model and "=" in name:
                raise InvalidArgument(
                    f"{name!r} is not the name of a variable; evidence needs its own option: --given {name}"
                )
            names.append(model.variable(name).name)
    return names


def said(name: str, value: Any) -> str:
    """Write a piece of evidence the way it is read.

    Examples
    --------
    >>> said("smoke", "yes"), said("smoke", [0.2, 0.8]), said("smoke", Not("no"))
    ('smoke=yes', 'smoke~[0.2, 0.8]', 'smoke≠no')
    """
    if isinstance(value, Not):
        return ", ".join(f"{name}≠{state}" for state in value.states)
    return f"{name}~[{', '.join(f'{x:g}' for x in value)}]" if isinstance(value, list) else f"{name}={value}"


def _states(model: Model, texts: Sequence[str], option: str) -> list[tuple[str, State]]:
    pairs: list[tuple[str, State]] = []
    for text in texts:
        for piece in _pieces(model, text):
            variable, state = _split(model, piece, _state, f"{option} {_example(model)}")
            pairs.append((variable.name, state))
    return pairs


def _pieces(model: Model, text: str) -> list[str]:
    """Split `a=x,b=y` at its commas, unless the whole text is one assignment or a part of it is none."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 or _reads(model, text) or not all(_names_a_variable(model, part) for part in parts):
        return [text]
    return parts


def _reads(model: Model, text: str) -> bool:
    try:
        _split(model, text, _state, "")
    except (InvalidEvidence, UnknownVariable, UnknownState):
        return False
    return True


def _names_a_variable(model: Model, text: str) -> bool:
    return any(left in model for left, _ in _splits(text))


def _split(
    model: Model, text: str, read: Callable[[Variable, str], Value], example: str
) -> tuple[Variable, Value]:
    """Split at the first `=` after which both sides make sense, or raise what is wrong with the best split."""
    splits = _splits(text)
    if not splits:
        raise InvalidEvidence(f"{text!r} has no '='; write for example {example}")
    first_error: Exception | None = None
    for left, right in splits:
        if left in model:
            try:
                return model.variable(left), read(model.variable(left), right)
            except (UnknownState, InvalidEvidence) as error:
                first_error = first_error or error
    raise first_error or UnknownVariable(splits[0][0], model.variables)


def _splits(text: str) -> list[tuple[str, str]]:
    """List what stands before and after each `=`, as written and then without spaces around it."""
    exact = [(text[:i], text[i + 1 :]) for i, sign in enumerate(text) if sign == "="]
    return exact + [(a.strip(), b.strip()) for a, b in exact if (a.strip(), b.strip()) != (a, b)]


def _state(variable: Variable, text: str) -> State:
    alike = [state for state in variable.states if str(state) == text]
    if len(alike) > 1:
        raise InvalidEvidence(
            f"{text!r} could be {' or '.join(map(repr, alike))} of {variable.name!r}; "
            "states that print alike cannot be told apart here, so rename one in the file"
        )
    return variable.parse(text)


def _likelihoods(variable: Variable, text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise InvalidEvidence(
            f"--soft {variable.name}={text} needs {len(variable)} numbers separated by commas, "
            f"one for each of {', '.join(map(str, variable.states))}"
        ) from None
    if len(numbers) != len(variable):
        raise InvalidEvidence(
            f"--soft {variable.name}={text} has {len(numbers)} likelihoods; {variable.name!r} has "
            f"{len(variable)} states: {', '.join(map(str, variable.states))}"
        )
    return numbers


def _once(given: dict[str, Any], name: str) -> None:
    if name in given:
        raise InvalidEvidence(f"there are two pieces of evidence on {name!r}; give one")


def _example(model: Model) -> str:
    """Return an assignment that the model would accept, for messages."""
    return next(
        (f"{n}={states[-1]}" for n in model.variables if (states := states_of(model, n))), "variable=state"
    )


def _soft_example(model: Model) -> str:
    """Return soft evidence that the model would accept: each state half as likely as the one before."""
    name = next((n for n in model.variables if states_of(model, n)), "variable")
    states = states_of(model, name) if name in model else [0, 1]
    return f"{name}={','.join(f'{0.5**k:g}' for k in range(len(states)))}"
