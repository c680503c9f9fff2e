"""What is asked of a circuit of sums and products, and what its passes answer: posteriors, and best assignments."""

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidEvidence, TooLarge, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.quantities.soft_findings import Interval
from markovia.factors.tables.evidence import Findings
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.circuits.circuit import Circuit
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.impossible_evidence import impossible
from markovia.inference.posterior import Explanation, Posterior
from markovia.inference.problem import Problem
from markovia.inference.result import Info, Record, provenance
from markovia.models.graphical.given_values import read_given
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Stopwatch

MOST_CONFIGURATIONS = 2**20
"""The largest joint table that is filled, and the most assignments that are compared one by one."""


def variables_of(circuit: Circuit) -> dict[str, Variable]:
    """Return the variables of a circuit by name."""
    pairs = zip(circuit.names, circuit.states, strict=True)
    return {n: Quantity(n, "real") if states is None else Variable(n, states) for n, states in pairs}


class CircuitQuestion:
    """Evidence on a circuit, with the pass upwards that all answers begin with."""

    def __init__(self, circuit: Circuit, given: Mapping[str, Any] | None, *, possible: bool = True) -> None:
        self.circuit, self.named = circuit, variables_of(circuit)
        self.watch = Stopwatch()
        self.findings, _ = read_given(self.named, (), given)
        self.evidence = self._evidence(self.findings)
        self.values = self.circuit.values(self.evidence, 1)
        self.log_mass = float(self.values[-1, 0])
        if possible and self.log_mass == -np.inf:
            raise impossible(Problem(self.named, [], self.findings), self._log_mass)

    @property
    def free(self) -> list[int]:
        """The variables that are not observed, or not for certain."""
        hard = {n for n, f in self.findings.items() if f.hard}
        return [v for v, name in enumerate(self.circuit.names) if name not in hard]

    @cached_property
    def slopes(self) -> Array:
        """The derivatives that all posteriors are read off."""
        return self.circuit.slopes(self.values)

    def _log_mass(self, problem: Problem) -> float:
        return float(self.circuit.log_masses(self._evidence(problem.findings))[0])

    def _evidence(self, findings: Findings) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for v, name in enumerate(self.circuit.names):
            finding = findings.get(name)
            if finding is None:
                continue
            if finding.value is not None:
                if np.ndim(finding.value):
                    raise InvalidEvidence(f"{name!r} is one number, not an array; log_prob takes many rows")
                found[v] = np.array([float(finding.value)])
            elif isinstance(finding.said, Interval):
                found[v] = finding.said
            elif isinstance(finding.variable, Quantity):
                raise InvalidEvidence(f"{name!r} takes a number or an Interval, not {finding.said!r}")
            else:
                found[v] = np.array([finding.code]) if finding.code is not None else finding.weights()[None]
        return found

    def _info(self, record: Record) -> Info:
        return provenance(
            record, engine="circuit", exact=True, log_evidence=self.log_mass, seconds=self.watch.seconds,
            compile_seconds=self.watch.compile_seconds, given={n: f.said for n, f in self.findings.items()},
        )  # fmt: skip

    def posterior(self, targets: list[int]) -> Any:
        """Return the joint posterior of some variables."""
        named = [self.named[self.circuit.names[v]] for v in targets]
        numbers = [v for v in targets if self.circuit.states[v] is None]
        observed = next((v for v in numbers if v in self.evidence), None)
        if observed is not None:
            raise InvalidArgument(
                f"{self.circuit.names[observed]!r} is observed, so there is nothing to ask about it"
            )
        if len(numbers) > 1:
            raise UnsupportedModel(
                "the joint posterior of several numbers has a component for every way through the circuit; ask for one "
                "number at a time, or use sample(n, given)"
            )
        info = self._info(Record())
        if len(targets) == 1 and not numbers:
            own = self.circuit.posterior(targets[0], self.evidence, self.slopes)[0]
            return Posterior(Factor.of(tuple(named), own), info)
        states = [v for v in targets if v not in numbers]
        variables = tuple(v for v in named if not isinstance(v, Quantity))
        codes, likelihoods = self._configurations(states)
        evidence = {**self.evidence, **{v: codes[:, k] for k, v in enumerate(states)}}
        if not numbers:
            logs = self.circuit.log_masses(evidence, len(codes)) + likelihoods
            shares = np.exp(logs - self.log_mass)
            return Posterior(Factor.of(variables, shares.reshape([len(v) for v in variables])), info)
        # given the states, the law of a number is a mixture of its leaves, weighted by their slopes
        at = np.flatnonzero(self.circuit.variable == numbers[0])
        parts = self.circuit.blocks(evidence, len(codes))
        slopes = [self.circuit.slopes(self.circuit.values(own, p.stop - p.start))[at] for p, own in parts]
        logs = np.concatenate(slopes, axis=1) + likelihoods
        weights = np.exp(logs - logs.max())
        leaf, row = np.nonzero(weights > 0.0)
        mixture = MixtureOfGaussians(
            (self.circuit.names[numbers[0]],), variables, weights[leaf, row] / weights.sum(), codes[row],
            self.circuit.means[at[leaf], None], self.circuit.variances[at[leaf], None, None],
        )  # fmt: skip
        return GaussianPosterior([v.name for v in named], mixture, info)

    def _configurations(self, targets: list[int]) -> tuple[Any, Array]:
        """Return all configurations of variables with states, as codes, and the log likelihood of what is known of them."""
        sizes = [len(self.circuit.states[v] or ()) for v in targets]
        if prod(sizes) > MOST_CONFIGURATIONS:
            raise TooLarge(
                f"the variables have {prod(sizes):,} configurations together, over {MOST_CONFIGURATIONS:,}; ask for fewer",
                bytes=8.0 * prod(sizes),
            )
        flat = np.arange(prod(sizes))
        codes = np.stack(np.unravel_index(flat, sizes), axis=1) if sizes else np.zeros((1, 0), dtype=np.int64)
        found = np.zeros(len(codes))
        with np.errstate(divide="ignore"):
            for k, v in enumerate(targets):
                found += np.log(self.circuit.likelihoods(v, self.evidence.get(v))[0])[codes[:, k]]
        return codes, found

    def explanation(self, targets: list[int]) -> Explanation:
        """Return the best values of those of some variables that are not observed."""
        asked, whole = [v for v in targets if v in self.free], set(targets) >= set(self.free)
        discrete = all(self.circuit.states[v] is not None for v in asked)
        few = discrete and prod(len(self.circuit.states[v] or ()) for v in asked) <= MOST_CONFIGURATIONS
        record = Record()
        if few and not (whole and self.circuit.selective):
            codes, likelihoods = self._configurations(asked)
            evidence = {**self.evidence, **{v: codes[:, k] for k, v in enumerate(asked)}}
            logs = self.circuit.log_masses(evidence, len(codes)) + likelihoods
            chosen = dict(zip(asked, codes[int(logs.argmax())].tolist(), strict=True))
        elif whole:
            values = self.circuit.best(self.evidence)
            chosen = {v: values[v] for v in asked}
            if not self.circuit.selective:
                bound = float(self.circuit.values(self.evidence, 1, bound=True)[-1, 0])
                note = "the largest terms were followed; sums of several terms may have a better assignment"
                record = Record(exact=False, bound=bound, note=note)
        else:
            raise UnsupportedModel(
                "the best values of some variables, with others summed out, are found by comparing all; ask for fewer "
                "variables with states, or for all variables"
            )
        known, named = dict(self.evidence), {}
        for v, x in chosen.items():
            states = self.circuit.states[v]
            named[self.circuit.names[v]] = x if states is None else states[x]
            # what is known of a variable stays in the weight of its value
            said = None if states is None else self.circuit.likelihoods(v, self.evidence.get(v))
            known[v] = np.array([x]) if said is None else said * (np.arange(said.shape[1]) == x)
        log_prob = float(self.circuit.log_masses(known)[0])
        return Explanation(
            named, log_prob=log_prob,
            log_posterior=log_prob - self.log_mass if not discrete else min(0.0, log_prob - self.log_mass),
            bound=log_prob if record.bound is None else max(record.bound, log_prob), info=self._info(record),
            is_density=not discrete,
        )  # fmt: skip
