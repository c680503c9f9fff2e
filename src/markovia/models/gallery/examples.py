"""Classic models, each a function that returns a fresh copy, with its numbers from the literature.

They are small enough to check by hand and famous enough to compare with a book: `sprinkler`, `student`, `asia`,
`cancer`, `earthquake`, `monty_hall`, `wet_grass`, `misconception` and `dishonest_casino`. The models of
worked examples (`three_chain`, `chain_crf`, `rain_chain` and others) are written down in
`markovia.models.gallery.textbook_examples`. `names()` lists all of them and `get()` builds one by name. `roll_call()` and
`rain_months()` are data sets: votes of a senate over time, and rainy days.

>>> from markovia.models.gallery import examples
>>> print(examples.get("monty-hall").query("car", given={"choice": 1, "opened": 3}))
car         p
1    0.333333
2    0.666667
3           0
"""

from collections.abc import Callable

from markovia.errors import InvalidArgument, did_you_mean
from markovia.factors.tables.factor import Factor
from markovia.models.gallery.rain_months import rain_months as rain_months
from markovia.models.gallery.roll_call import roll_call as roll_call
from markovia.models.gallery.textbook_examples import (
    chain_crf,
    cycle_with_tail,
    eight_nodes,
    pixel_grid,
    rain_chain,
    six_spins,
    three_chain,
    three_step_hmm,
)
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.models.temporal.unrolled import hidden_markov_model

Model = BayesianNetwork | MarkovNetwork

__all__ = [
    "asia",
    "cancer",
    "chain_crf",
    "cycle_with_tail",
    "dishonest_casino",
    "earthquake",
    "eight_nodes",
    "get",
    "misconception",
    "monty_hall",
    "names",
    "pixel_grid",
    "rain_chain",
    "six_spins",
    "sprinkler",
    "student",
    "three_chain",
    "three_step_hmm",
    "wet_grass",
]

_NO_YES = ["no", "yes"]
_YES_NO = ["yes", "no"]
_TRUE_FALSE = ["True", "False"]


def names() -> list[str]:
    """Return the names of all bundled models.

    Returns
    -------
    list of str
        In alphabetical order, with underscores.

    Examples
    --------
    >>> names()[:4]
    ['asia', 'cancer', 'chain_crf', 'cycle_with_tail']
    """
    return sorted(_BUILDERS)


def get(name: str) -> Model:
    """Build a bundled model by its name.

    Parameters
    ----------
    name
        One of `names()`; dashes count as underscores and capitals as small letters.

    Returns
    -------
    BayesianNetwork or MarkovNetwork
        A fresh model that nobody else holds.

    Raises
    ------
    InvalidArgument
        If there is no such model; the message has the nearest name.

    Examples
    --------
    >>> get("monty-hall").variables
    ['car', 'choice', 'opened']
    """
    builder = _BUILDERS.get(name.replace("-", "_").casefold()) if isinstance(name, str) else None
    if builder is None:
        raise InvalidArgument(
            f"no bundled model is called {name!r}{did_you_mean(name, names())}; there are {', '.join(names())}"
        )
    return builder()


def sprinkler() -> BayesianNetwork:
    """Return the lawn sprinkler network: clouds decide on sprinkler and rain, and both wet the grass.

    Grass that gets no water is dry for sure, so P(wet = yes) = 0.6471. The loop through `cloudy` makes
    loopy belief propagation wrong here.

    Source: Russell and Norvig, "Artificial Intelligence: A Modern Approach" (1995), section 15; with the same
    numbers in Murphy, "A brief introduction to graphical models and Bayesian networks" (1998).

    Examples
    --------
    >>> round(sprinkler().query("wet")["yes"], 4)
    0.6471
    """
    bn = BayesianNetwork(name="sprinkler")
    bn.add("cloudy", states=_NO_YES, p=[0.5, 0.5])
    bn.add("sprinkler", states=_NO_YES, parents=["cloudy"], p=[[0.5, 0.5], [0.9, 0.1]])
    bn.add("rain", states=_NO_YES, parents=["cloudy"], p=[[0.8, 0.2], [0.2, 0.8]])
    bn.add(
        "wet",
        states=_NO_YES,
        parents=["sprinkler", "rain"],
        p=[[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]],
    )
    return bn


