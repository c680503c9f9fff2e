"""Multiplying tables whose variables all occur in another table into that table."""

from markovia.kernels.kernel import kernel


@kernel
def absorb_tables(cards, scope_ptr, scope, table_ptr, values, gone, room, links, digits):
    """Multiply every table whose variables all occur in another one into that one, mark it as gone; return how many.

    The tables lie in `values`, table f from `table_ptr[f]` on, over `scope[scope_ptr[f] : scope_ptr[f + 1]]`, in C order.
    They come in order of decreasing arity; of the tables kept so far, those at the variable with the fewest are looked
    through, oldest first. `room` is four rows over variables (first and last kept place, the table last seen, kept
    tables), `links` two over places in scope (the next kept place at the same variable, the table), all -1; `digits` is
    two rows as long as the longest scope.
    """
    count = len(scope_ptr) - 1
    most = 0
    for f in range(count):
        most = max(most, scope_ptr[f + 1] - scope_ptr[f])
    absorbed = 0
    for arity in range(most, 1, -1):
        for f in range(count):
            a, b = scope_ptr[f], scope_ptr[f + 1]
            if b - a != arity:
                continue
            fewest = scope[a]
            for e in range(a, b):
                v = scope[e]
                links[1, e] = f
                room[2, v] = f
                if room[3, v] < room[3, fewest]:
                    fewest = v
            host = -1
            at = room[0, fewest]
            while at >= 0 and host < 0:
                g = links[1, at]
                inside = 0
                for e in range(scope_ptr[g], scope_ptr[g + 1]):
                    if room[2, scope[e]] == f:
                        inside += 1
                if inside == arity:
                    host = g
                at = links[0, at]
            if host < 0:
                for e in range(a, b):
                    v = scope[e]
                    if room[1, v] >= 0:
                        links[0, room[1, v]] = e
                    else:
                        room[0, v] = e
                    room[1, v] = e
                    room[3, v] += 1
                continue
            gone[f] = True
            absorbed += 1
            c, d = scope_ptr[host], scope_ptr[host + 1]
            for e in range(c, d):
                stride = 1
                digits[0, e - c] = 0
                digits[1, e - c] = 0
                for p in range(b - 1, a - 1, -1):
                    if scope[p] == scope[e]:
                        digits[1, e - c] = stride
                    stride *= cards[scope[p]]
            at = table_ptr[f]
            for i in range(table_ptr[host], table_ptr[host + 1]):
                values[i] *= values[at]
                for k in range(d - c - 1, -1, -1):
                    at += digits[1, k]
                    digits[0, k] += 1
                    if digits[0, k] < cards[scope[c + k]]:
                        break
                    at -= cards[scope[c + k]] * digits[1, k]
                    digits[0, k] = 0
    return absorbed
