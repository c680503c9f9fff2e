"""Small causal stories, each a model to ask: what one sees, what one would do, and why they differ.

Every function returns a fresh `BayesianNetwork` or `StructuralModel`; `model.graph` is its graph.

>>> import markovia as mk
>>> stones = mk.causal.examples.simpson()
>>> round(stones.query("recovered", given={"treatment": "A"})["yes"], 4)
0.78
>>> round(stones.do(treatment="A").query("recovered")["yes"], 4)
0.8325
"""

import numpy as np

from markovia.causal.counterfactuals.noises import GaussianNoise
from markovia.causal.counterfactuals.structural_model import StructuralModel
from markovia.models.gallery import examples as gallery
from markovia.models.graphical.bayesian_network import BayesianNetwork

_NO_YES = ["no", "yes"]

__all__ = [
    "berkson", "bus", "cholesterol", "college", "front_door", "ice_cream", "instrument", "m_bias", "monty_hall", "simpson",
    "survivorship", "yellow_fingers",
]  # fmt: skip


def simpson() -> BayesianNetwork:
    """Return kidney stones: treatment A is better for small and for large stones, and looks worse overall.

    Doctors gave A to the large stones. Seeing: 78.0% recover under A, 82.6% under B. Doing: 83.3% would, against 77.9%.
    The counts are those of Charig and others (1986): 81/87 and 192/263 under A, 234/270 and 55/80 under B.
    """
    bn = BayesianNetwork(name="simpson")
    bn.add("stone", states=["small", "large"], p=[357 / 700, 343 / 700])
    bn.add(
        "treatment", states=["A", "B"], parents=["stone"], p=[[87 / 357, 270 / 357], [263 / 343, 80 / 343]]
    )
    rates = np.array([[81 / 87, 234 / 270], [192 / 263, 55 / 80]])
    bn.add("recovered", states=_NO_YES, parents=["stone", "treatment"], p=np.stack([1 - rates, rates], -1))
    return bn


def berkson() -> BayesianNetwork:
    """Return talent and looks, independent in the world, and fame that takes one of them.

    Among the famous they are opposed: who is plain must be talented. Conditioning on a common effect makes its causes
    dependent.
    """
    bn = BayesianNetwork(name="berkson")
    bn.add("talent", states=_NO_YES, p=[0.9, 0.1])
    bn.add("looks", states=_NO_YES, p=[0.9, 0.1])
    bn.add(
        "famous",
        states=_NO_YES,
        parents=["talent", "looks"],
        p=[[[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0.2, 0.8]]],
    )
    return bn


