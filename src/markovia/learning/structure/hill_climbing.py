"""Hill climbing over directed graphs: add, remove or reverse the one edge that raises the score most."""

import numpy as np

from markovia.graphs.directed import DAG
from markovia.learning.structure.result import Found, Step
from markovia.learning.structure.task import Task


def hill_climb(task: Task) -> Found:
    """Climb from the required edges."""
    score = task.bound_score()
    n, rules, watch = score.n, task.rules, task.watch
    parents: list[set[int]] = [set(np.flatnonzero(rules.required[:, j]).tolist()) for j in range(n)]
    path = [Step("start", score.total([sorted(p) for p in parents]), watch.seconds)]
    while not watch.over():
        best = (1e-9, "", -1, -1)
        below = _descendants(parents)
        for child in range(n):
            own = sorted(parents[child])
            now = score.local(child, own)
            if len(own) < rules.max_parents:
                free = [
                    c for c in range(n) if rules.allowed[c, child] and c not in own and not below[child, c]
                ]
                if free:
                    gains = score.added(child, own, free) - now
                    k = int(gains.argmax())
                    if gains[k] > best[0]:
                        best = (float(gains[k]), "add", free[k], child)
            for p, after in zip(own, score.removed(child, own).tolist() if own else (), strict=True):
                if rules.required[p, child]:
                    continue
                if after - now > best[0]:
                    best = (after - now, "remove", p, child)
                if not rules.allowed[child, p] or len(parents[p]) >= rules.max_parents:
                    continue
                if any(below[k, child] for k in _children(parents, p) if k != child):
                    continue
                turned = score.local(p, [*parents[p], child]) - score.local(p, sorted(parents[p]))
                if after - now + turned > best[0]:
                    best = (after - now + turned, "reverse", p, child)
        gain, move, a, b = best
        if not move:
            break
        if move == "add":
            parents[b].add(a)
        else:
            parents[b].discard(a)
            if move == "reverse":
                parents[a].add(b)
        path.append(Step(f"{move} {task.names[a]} -> {task.names[b]}", path[-1].score + gain, watch.seconds))
        watch.advance(note=f"{path[-1].score:.6g}")
    names = task.names
    graph = DAG([(names[a], names[b]) for b in range(n) for a in sorted(parents[b])], nodes=names)
    return Found(graph, score=score.total([sorted(p) for p in parents]), path=path)


def _children(parents: list[set[int]], node: int) -> list[int]:
    return [k for k, own in enumerate(parents) if node in own]


def _descendants(parents: list[set[int]]) -> np.ndarray:
    n = len(parents)
    reach = np.eye(n, dtype=bool)
    for j, own in enumerate(parents):
        for p in own:
            reach[p, j] = True
    for k in range(n):
        reach |= reach[:, [k]] & reach[[k], :]
    return reach
