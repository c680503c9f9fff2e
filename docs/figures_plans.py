"""Pictures of the pages on plans over time, beliefs and control as inference; drawn while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

import markovia as mk

FIRST, SECOND, THIRD = "#1f6f8b", "#d1603d", "#8a9a5b"
MOVES = ("run", "service", "replace")


def machine() -> mk.DynamicBayesianNetwork:
    """Return a machine that wears, beside a demand that goes its own way."""
    wear = {
        "run": {"good": [0.85, 0.15, 0], "worn": [0, 0.7, 0.3], "broken": [0, 0, 1]},
        "service": {"good": [1, 0, 0], "worn": [0.9, 0.1, 0], "broken": [0, 0, 1]},
        "replace": {"good": [1, 0, 0], "worn": [1, 0, 0], "broken": [1, 0, 0]},
    }
    earned = {"good": [4, 10], "worn": [3, 8], "broken": [0, 0]}
    states = list(earned)
    p = mk.DynamicBayesianNetwork()
    table = [[wear[move][state] for move in MOVES] for state in states]
    p.add("machine", table, states=states, parents=["machine@-1", "do@-1"], initial=[1, 0, 0])
    p.add(
        "demand", [[0.8, 0.2], [0.3, 0.7]], states=["low", "high"], parents=["demand@-1"], initial=[0.5, 0.5]
    )
    p.add("do", mk.Decision(list(MOVES)), parents=["machine", "demand"])
    income = [[[earned[s][d], 0, 0] for d in range(2)] for s in states]
    p.add("income", mk.Utility(income), parents=["machine", "demand", "do"])
    p.add("cost", mk.Utility([0, -3, -12]), parents=["do"])
    return p


def plan_by_step() -> Any:
    """Show what to do with the machine in each of twenty steps, and how a soft plan takes its actions."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.4), layout="constrained")
    p, steps = machine(), 20
    plan = p.decide(horizon=steps)
    rows = [(s, d) for s in ("good", "worn", "broken") for d in ("low", "high")]
    sights = [{"machine": s, "demand": d} for s, d in rows]
    taken = [[MOVES.index(str(plan.act(seen, step=t))) for t in range(steps)] for seen in sights]
    left.imshow(taken, aspect="auto", cmap=ListedColormap([FIRST, SECOND, THIRD]), vmin=0, vmax=2)
    left.set_yticks(range(len(rows)), [f"{s}, {d} demand" for s, d in rows])
    left.set(xlabel="step of 20", title="the best move", xticks=range(0, steps, 5))
    for colour, move in zip((FIRST, SECOND, THIRD), MOVES, strict=True):
        left.plot([], [], "s", color=colour, label=move)
    left.legend(loc="upper center", bbox_to_anchor=(0.4, -0.22), ncols=3, frameon=False)
    heat = np.geomspace(0.1, 30, 40)
    soft = [p.decide(discount=0.95, temperature=t).row({"machine": "worn", "demand": "high"}) for t in heat]
    for colour, move in zip((FIRST, SECOND, THIRD), MOVES, strict=True):
        right.plot(heat, [row.get(move, 0.0) for row in soft], color=colour, label=move)
    right.set(xscale="log", xlabel="temperature", ylabel="probability", title="worn, high demand: soft plans")
    right.legend(frameon=False)
    return figure


SIDE = 12


def swamp() -> tuple[mk.MDP, np.ndarray]:
    """Return a grid to cross, and which of its squares are a swamp."""
    places = np.arange(SIDE * SIDE)
    x, y = places % SIDE, places // SIDE
    tables = []
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        table = np.zeros((len(places), len(places)))
        for p, (ex, ey) in ((0.85, (dx, dy)), (0.075, (dy, dx)), (0.075, (-dy, -dx))):
            to = np.clip(x + ex, 0, SIDE - 1) + SIDE * np.clip(y + ey, 0, SIDE - 1)
            np.add.at(table, (places, to), p)
        tables.append(table)
    wet = (np.abs(x - 5.5) < 2) & (y < 9)
    return mk.MDP(tables, -np.ones(len(places)), initial=0, terminal=[SIDE - 1]), wet