def student() -> BayesianNetwork:
    """Return the student network: a course's difficulty and a student's intelligence behind grade and letter.

    Source: Koller and Friedman, "Probabilistic Graphical Models" (2009), figure 3.4.

    Examples
    --------
    >>> bn = student()
    >>> round(bn.query("letter")["strong"], 3), round(bn.query("letter", given={"intelligence": "low"})["strong"], 3)
    (0.502, 0.389)
    """
    bn = BayesianNetwork(name="student")
    bn.add("difficulty", states=["easy", "hard"], p=[0.6, 0.4])
    bn.add("intelligence", states=["low", "high"], p=[0.7, 0.3])
    bn.add(
        "grade",
        states=["A", "B", "C"],
        parents=["intelligence", "difficulty"],
        p={
            ("low", "easy"): [0.3, 0.4, 0.3],
            ("low", "hard"): [0.05, 0.25, 0.7],
            ("high", "easy"): [0.9, 0.08, 0.02],
            ("high", "hard"): [0.5, 0.3, 0.2],
        },
    )
    bn.add("sat", states=["low", "high"], parents=["intelligence"], p=[[0.95, 0.05], [0.2, 0.8]])
    bn.add("letter", states=["weak", "strong"], parents=["grade"], p=[[0.1, 0.9], [0.4, 0.6], [0.99, 0.01]])
    return bn


def asia() -> BayesianNetwork:
    """Return the chest-clinic network: a visit to Asia, smoking, three diseases, an x-ray and dyspnoea.

    Names, states and the order of parents are those of the file that circulates as `asia.bif`.

    Source: Lauritzen and Spiegelhalter, "Local computations with probabilities on graphical structures and
    their application to expert systems", Journal of the Royal Statistical Society B 50 (1988).

    Examples
    --------
    >>> round(asia().query("lung", given={"xray": "yes", "dysp": "yes"})["yes"], 4)
    0.6213
    """
    bn = BayesianNetwork(name="asia")
    bn.add("asia", states=_YES_NO, p=[0.01, 0.99])
    bn.add("tub", states=_YES_NO, parents=["asia"], p=[[0.05, 0.95], [0.01, 0.99]])
    bn.add("smoke", states=_YES_NO, p=[0.5, 0.5])
    bn.add("lung", states=_YES_NO, parents=["smoke"], p=[[0.1, 0.9], [0.01, 0.99]])
    bn.add("bronc", states=_YES_NO, parents=["smoke"], p=[[0.6, 0.4], [0.3, 0.7]])
    bn.add(
        "either",
        lambda lung, tub: "yes" if "yes" in (lung, tub) else "no",
        states=_YES_NO,
        parents=["lung", "tub"],
    )
    bn.add("xray", states=_YES_NO, parents=["either"], p=[[0.98, 0.02], [0.05, 0.95]])
    bn.add(
        "dysp",
        states=_YES_NO,
        parents=["bronc", "either"],
        p={
            ("yes", "yes"): [0.9, 0.1],
            ("yes", "no"): [0.8, 0.2],
            ("no", "yes"): [0.7, 0.3],
            ("no", "no"): [0.1, 0.9],
        },
    )
    return bn


def cancer() -> BayesianNetwork:
    """Return the lung-cancer network: pollution and smoking, an x-ray and dyspnoea.

    Source: Korb and Nicholson, "Bayesian Artificial Intelligence" (2004), section 2.2.

    Examples
    --------
    >>> round(cancer().query("Cancer", given={"Smoker": "True"})["True"], 3)
    0.032
    """
    bn = BayesianNetwork(name="cancer")
    bn.add("Pollution", states=["low", "high"], p=[0.9, 0.1])
    bn.add("Smoker", states=_TRUE_FALSE, p=[0.3, 0.7])
    bn.add(
        "Cancer",
        states=_TRUE_FALSE,
        parents=["Pollution", "Smoker"],
        p={
            ("low", "True"): [0.03, 0.97],
            ("low", "False"): [0.001, 0.999],
            ("high", "True"): [0.05, 0.95],
            ("high", "False"): [0.02, 0.98],
        },
    )
    bn.add("Xray", states=["positive", "negative"], parents=["Cancer"], p=[[0.9, 0.1], [0.2, 0.8]])
    bn.add("Dyspnoea", states=_TRUE_FALSE, parents=["Cancer"], p=[[0.65, 0.35], [0.3, 0.7]])
    return bn


def earthquake() -> BayesianNetwork:
    """Return the burglar-alarm network: burglary or earthquake, an alarm, and two neighbours who call.

    Source: Korb and Nicholson, "Bayesian Artificial Intelligence" (2004), section 2.5, after Pearl (1988). The
    priors are ten times those of Russell and Norvig's version.

    Examples
    --------
    >>> round(earthquake().query("Burglary", given={"JohnCalls": "True", "MaryCalls": "True"})["True"], 3)
    0.557
    """
    bn = BayesianNetwork(name="earthquake")
    bn.add("Burglary", states=_TRUE_FALSE, p=[0.01, 0.99])
    bn.add("Earthquake", states=_TRUE_FALSE, p=[0.02, 0.98])
    bn.add(
        "Alarm",
        states=_TRUE_FALSE,
        parents=["Burglary", "Earthquake"],
        p={
            ("True", "True"): [0.95, 0.05],
            ("True", "False"): [0.94, 0.06],
            ("False", "True"): [0.29, 0.71],
            ("False", "False"): [0.001, 0.999],
        },
    )
    bn.add("JohnCalls", states=_TRUE_FALSE, parents=["Alarm"], p=[[0.9, 0.1], [0.05, 0.95]])
    bn.add("MaryCalls", states=_TRUE_FALSE, parents=["Alarm"], p=[[0.7, 0.3], [0.01, 0.99]])
    return bn


