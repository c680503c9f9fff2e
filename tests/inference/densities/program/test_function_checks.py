"""Bad input in models of function nodes: one sentence each, and before anything is compiled."""

import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import CycleError, IncompleteModel, InvalidArgument, InvalidEvidence, UnknownVariable
from markovia.inference.densities.program.program import program_of


def program(model, given):
    return program_of(model._problem(given))


def plain(function, plate="row", **more):
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1), plate="row")
    m.add("g", dist.Normal(0, 1), plate={"group": 3})
    m.add("y", function, plate=plate, **more)
    return m


Y = np.array([0.5, 1.0, -1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: dist.Normal(x - x.mean(), 1),
        lambda x: dist.Normal(0, abs(x).max()),
        lambda x: dist.Normal(x[::-1], 1),
        lambda x: x.cumsum(),
    ],
)
def test_a_function_that_mixes_rows_is_refused(function):
    with pytest.raises(InvalidArgument, match="'y' mixes elements of plate 'row'"):
        program(plain(function), {"row": 4})


def test_a_function_of_rows_with_a_matrix_of_inputs_is_fine():
    m = mk.BayesianNetwork()
    m.add("b", dist.Normal(0, 1).expand([2]))
    m.add("y", lambda b, X: dist.Normal(X @ b, 1), plate="row")
    assert program(m, {"y": Y, "X": np.arange(8.0).reshape(4, 2)}).density.size == 2


@pytest.mark.parametrize(("index", "wrong"), [([0, 1, 2, 3], 3), ([0, -1, 1, 1], -1)])
def test_an_index_out_of_range_is_named(index, wrong):
    m = plain(lambda g, i: dist.Normal(g[i], 1))
    with pytest.raises(InvalidArgument, match=f"takes element {wrong} of 'g', which has 3"):
        program(m, {"y": Y, "i": np.array(index)})


def test_an_argument_that_means_nothing_gets_the_nearest_name():
    m = plain(lambda x, sgima: dist.Normal(x, sgima))
    with pytest.raises(UnknownVariable, match="sgima"):
        program(m, {"y": Y})
    with pytest.raises(UnknownVariable, match="did you mean 'sgima'"):
        m._problem({"y": Y, "sgimaa": 1.0})


def test_shapes_that_do_not_fit_name_node_plate_and_both():
    with pytest.raises(InvalidArgument, match=r"'y' has shape \(3,\), but its plates are row \(4\)"):
        program(plain(lambda g: dist.Normal(g, 1)), {"y": Y})
    with pytest.raises(InvalidEvidence, match="plate 'row' has two lengths: 4 by 'x', 3 by 'y'"):
        program(plain(lambda x: dist.Normal(x, 1)), {"y": Y[:3], "x": Y})
    with pytest.raises(InvalidEvidence, match=r"'y' has shape \(4,\).*what was given for it has \(4, 2\)"):
        program(plain(lambda x: dist.Normal(x, 1)), {"y": np.zeros((4, 2))})
    with pytest.raises(InvalidEvidence, match="on plates row, but the array given for it has shape"):
        program(plain(lambda x: dist.Normal(x, 1)), {"y": np.float64(3.0)})


def test_a_vector_that_fits_two_plates_has_to_be_declared():
    m = mk.BayesianNetwork()
    m.add("y", lambda v: dist.Normal(v, 1), plate={"a": 3, "b": 3})
    with pytest.raises(InvalidArgument, match="as many as plates 'a' and 'b'"):
        program(m, {"v": np.zeros(3)})
    m.add("v", mk.Input(), plate="a")
    assert program(m, {"v": np.zeros(3)}).layout.sites["y"].shape == (3, 3)


def test_missing_and_impossible_values_are_named():
    m = plain(lambda x: dist.Poisson(np.e**x))
    with pytest.raises(InvalidEvidence, match=r"'y' cannot be -1 at \(2,\)"):
        program(m, {"y": np.array([0, 1, -1, 3])})
    with pytest.raises(InvalidEvidence, match=r"'y' has 1 missing entries \(at 1\)"):
        program(plain(lambda x: dist.Normal(x, 1)), {"y": np.array([0.0, np.nan, 1.0, 2.0])})


def test_plates_without_length_or_of_length_zero():
    with pytest.raises(IncompleteModel, match="nothing says how long plate 'row' is"):
        program(plain(lambda x: dist.Normal(x, 1)), {})
    with pytest.raises(InvalidEvidence, match="plate 'row' has length 0"):
        program(plain(lambda x: dist.Normal(x, 1)), {"y": np.zeros(0)})


def test_an_input_that_was_not_given_is_named():
    m = plain(lambda x, s: dist.Normal(x, s))
    m.add("s", mk.Input(), plate="row")
    with pytest.raises(IncompleteModel, match="'s' is an input and was not given"):
        program(m, {"y": Y})