def limited_visits() -> Any:
    """Show how often each square of a grid is visited under the best plan, without and with a limit on a swamp."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.9), layout="constrained")
    grid, wet = swamp()
    for ax, most in zip(axes, (None, 1.0), strict=True):
        limits = {"swamp": mk.control.UtilityLimit(wet.astype(float), most=99.0 if most is None else most)}
        plan = grid.decide(discount=0.98, limits=limits)
        visits = plan.info.details.visits.sum(axis=1)
        visits[SIDE - 1] = np.nan
        shown = ax.imshow(
            np.ma.masked_invalid(visits.reshape(SIDE, SIDE)),
            cmap="Blues",
            origin="lower",
            vmin=0,
            vmax=1.6,
        )
        ax.add_patch(Rectangle((3.5, -0.5), 4, 9, fill=False, edgecolor=SECOND, linewidth=1.5))
        ax.text(0, 0, "start", ha="center", va="center", fontsize=7, color="white")
        ax.text(SIDE - 1, 0, "home", ha="center", va="center", fontsize=7)
        wetted = float(plan.info.details.utilities["swamp"])
        limit = "no limit" if most is None else "at most 1 there"
        ax.set(
            xticks=[], yticks=[], title=f"{limit}: {wetted:.1f} steps in the swamp, value {plan.value:.1f}"
        )
        ax.title.set_fontsize(10)
    figure.colorbar(shown, ax=axes, label="visits, discounted", shrink=0.9)
    return figure


def tiger() -> mk.control.POMDP:
    """Return the tiger behind one of two doors."""
    door = np.full((2, 2), 0.5)
    return mk.control.POMDP(
        [np.eye(2), door, door], [[[0.85, 0.15], [0.15, 0.85]], door, door], [[-1, -100, 10], [-1, 10, -100]],
        states=["left", "right"], actions=["listen", "open left", "open right"], observations=["left", "right"],
        discount=0.95,
    )  # fmt: skip


def tiger_vectors() -> Any:
    """Show the vectors of the plan for the tiger and what it does where, beside an agent's belief."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.6), layout="constrained")
    plan = tiger().decide()
    belief = np.linspace(0, 1, 401)
    worth = np.column_stack([belief, 1 - belief]) @ plan.vectors.T
    colours = {0: FIRST, 1: SECOND, 2: THIRD}
    names = {0: "listen", 1: "open left", 2: "open right"}
    for vector, action in zip(worth.T, plan.actions.tolist(), strict=True):
        left.plot(belief, vector, color=colours[action], linewidth=0.8, alpha=0.6)
    best, action = worth.max(axis=1), plan.actions[worth.argmax(axis=1)]
    for a, name in names.items():
        left.plot(belief, np.where(action == a, best, np.nan), color=colours[a], linewidth=3, label=name)
    left.set(
        ylim=(15, 30),
        xlabel="probability that the tiger is left",
        ylabel="worth",
        title="vectors, and the best",
    )
    left.legend(frameon=False, loc="upper center")
    agent, rng, path, done, at = plan.stream(), np.random.default_rng(4), [0.5], [], 0
    for _ in range(16):
        act = str(agent.act())
        done.append(act)
        if act != "listen":
            at = int(rng.integers(2))
        hears_it = rng.random() < (0.85 if act == "listen" else 0.5)
        agent.update(heard=("left", "right")[at if hears_it else 1 - at])
        path.append(float(agent.belief[0]))
    right.plot(path, color="0.6", linewidth=1)
    for a, name in names.items():
        when = [t for t, act in enumerate(done) if act == name]
        right.plot(when, [path[t] for t in when], "o", color=colours[a], label=name)
    right.set(
        xlabel="step",
        ylabel="probability of left",
        title="an agent's belief and what it does",
        ylim=(-0.05, 1.05),
    )
    right.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def swing_up() -> Any:
    """Show a pendulum swung up with a weak motor and a gust: as planned, with gains, and planned again at each step."""
    import jax.numpy as jnp

    def swing(x: Any, u: Any) -> Any:
        speed = x[1] + 0.1 * (9.8 * jnp.sin(x[0]) + u[0])
        return jnp.stack([x[0] + 0.1 * speed, speed])

    def reward(x: Any, u: Any) -> Any:
        return -0.01 * u @ u

    def last(x: Any) -> Any:
        return -20 * x[0] ** 2 - 5 * x[1] ** 2

    limits, steps, gust = (-3.0, 3.0), 50, 15
    path = mk.control.plan_path(swing, reward, [3.0, 0.0], steps, final=last, limits=limits)

    def again(x: np.ndarray, t: int) -> Any:
        if t <= gust:
            return path.act(x, t)
        if not after:
            rest = path.controls[t:]
            after.append(
                mk.control.plan_path(swing, reward, x, steps - t, final=last, controls=rest, limits=limits)
            )
        return after[0].act(x, t - gust - 1)

    after: list[mk.control.ControlledPath] = []
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.6), layout="constrained")
    rules = (
        ("controls as planned", SECOND, lambda x, t: path.controls[t]),
        ("with the gains of the path", THIRD, path.act),
        ("planned again after the gust", FIRST, again),
    )
    for name, colour, act in rules:
        x, angles, controls = np.array([3.0, 0.0]), [3.0], []
        for t in range(steps):
            controls.append(act(x, t))
            x = np.asarray(swing(x, controls[-1])) + np.array([0.0, 0.5 if t == gust else 0.0])
            angles.append(float(x[0]))
        left.plot(np.arange(steps + 1) / 10, angles, color=colour, label=name)
        right.step(np.arange(steps) / 10, np.ravel(controls), color=colour, where="post", linewidth=1.2)
    left.axhline(0, color="0.7", linewidth=0.8)
    for ax in (left, right):
        ax.axvline(gust / 10, color="0.7", linestyle=":")
    left.set(xlabel="seconds", ylabel="angle (up is 0)", title="a weak motor has to swing first")
    left.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.35))
    right.set(xlabel="seconds", ylabel="control", title="controls, from -3 to 3")
    return figure