def monty_hall() -> BayesianNetwork:
    """Return the three-doors game: the host opens a door with no car behind it that the guest did not choose.

    Source: Selvin, "A problem in probability", The American Statistician 29 (1975).

    Examples
    --------
    >>> round(monty_hall().query("car", given={"choice": 1, "opened": 3})[2], 4)
    0.6667
    """
    doors = [1, 2, 3]

    def opened(car: int, choice: int) -> list[float]:
        free = [door not in (car, choice) for door in doors]
        return [float(f) / sum(free) for f in free]

    bn = BayesianNetwork(name="monty_hall")
    bn.add("car", states=doors, p="uniform")
    bn.add("choice", states=doors, p="uniform")
    bn.add("opened", opened, states=doors, parents=["car", "choice"])
    return bn


def wet_grass() -> BayesianNetwork:
    """Return the three-node sprinkler network: rain keeps the sprinkler off, and either wets the grass.

    P(grass = yes | rain = yes) = 0.8019 and P(rain = yes | grass = yes) = 0.3577.

    Source: the example of Wikipedia's article "Bayesian network", after Pearl (1988).

    Examples
    --------
    >>> round(wet_grass().query("rain", given={"grass": "yes"})["yes"], 4)
    0.3577
    """
    bn = BayesianNetwork(name="wet_grass")
    bn.add("rain", states=_NO_YES, p=[0.8, 0.2])
    bn.add("sprinkler", states=_NO_YES, parents=["rain"], p=[[0.6, 0.4], [0.99, 0.01]])
    bn.add(
        "grass",
        states=_NO_YES,
        parents=["sprinkler", "rain"],
        p=[[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]],
    )
    return bn


def misconception() -> MarkovNetwork:
    """Return the four students who study in pairs and may share a misconception: a cycle A, B, C, D.

    A and C are independent given B and D, and B and D given A and C; no Bayesian network says just that.

    Source: Koller and Friedman, "Probabilistic Graphical Models" (2009), figure 4.1.

    Examples
    --------
    >>> mn = misconception()
    >>> mn.independent("A", "C", given=["B", "D"]), mn.map().to_dict()
    (True, {'A': 0, 'B': 1, 'C': 1, 'D': 0})
    """
    return MarkovNetwork(
        {"A": 2, "B": 2, "C": 2, "D": 2},
        [
            Factor(["A", "B"], [[30, 5], [1, 10]]),
            Factor(["B", "C"], [[100, 1], [1, 100]]),
            Factor(["C", "D"], [[1, 100], [100, 1]]),
            Factor(["D", "A"], [[100, 1], [1, 100]]),
        ],
        name="misconception",
    )


def dishonest_casino(T: int = 10) -> BayesianNetwork:  # noqa: N803
    """Return the casino that now and then swaps in a loaded die: a hidden Markov model over T rolls.

    The hidden `die1 ... dieT` are "fair" or "loaded" and stay what they are with probability 0.95;
    `roll1 ... rollT` are 1 ... 6, uniform for the fair die, and six half of the time for the loaded one.

    Source: Durbin, Eddy, Krogh and Mitchison, "Biological Sequence Analysis" (1998), section 3.2, with the
    symmetric switching of Xing's lecture notes on hidden Markov models.

    Parameters
    ----------
    T
        The number of rolls.

    Examples
    --------
    >>> bn = dishonest_casino(T=3)
    >>> round(bn.query("die2", given={"roll1": 6, "roll2": 6, "roll3": 6})["loaded"], 4)
    0.9542
    """
    return hidden_markov_model(
        initial=[0.5, 0.5],
        transition=[[0.95, 0.05], [0.05, 0.95]],
        emission=[[1 / 6] * 6, [0.1] * 5 + [0.5]],
        T=T,
        states=["fair", "loaded"],
        symbols=[1, 2, 3, 4, 5, 6],
        hidden="die",
        observed="roll",
        first=1,
        name="dishonest_casino",
    )


_BUILDERS: dict[str, Callable[[], Model]] = {
    builder.__name__: builder
    for builder in (
        asia,
        cancer,
        chain_crf,
        cycle_with_tail,
        dishonest_casino,
        earthquake,
        eight_nodes,
        misconception,
        monty_hall,
        pixel_grid,
        rain_chain,
        six_spins,
        sprinkler,
        student,
        three_chain,
        three_step_hmm,
        wet_grass,
    )
}
