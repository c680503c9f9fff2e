"""Small worlds to learn in: a corridor, a target to hit with a number, and others that are broken in one way."""

import numpy as np


class Counted:
    """A space of whole numbers."""

    def __init__(self, n, start=0):
        self.n, self.start = n, start


class Box:
    """A space of numbers."""

    def __init__(self, low, high):
        self.low, self.high = np.array(low, float), np.array(high, float)
        self.shape = self.low.shape


class Corridor:
    """States 0 to n - 1; action 1 goes right, action 0 left; the last state pays and ends, after `limit` steps it is cut."""

    def __init__(self, n=5, pay=1.0, limit=20, actions=2):
        self.observation_space, self.action_space = Counted(n), Counted(actions)
        self.n, self.pay, self.limit = n, pay, limit

    def reset(self, *, seed=None):
        self.at, self.age = 0, 0
        return self.at, {}

    def step(self, action):
        self.at = min(max(self.at + (1 if action == 1 else -1), 0), self.n - 1)
        self.age += 1
        ended = self.at == self.n - 1
        return self.at, self.pay * ended, ended, not ended and self.age >= self.limit, {}


class Aim:
    """A number is seen, and the nearer the action is to half of it the better; episodes are cut after some steps."""

    def __init__(self, unit=1.0, steps=5, width=2.0, sight=1.0):
        self.observation_space = Box([-np.inf], [np.inf])
        self.action_space = Box([-width], [width])
        self.unit, self.steps, self.width, self.sight = unit, steps, width, sight

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.age = 0
        self.at = self.rng.uniform(-1, 1)
        return np.array([self.at * self.sight]), {}

    def step(self, action):
        reward = -self.unit * (float(action[0]) / self.width - 0.5 * self.at) ** 2
        self.age += 1
        self.at = self.rng.uniform(-1, 1)
        return np.array([self.at * self.sight]), reward, False, self.age >= self.steps, {}


class Broken(Corridor):
    """A corridor whose rewards or observations are NaN after some steps."""

    def __init__(self, what, after=30):
        super().__init__()
        self.what, self.left = what, after
        if what == "observation":
            self.observation_space = Box([0.0], [9.0])

    def reset(self, *, seed=None):
        at, info = super().reset(seed=seed)
        return (np.array([at], float), info) if self.what == "observation" else (at, info)

    def step(self, action):
        at, reward, *rest = super().step(action)
        self.left -= 1
        bad = np.nan if self.left < 0 else 1.0
        if self.what == "observation":
            return np.array([at * bad]), reward, *rest
        return at, reward * bad + (0.0 * bad), *rest