def fork() -> mk.MDP:
    """Return the way home across the ice or round the lake."""
    ice, detour = [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    return mk.MDP(
        [ice, detour], [[0, -1], [0, 0], [-10, -10]], states=["fork", "home", "water"], actions=["ice", "detour"],
        initial="fork",
    )  # fmt: skip


def optimism() -> Any:
    """Show how often the ice is taken and what the fork is worth, exactly and by the variational answer."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.4), layout="constrained")
    heat = np.geomspace(0.1, 30, 60)
    both = [fork().soft_values(2, temperature=t) for t in heat]
    for name, colour, label in (
        ("exact", SECOND, "the posterior"),
        ("variational", FIRST, "the variational answer"),
    ):
        plans = [getattr(one, name) for one in both]
        left.plot(
            heat, [plan.row("fork", step=0).get("ice", 0.0) for plan in plans], color=colour, label=label
        )
        right.plot(heat, [plan.value for plan in plans], color=colour, label=label)
    left.set(xscale="log", xlabel="temperature", ylabel="probability of the ice", title="what is done")
    left.set_ylim(-0.03, 1.03)
    right.axhline(-1, color="0.7", linewidth=0.8, linestyle=":")
    right.annotate(
        "the best plan", (9, -1), xytext=(0, 3), textcoords="offset points", fontsize=8, color="0.4"
    )
    right.set(xscale="log", xlabel="temperature", ylabel="worth", title="what the fork is worth")
    left.legend(frameon=False)
    return figure


def inverse_rewards() -> Any:
    """Show rewards on a small grid, how often walks come to each square, and the rewards that explain these walks."""
    side = 6
    places = np.arange(side * side)
    x, y = places % side, places // side
    tables = np.zeros((4, len(places), len(places)))
    for table, (dx, dy) in zip(tables, ((1, 0), (-1, 0), (0, 1), (0, -1)), strict=True):
        to = np.clip(x + dx, 0, side - 1) + side * np.clip(y + dy, 0, side - 1)
        table[places, to] = 0.9
        table[places, places] += 0.1
    truth = np.where((x > 3) & (y > 3), 1.0, 0.0) - np.where((x == 2) & (y < 5), 1.0, 0.0)
    grid = mk.MDP(list(tables), truth)
    walks = grid.sample(600, steps=12, policy=grid.decide(horizon=12, temperature=1.0), seed=0)
    shown = [list(zip(w["state"], w["action"], strict=True)) for _, w in walks.groupby("episode")]
    features = {f"at {i}": np.eye(len(places))[i] for i in places}
    found = mk.control.inverse(grid, shown, features, l2=1.0)
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.2), layout="constrained")
    visits = np.bincount(walks["state"].astype(int), minlength=len(places))
    weights = found.rewards[:, 0] - np.median(found.rewards[:, 0])
    pictures = (
        (truth, "RdBu", 1.2, "rewards"),
        (visits, "Blues", None, "600 walks: visits"),
        (weights, "RdBu", 1.2, "rewards found"),
    )
    for ax, (values, colours, top, title) in zip(axes, pictures, strict=True):
        low = None if top is None else -top
        image = ax.imshow(values.reshape(side, side), cmap=colours, vmin=low, vmax=top, origin="lower")
        ax.set(xticks=[], yticks=[], title=title)
        figure.colorbar(image, ax=ax, shrink=0.8)
    return figure


FIGURES: list[Callable[[], Any]] = [
    plan_by_step,
    limited_visits,
    tiger_vectors,
    swing_up,
    optimism,
    inverse_rewards,
]
