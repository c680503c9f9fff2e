"""Filtering as observations come in, one at a time: what is kept is the law of the present state.

The cost of an update does not grow with the steps before it. A diffuse start is the exception: until it is told, the few
steps so far are filtered again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from markovia.data.sequences.sequences import Sequences, read_sequences
from markovia.errors import ImpossibleEvidence, InvalidArgument
from markovia.inference.sequences.kalman_filter import KalmanFilter
from markovia.models.temporal.sequence_model import GivenSequences
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.inference.particles.results import ParticleStep
    from markovia.models.temporal.hmm import HMM
    from markovia.models.temporal.kalman_model import KalmanModel
    from markovia.models.temporal.particle_filter import ParticleFilter
    from markovia.models.temporal.particle_state import ParticleState


class StateStream(ABC):
    """A sequence that is being watched.

    It can be pickled and copied at any step, and its `state` is plain data that another stream of the same model takes up.

    Attributes
    ----------
    step
        How many observations there were.
    log_prob
        The log probability of all of them.
    """

    def __init__(self) -> None:
        self.step, self.log_prob = 0, 0.0

    @abstractmethod
    def update(self, y: Any, inputs: Any = None) -> Any:
        """Take the next observation, and return what is known of the state after it."""

    def _read(self, y: Any, inputs: Any) -> GivenSequences:
        """Return one observation as a sequence of one step, which messages call by the number of this step."""
        cells = np.asarray([np.nan] if y is None else y)
        row = np.reshape(cells if cells.dtype.kind in "biuf" else cells.astype(object), (1, -1))
        u = None if inputs is None else np.reshape(np.asarray(inputs, dtype=np.float64), (1, -1))
        return GivenSequences(replace(read_sequences(row), first=self.step), u)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(step={self.step}, log_prob={self.log_prob:.6g})"


class HiddenStateStream(StateStream):
    """The probabilities of hidden states while observations come in; made by `HMM.stream`."""

    def __init__(self, model: "HMM") -> None:
        super().__init__()
        self._model = model
        self._belief: Array | None = None

    def update(self, y: Any, inputs: Any = None) -> Array:
        """Take the next observation (None for a missing one), and return the probability of each state after it.

        An observation of probability zero raises `ImpossibleEvidence` and leaves the stream as it was.
        """
        asked = self._model._seen(self._read(y, inputs))
        chain = asked.chain
        before = chain.start if self._belief is None else self._belief @ chain.tables[chain.moves[-1]]
        logs = asked.seen.logs[asked.seen.codes[0]]
        top = logs.max()
        joint = before * np.exp(logs - (top if np.isfinite(top) else 0.0))
        total = float(joint.sum())
        if not total > 0.0:
            raise ImpossibleEvidence.because(
                f"what was seen at step {self.step} has probability zero after the steps before it", {}
            )
        self._belief = joint / total
        self.step, self.log_prob = self.step + 1, self.log_prob + float(np.log(total) + top)
        return self._belief.copy()

    @property
    def state(self) -> dict[str, Any]:
        """What the stream knows, as plain numbers and lists."""
        belief = None if self._belief is None else self._belief.tolist()
        return {"step": self.step, "log_prob": self.log_prob, "belief": belief}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        belief = None if value["belief"] is None else np.array(value["belief"], dtype=np.float64)
        if belief is not None and len(belief) != self._model.n_states:
            raise InvalidArgument("this state is of another model: its belief has another number of states")
        self.step, self.log_prob, self._belief = int(value["step"]), float(value["log_prob"]), belief


class GaussianStateStream(StateStream):
    """The mean and covariance of the state of a linear Gaussian model while observations come in; made by `stream`.

    Attributes
    ----------
    mean, cov
        Of the present state; None before the first observation.
    """

    def __init__(self, model: "KalmanModel") -> None:
        super().__init__()
        self._model, self._space = model, model.space
        self._untold: list[GivenSequences] = []
        self._push: Array = np.zeros(self._space.n_states)
        self.mean: Array | None = None
        self.cov: Array | None = None

    def update(self, y: Any, inputs: Any = None) -> tuple[Array, Array]:
        """Take the next observation (NaN where numbers are missing), and return the mean and the covariance of the state.

        Variances are infinite while a diffuse start is not yet told.
        """
        given = self._read([np.nan] * self._space.n_observed if y is None else y, inputs)
        row = given.rows.numbers()
        if row.shape[1] != self._space.n_observed:
            raise InvalidArgument(
                f"step {self.step} has {row.shape[1]} numbers, but the model observes {self._space.n_observed}"
            )
        push, shown = self._model._pushes(*given)
        if self.mean is not None and self.cov is not None and np.isfinite(self.cov).all():
            mean, cov, more = self._next(self.mean, self.cov, row[0], 0.0 if shown is None else shown[0])
            total, self._untold = self.log_prob + more, []
        else:
            mean, cov, total = self._from_the_start(given)
            self._untold.append(given)
        self.mean, self.cov, self.log_prob, self.step = mean, cov, total, self.step + 1
        self._push = np.zeros(len(mean)) if push is None else push[0]
        return mean.copy(), cov.copy()

    def _from_the_start(self, given: GivenSequences) -> tuple[Array, Array, float]:
        every = [*self._untold, given]
        rows = np.concatenate([one.rows.numbers() for one in every])
        inputs = [one.inputs for one in every if one.inputs is not None]
        data = Sequences(rows, np.array([0, len(rows)]), (0,), first=0)
        found = self._model._run(GivenSequences(data, np.concatenate(inputs) if inputs else None)).filtered
        return found.mean[0][-1], found.cov[0][-1], float(found.log_prob[0])

    def _next(self, mean: Array, cov: Array, y: Array, shown: Any) -> tuple[Array, Array, float]:
        """Move the state on and let it meet an observation: the filter of two steps, nothing seen in the first."""
        space, t = self._space, self.step
        if space.steps is not None and t >= space.steps:
            raise InvalidArgument(f"the model has matrices for {space.steps} steps, and none for step {t}")
        both = space.between(t - 1, t + 1, mean, cov)
        rows = np.stack([np.full_like(y, np.nan), y])
        pushes = (
            np.stack([self._push, np.zeros_like(mean)]),
            np.stack([np.zeros_like(y), np.zeros_like(y) + shown]),
        )
        found = KalmanFilter(
            both, rows, np.array([0, 2]), form=self._model.form, transition_push=pushes[0], observation_push=pushes[1],
            at=lambda row: f"step {t - 1 + row}",
        ).filtered  # fmt: skip
        return found.mean[0][-1], found.cov[0][-1], float(found.log_prob[0])

    @property
    def state(self) -> dict[str, Any]:
        """What the stream knows, as plain numbers and lists; there is none while a diffuse start is not told."""
        if self.cov is None or self.mean is None or not np.isfinite(self.cov).all():
            raise InvalidArgument(
                "the start is not told yet; go on until cov is finite, or pickle the stream"
            )
        held = {"mean": self.mean.tolist(), "cov": self.cov.tolist(), "push": self._push.tolist()}
        return {"step": self.step, "log_prob": self.log_prob, **held}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        mean, cov, push = (np.array(value[name], dtype=np.float64) for name in ("mean", "cov", "push"))
        if mean.shape != (self._space.n_states,) or cov.shape != (self._space.n_states,) * 2:
            raise InvalidArgument("this state is of another model: it has another number of states")
        self.step, self.log_prob, self._untold = int(value["step"]), float(value["log_prob"]), []
        self.mean, self.cov, self._push = mean, cov, push


class ResumedStream(StateStream):
    """What a filter knows of the present state while observations come in; of nonlinear and switching models.

    An update is the model's own filter of two steps that begins at the present law, with nothing seen in the first.
    """

    def __init__(self, model: "ResumableModel", width: int) -> None:
        super().__init__()
        self._model, self._width = model, width
        self._law: tuple[Array, ...] | None = None
        self._inputs: Array | None = None

    def update(self, y: Any, inputs: Any = None) -> tuple[Array, ...]:
        """Take the next observation (NaN where numbers are missing), and return what is known of the state after it.

        It is mean and covariance of the state, and with regimes the probability of each.
        """
        given = self._read([np.nan] * self._width if y is None else y, inputs)
        row, known = given.rows.numbers(), given.inputs
        if row.shape[1] != self._width:
            raise InvalidArgument(
                f"step {self.step} has {row.shape[1]} numbers, but the model observes {self._width}"
            )
        if self._law is not None:
            row = np.concatenate([np.full_like(row, np.nan), row])
            known = None if known is None or self._inputs is None else np.concatenate([self._inputs, known])
        data = Sequences(row, np.array([0, len(row)]), (0,), first=max(self.step - 1, 0))
        law, shown, more = self._model._resumed(self._law, GivenSequences(data, known))
        self._law, self._inputs = law, given.inputs
        self.step, self.log_prob = self.step + 1, self.log_prob + more
        return shown

    @property
    def state(self) -> dict[str, Any]:
        """What the stream knows, as plain numbers and lists."""
        law = None if self._law is None else [part.tolist() for part in self._law]
        inputs = None if self._inputs is None else self._inputs.tolist()
        return {"step": self.step, "log_prob": self.log_prob, "law": law, "inputs": inputs}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        law, inputs = value["law"], value["inputs"]
        self.step, self.log_prob = int(value["step"]), float(value["log_prob"])
        self._law = None if law is None else tuple(np.array(part, dtype=np.float64) for part in law)
        self._inputs = None if inputs is None else np.array(inputs, dtype=np.float64)


class ResumableModel(Protocol):
    """A model whose filter can begin at a law that a filter ended with."""

    def _resumed(
        self, law: tuple[Array, ...] | None, given: GivenSequences
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], float]:
        """Return the law after a sequence, what is shown of it, and the log probability; None begins at the start."""


class ParticleStream(StateStream):
    """Particles while observations come in; made by `ParticleFilter.stream`.

    Its `state` is a `ParticleState`, which can be saved, and given to another stream of the same filter.
    """

    def __init__(self, model: "ParticleFilter") -> None:
        super().__init__()
        self._model = copy(model)
        self._model.state = None

    def update(self, y: Any, inputs: Any = None) -> "ParticleStep":
        """Take the next observation (None for a missing one), and return the state after it."""
        found = self._model.update(np.nan if y is None else y, inputs)
        self.step, self.log_prob = found.t + 1, float(found.log_evidence)
        return found

    @property
    def state(self) -> "ParticleState | None":
        """The particles; None before the first observation."""
        return self._model.state

    @state.setter
    def state(self, value: "ParticleState | None") -> None:
        self._model.state = value
        self.step, self.log_prob = (0, 0.0) if value is None else (value.t, float(value.log_evidence))