def m_bias() -> BayesianNetwork:
    """Return a treatment whose effect is plain to see until one adjusts for a variable measured before it.

    `before` is an effect of two hidden causes, one of the treatment and one of the outcome: not every variable from before
    the treatment is a confounder, and adjusting for this one opens the path it blocks.
    """
    bn = BayesianNetwork(name="m-bias")
    bn.add("u", p=[0.5, 0.5])
    bn.add("v", p=[0.5, 0.5])
    bn.add("before", parents=["u", "v"], p=[[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]])
    bn.add("treatment", parents=["u"], p=[[0.8, 0.2], [0.2, 0.8]])
    bn.add("outcome", parents=["treatment", "v"], p=[[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])
    return bn


def front_door() -> BayesianNetwork:
    """Return smoking, tar and cancer with a hidden cause `u` of the first and the last.

    Nothing observed blocks the back door, yet tar carries the whole effect and identifies it: cancer is .29 and .61 likely
    without and with smoking, where seeing gives .20 and .70.
    """
    bn = BayesianNetwork(name="front-door")
    bn.add("u", p=[0.5, 0.5])
    bn.add("smoking", parents=["u"], p=[[0.8, 0.2], [0.2, 0.8]])
    bn.add("tar", parents=["smoking"], p=[[0.9, 0.1], [0.1, 0.9]])
    bn.add("cancer", parents=["tar", "u"], p=[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
    return bn


def instrument() -> StructuralModel:
    """Return a price that a tax moves, and demand, both moved by a hidden boom.

    A regression of demand on price gives -0.4; a unit of price costs 2 units of demand. The tax moves demand only through
    the price, and the ratio of its two effects is the truth: `cov(tax, demand) / cov(tax, price) = -2`.
    """
    m = StructuralModel()
    m.add("tax", GaussianNoise())
    m.add("boom", GaussianNoise())
    m.add("price", lambda tax, boom, e: tax + 2 * boom + e, noise=GaussianNoise(0, 1))
    m.add("demand", lambda price, boom, e: 10 - 2 * price + 4.8 * boom + e, noise=GaussianNoise(0, 1))
    return m


def bus() -> BayesianNetwork:
    """Return a commuter who leaves home as the bus comes, since both keep to the timetable.

    They are as good as certain together, yet stopping the bus would not keep anybody at home: a common cause, no effect.
    """
    bn = BayesianNetwork(name="bus")
    bn.add("timetable", states=["early", "late"], p=[0.5, 0.5])
    bn.add("bus", states=["early", "late"], parents=["timetable"], p=[[0.9, 0.1], [0.1, 0.9]])
    bn.add("leaves", states=["early", "late"], parents=["timetable"], p=[[0.95, 0.05], [0.05, 0.95]])
    return bn


def ice_cream() -> BayesianNetwork:
    """Return weather and ice cream: sales tell of the weather and do not make it."""
    bn = BayesianNetwork(name="ice cream")
    bn.add("weather", states=["cold", "hot"], p=[0.6, 0.4])
    bn.add("ice_cream", states=["little", "much"], parents=["weather"], p=[[0.8, 0.2], [0.1, 0.9]])
    return bn


def yellow_fingers() -> StructuralModel:
    """Return smoking, which yellows fingers and makes cough, for all three rungs of the ladder.

    Seeing yellow fingers one expects a cough; painting them yellow makes nobody cough; and George, whose fingers are clean
    and who coughs, would cough all the same had they been yellow.
    """
    m = StructuralModel()
    m.add("smoking", states=_NO_YES, p=[0.7, 0.3])
    m.add(
        "fingers",
        lambda smoking, e: np.where((smoking == "yes") != (e == 1), "yellow", "clean"),
        noise=[0.9, 0.1],
        states=["clean", "yellow"],
    )
    m.add(
        "cough",
        # a cough of its own (1), none whatever one does (2), or one from smoking (0)
        lambda smoking, e: np.where((e == 1) | ((smoking == "yes") & (e == 0)), "yes", "no"),
        noise=[0.7, 0.1, 0.2],
        states=_NO_YES,
    )
    return m


def monty_hall() -> BayesianNetwork:
    """Return the game of three doors: the host's door is an effect of the guest's choice and of where the car is.

    Seeing it opened makes the two causes dependent, so that who switches wins in 2 of 3 games.
    """
    return gallery.monty_hall()


def college() -> BayesianNetwork:
    """Return gender and ability, independent among all, and a college that admits men more easily.

    Among students women are the abler ones: the sample was selected by a common effect.
    """
    bn = BayesianNetwork(name="college")
    bn.add("gender", states=["woman", "man"], p=[0.5, 0.5])
    bn.add("ability", states=["average", "high"], p=[0.7, 0.3])
    bn.add(
        "admitted",
        states=_NO_YES,
        parents=["gender", "ability"],
        p=[[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]],
    )
    return bn


def survivorship() -> BayesianNetwork:
    """Return bombers that are hit anywhere alike, and come home less often when it was the engine.

    Planes that came home have few holes in the engine. Armour belongs where the survivors have none: a plane that was lost
    was most probably hit there.
    """
    bn = BayesianNetwork(name="survivorship")
    bn.add("hit", states=["none", "engine", "fuselage", "wings"], p=[0.4, 0.2, 0.2, 0.2])
    bn.add("home", states=_NO_YES, parents=["hit"], p=[[0.05, 0.95], [0.6, 0.4], [0.1, 0.9], [0.1, 0.9]])
    return bn


def cholesterol() -> StructuralModel:
    """Return age, exercise and cholesterol: older people exercise more and have more cholesterol.

    Overall, cholesterol rises with exercise (slope +0.6); at any age exercise lowers it (slope -1).
    """
    m = StructuralModel()
    m.add("age", GaussianNoise(50, 10))
    m.add("exercise", lambda age, e: 0.1 * age + e, noise=GaussianNoise(0, 1))
    m.add("cholesterol", lambda age, exercise, e: 100 + 0.32 * age - exercise + e, noise=GaussianNoise(0, 5))
    return m
