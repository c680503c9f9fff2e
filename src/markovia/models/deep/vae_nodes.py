"""What the nodes and guides of variational autoencoders are: functions by name, so that models can be saved.

`centre` and `unit` are constants of the network: columns of the data less their mean, in units of their standard deviation,
are what networks see, and what is handed over speaks of the data as they are.
"""

from typing import Any

from markovia.runtime.libraries import laws

# -- what a row is, given what the decoder says ------------------------------------------------------------------------


def bernoulli(decoded: Any) -> Any:
    """Return bits."""
    return laws.Bernoulli(logits=decoded)


def gaussian(decoded: Any, centre: Any, unit: Any, noise: Any) -> Any:
    """Return numbers."""
    return laws.Normal(centre + unit * decoded, unit * noise)


def categorical(decoded: Any, levels: Any) -> Any:
    """Return codes of states; as many numbers are decoded of each column as `levels` is wide."""
    return laws.Categorical(logits=decoded.reshape(*decoded.shape[:-1], -1, levels.shape[-1]))


def bernoulli_mean(decoded: Any) -> Any:
    """Return the probabilities of ones."""
    return bernoulli(decoded).mean


def gaussian_mean(decoded: Any, centre: Any, unit: Any) -> Any:
    """Return means."""
    return centre + unit * decoded


def categorical_mean(decoded: Any, levels: Any) -> Any:
    """Return the probabilities of states, an axis more."""
    return categorical(decoded, levels).probs


# -- codes -------------------------------------------------------------------------------------------------------------


def state(logits: Any) -> Any:
    """Return a state by its learned log probabilities."""
    return laws.Categorical(logits=logits)


def states(logits: Any) -> Any:
    """Return several states, independent of each other."""
    return laws.Categorical(logits=logits).to_event(1)


def next_state(before: Any, moves: Any) -> Any:
    """Return the state after another."""
    return laws.Categorical(logits=moves[before])


def first_state(starts: Any) -> Any:
    """Return the first state."""
    return laws.Categorical(logits=starts)


def component(state: Any, means: Any, scales: Any) -> Any:
    """Return the code of a row in some state: each has a mean and a spread."""
    return laws.Normal(means[state], scales[state]).to_event(1)


def normal_given(above: Any, network: Any) -> Any:
    """Return a code given that above, below or before it."""
    return laws.Normal(*network(above)).to_event(1)


def normal_after(before: Any, move: Any) -> Any:
    """Return a code given that of the step before."""
    return laws.Normal(*move(before)).to_event(1)


def looked_up(state: Any, codes: Any) -> Any:
    """Return the code of a state."""
    return codes[state]


# -- what is decoded ---------------------------------------------------------------------------------------------------


def decoded(code: Any, decoder: Any) -> Any:
    """Return what a network makes of a code."""
    return decoder(code)


def decoded_flat(code: Any, decoder: Any) -> Any:
    """Return what a network makes of several codes, one behind the other."""
    return decoder(code.reshape(*code.shape[:-2], -1))


def decoded_in_class(code: Any, y: Any, classes: Any, decoder: Any) -> Any:
    """Return what a network makes of a code and a class."""
    return decoder(code, classes[y])


# -- guides ------------------------------------------------------------------------------------------------------------


def shown(x: Any, x_seen: Any, centre: Any, unit: Any) -> Any:
    """Return what a network sees of rows: their columns alike, and 0, the mean, where an entry is missing."""
    return (x - centre) / unit * x_seen


def levels_shown(x: Any, x_seen: Any, levels: Any) -> Any:
    """Return what a network sees of codes of states: a number for every state, all 0 where an entry is missing."""
    hot = levels[x.astype(int)] * x_seen[..., None]
    return hot.reshape(*hot.shape[:-2], -1)


def code_guide(x: Any, x_seen: Any, centre: Any, unit: Any, encoder: Any) -> Any:
    """Return a normal proposal of the code."""
    return laws.Normal(*encoder(shown(x, x_seen, centre, unit))).to_event(1)


def level_guide(x: Any, x_seen: Any, levels: Any, encoder: Any) -> Any:
    """Return a normal proposal of the code from codes of states."""
    return laws.Normal(*encoder(levels_shown(x, x_seen, levels))).to_event(1)


def flow_guide(x: Any, x_seen: Any, centre: Any, unit: Any, encoder: Any, flow: Any) -> Any:
    """Return a proposal of the code by a flow that is told what the encoder makes of a row."""
    return flow.distribution(encoder(shown(x, x_seen, centre, unit)))


def class_guide(x: Any, x_seen: Any, centre: Any, unit: Any, y: Any, classes: Any, encoder: Any) -> Any:
    """Return a normal proposal of the code in each class."""
    return laws.Normal(*encoder(shown(x, x_seen, centre, unit), classes[y])).to_event(1)


def state_guide(x: Any, x_seen: Any, centre: Any, unit: Any, encoder: Any, logits: Any) -> Any:
    """Return a proposal of several states."""
    said = encoder(shown(x, x_seen, centre, unit))
    return laws.Categorical(logits=said.reshape(*said.shape[:-1], *logits.shape))


def nearest_guide(x: Any, x_seen: Any, centre: Any, unit: Any, encoder: Any, codes: Any) -> Any:
    """Return a proposal of the states whose codes are near what the encoder says."""
    from markovia.factors.networks.code_books import NearestCode  # a class of NumPyro's, which loads it

    said = encoder(shown(x, x_seen, centre, unit))
    return NearestCode(said.reshape(*said.shape[:-1], -1, codes.shape[-1]), codes)