def test_what_add_refuses():
    m = mk.BayesianNetwork()
    with pytest.raises(InvalidArgument, match=r"takes \*args, which names no parents"):
        m.add("y", lambda *args: dist.Normal(0, 1), plate="row")
    with pytest.raises(
        InvalidArgument, match="a plate of 'y' is named by an identifier such as 'row', not 'class'"
    ):
        m.add("y", dist.Normal(0, 1), plate="class")
    with pytest.raises(InvalidArgument, match="needs first="):
        m.add("y", lambda b: dist.Normal(b, 1), plate="t", previous={"b": "y"})
    with pytest.raises(InvalidArgument, match="cannot depend on itself"):
        m.add("y", lambda y: dist.Normal(y, 1), plate="t")
    assert m.variables == []
    m.add("a", lambda b: dist.Normal(b, 1))
    with pytest.raises(CycleError):
        m.add("b", lambda a: dist.Normal(a, 1))
    assert m.variables == ["a"]


def test_branching_on_a_number_is_explained():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1))
    m.add("y", lambda x: dist.Normal(1.0 if x > 0 else 0.0, 1), plate="row")
    with pytest.raises(InvalidArgument, match="'y' branches on"):
        program(m, {"y": Y})


def test_counts_without_an_upper_bound_cannot_be_summed_out():
    m = mk.BayesianNetwork()
    m.add("n", dist.Poisson(3.0))
    m.add("y", lambda n: dist.Normal(n, 1.0))
    with pytest.raises(
        mk.errors.UnsupportedModel, match="'n' is discrete, not observed, and has no finite list"
    ):
        program(m, {"y": 1.0})


def test_crossed_discrete_plates_are_refused_with_their_cost():
    m = mk.BayesianNetwork()
    m.add("s", dist.HalfNormal(1))
    m.add("a", dist.Bernoulli(0.5), plate={"i": 5})
    m.add("b", dist.Bernoulli(0.5), plate={"j": 4})
    m.add("y", lambda a, b, s: dist.Normal(a * b, s), plate=["i", "j"])
    found = program(m, {"y": np.zeros((5, 4))})
    import jax

    with pytest.raises(mk.errors.TooLarge, match=r"coupled across plates.*512 configurations"):
        jax.eval_shape(found.density.log_prob, np.zeros(1), found.density.data)


def test_a_loop_variable_is_read_when_the_node_is_added():
    m = mk.BayesianNetwork()
    for k in range(2):
        m.add(f"x{k}", lambda s: dist.Normal(float(k), s))  # noqa: B023
    m.add("s", dist.HalfNormal(1))
    assert m.parents("x0") == ["s"]
    found = program(m, {})
    assert [found.nodes.call(found.layout.sites[f"x{k}"], {"s": 1.0}).loc for k in range(2)] == [0.0, 1.0]


# -- shapes that fit by accident -----------------------------------------------------------------------------------


def grouped(function, rows=4, **more):
    m = mk.BayesianNetwork()
    m.add("theta", dist.Normal(0, 1), plate={"group": 4})
    m.add("x", mk.Input(), plate={"row": rows})
    m.add("y", function, plate="row")
    return program_of(m._problem({"x": np.arange(rows) + 0.5, **more}))


@pytest.mark.parametrize(
    "function",
    [lambda theta: dist.Normal(theta, 1.0), lambda theta, x: dist.Normal(0.0, jnp.exp(2 * theta) + x)],
    ids=["alone", "with a covariate"],
)
def test_a_parent_that_fits_only_because_two_plates_are_equally_long_is_warned_of(function):
    with pytest.warns(
        mk.errors.AccidentalShapeWarning, match=r"'theta', on plate 'group', acts on 'y' .* both are 4 long"
    ):
        grouped(function)


def test_a_vector_that_takes_the_place_of_a_plate_is_warned_of():
    m = mk.BayesianNetwork()
    m.add("w", dist.Dirichlet(np.ones(3)))
    m.add("y", lambda w: dist.Normal(w, 1.0), plate={"row": 3})
    with pytest.warns(mk.errors.AccidentalShapeWarning, match=r"'w', on no plate, acts on 'y'"):
        program_of(m._problem({}))


@pytest.mark.filterwarnings("error::markovia.errors.AccidentalShapeWarning")
def test_indices_products_sums_and_constants_of_equal_length_are_no_accident():
    grouped(lambda theta, g: dist.Normal(theta[g], 1.0), g=np.arange(4))
    grouped(lambda theta, X: dist.Normal(X @ theta, 1.0), X=np.random.default_rng(0).normal(size=(4, 4)))
    grouped(lambda theta, x: dist.Normal(theta.sum() * x, 1.0))
    grouped(lambda theta, sigma: dist.Normal(theta[0], sigma), sigma=np.arange(1.0, 5.0))
    grouped(lambda theta, x, g: dist.Normal(theta[g] + x, 1.0), rows=5, g=np.array([0, 1, 2, 3, 0]))
    m = mk.BayesianNetwork()
    m.add("a", dist.Normal(0, 1), plate={"student": 3})
    m.add("b", dist.Normal(0, 1), plate={"item": 3})
    m.add("y", lambda a, b: dist.Normal(a - b, 1.0), plate=["student", "item"])
    program_of(m._problem({}))
