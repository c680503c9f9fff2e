"""Words of other libraries get ours, in every public constructor, function and verb."""

import inspect
import pickle
import types
from enum import Enum
from functools import cache

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import UnknownArgument


def doors():
    return [mk, *(v for n in dir(mk) if isinstance(v := getattr(mk, n), types.ModuleType) and n != "errors")]


@cache
def public():
    """Every public class and function whose arguments are all named: others read their own keywords."""
    found = {}
    for door in doors():
        for name in dir(door):
            value = getattr(door, name)
            if not isinstance(value, type | types.FunctionType) or not value.__module__.startswith(
                "markovia"
            ):
                continue
            if isinstance(value, type) and (
                issubclass(value, BaseException | Enum)
                or inspect.isabstract(value)
                or getattr(value, "_is_protocol", False)
            ):
                continue
            first = value.__init__ if isinstance(value, type) else value
            if isinstance(value, type) and not isinstance(first, types.FunctionType):
                first = value.__new__
            if not isinstance(first, types.FunctionType):
                continue  # no arguments, or those of dict
            if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(first).parameters.values()):
                continue
            found[f"{door.__name__}.{name}"] = value
    return found


def test_no_public_constructor_or_function_ends_in_a_bare_type_error():
    bare = {}
    for name, value in public().items():
        try:
            value(no_such_word=1)
        except UnknownArgument:
            continue
        except Exception as said:
            bare[name] = repr(said)
        else:
            bare[name] = "took it"
    assert not bare
    assert len(public()) > 450


def test_no_verb_of_a_public_class_ends_in_a_bare_type_error():
    bare, asked = [], 0
    for name, kind in public().items():
        if not isinstance(kind, type):
            continue
        for verb, member in inspect.getmembers(kind, inspect.isfunction):
            plain = isinstance(inspect.getattr_static(kind, verb), types.FunctionType | staticmethod)
            if verb.startswith("_") or not plain or not member.__module__.startswith("markovia"):
                continue
            if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(member).parameters.values()):
                continue
            asked += 1
            try:
                member(object(), no_such_word=1)
            except UnknownArgument:
                continue
            except Exception as said:
                bare.append(f"{name}.{verb}: {said!r}")
    assert not bare
    assert asked > 1500


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        (lambda: mk.engines.NUTS(num_samples=100), "NUTS() has no argument 'num_samples'; it is draws= here"),
        (lambda: mk.engines.NUTS(tune=100), "it is warmup= here"),
        (lambda: mk.engines.Gibbs(tune=100), "it is burn_in= here"),
        (lambda: mk.engines.HMC(num_chains=2), "it is chains= here"),
        (lambda: mk.series.ParticleFilter(num_particles=10), "it is n_particles= here"),
        (lambda: mk.crf.ChainCRF(c1=0.1), "it is l1= here"),
        (lambda: mk.crf.ChainCRF(c2=0.1), "its inverse is C= here: C=1/c2"),
        (lambda: mk.series.DynamicFactor(k_factors=2), "it is n_factors= here"),
        (lambda: mk.topics.LDA(n_topics=2), "it is n_components= here"),
        (lambda: dist.Normal(mu=0, sigma=1), "Normal() has no argument 'mu'; it is loc= here"),
        (lambda: dist.Normal(0, sigma=1), "it is scale= here"),
        (lambda: dist.Gamma(alpha=1, beta=2), "it is concentration= here"),
        (lambda: dist.Binomial(n=3, p=0.2), "it is total_count= here"),
        (
            lambda: mk.graphs.d_separated(evidence=["a"]),
            "d_separated() has no argument 'evidence'; it is given= here",
        ),
        (lambda: mk.regression.PoissonRegression(alpha=1.0), "PoissonRegression() has no argument 'alpha'"),
    ],
)
def test_words_of_other_libraries_get_ours(call, ours):
    with pytest.raises(UnknownArgument) as said:
        call()
    assert ours in str(said.value)


def test_an_error_inside_a_function_and_a_missing_argument_stay_what_they_are():
    with pytest.raises(TypeError, match="missing") as said:
        mk.graphs.d_separated()
    assert not isinstance(said.value, UnknownArgument)
    with pytest.raises(TypeError) as said:
        dist.Normal(0, scale="wide")
    assert not isinstance(said.value, UnknownArgument)


def test_what_comes_through_a_door_is_the_same_wherever_it_is_looked_up():
    from markovia.graphs.separation import separation

    assert mk.graphs.d_separated is separation.d_separated
    assert pickle.loads(pickle.dumps(mk.graphs.d_separated)) is mk.graphs.d_separated
    assert pickle.loads(pickle.dumps(mk.engines.NUTS(draws=3))) == mk.engines.NUTS(draws=3)
    assert list(inspect.signature(mk.engines.NUTS).parameters)[:2] == ["seed", "time_limit"]


def test_every_public_module_lists_its_own_names_only():
    for door in [*doors(), mk.errors]:
        listed = dir(door)
        assert listed == sorted(set(listed)), door
        for name in listed:
            assert name == "__version__" or not name.startswith("_"), (door, name)
    assert {"Any", "Path", "Mapping"}.isdisjoint(n for door in [*doors(), mk.errors] for n in dir(door))


def test_several_names_by_place_are_told_to_go_in_a_list():
    with pytest.raises(
        UnknownArgument, match=r"twice.*go in a list: query\(\[first, second\], given=\.\.\.\)"
    ):
        mk.examples.asia().query("lung", "bronc", given={"smoke": "yes"})


def test_a_forecast_without_its_series_is_told_where_to_put_it():
    fitted = mk.ARIMA((1, 0, 0)).fit(np.sin(np.arange(30.0)))
    with pytest.raises(TypeError, match=r"up to now, which a fitted model does not keep: forecast\(y, 12\)"):
        fitted.forecast(12)
