"""Upper bounds on a convex function of beliefs, from its values at the corners and at some points below their plane."""

from markovia.kernels.kernel import kernel


@kernel
def deepest(offsets, states, shares, depths, weights, lowered):
    """Raise how far each row of weights is below the corners' plane, at least: to `max_i depth_i min_s w_s / b_is`.

    Point i has the states and shares from `offsets[i]` to `offsets[i + 1]`; `depths` tells how far below the plane it is.
    A share that leaves a point no better than the best so far ends it, so that most points cost one look.
    """
    for k in range(len(weights)):
        best = lowered[k]
        for i in range(len(depths)):
            depth = depths[i]
            if depth <= best:
                continue
            # the least of depth * w / b over the point's states
            for j in range(offsets[i], offsets[i + 1]):
                reached = depths[i] * weights[k, states[j]]
                if reached < depth * shares[j]:
                    depth = reached / shares[j]
                    if depth <= best:
                        break
            best = max(best, depth)
        lowered[k] = best
