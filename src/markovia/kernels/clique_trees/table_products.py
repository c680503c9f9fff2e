"""Products of tables with some axes summed or maximised out, row by row.

A row is a stretch of the result, or, where the result is short, a stretch of what is summed. In a row each input is one
number, a contiguous stretch, or scattered numbers; those are first gathered, and kept for as long as the next rows ask for
the same, as they do of all small inputs. So the innermost loops only multiply and add contiguous stretches, in registers
as wide as the processor has them. Rows whose constant factors are zero are passed over.
"""

from collections import namedtuple

from numba import types
from numba.extending import intrinsic

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

SET, ADD, MAXIMISE = 0, 1, 2
LOOSE = {"reassoc", "nnan", "nsz", "contract"}
"""Sums may be regrouped; tables never hold not-a-number."""
SMALLEST = 2.0**-1030
"""What products that are not zero are rounded up to."""
SLOTS = 8
"""How many gathered stretches of one input are kept."""

N, LENGTH, SUMMED, CONSTANT, GATHERED, KEPT, REMOVED, HEAD = 0, 1, 2, 3, 4, 5, 6, 7
"""The program begins with: how many inputs, the length of a row, whether rows are summed, how many inputs are one number in
a row (they come first) and how many are gathered (they come last), how many axes there are outside the rows, kept
and removed. Their lengths follow, and then for each axis the strides of the inputs."""

Room = namedtuple("Room", "row gathered held kept_at kept_index removed_at removed_index")
"""The memory of a thread: a row, gathered stretches and from where they were, positions of the inputs and along the axes."""


@intrinsic
def numbers_at(typing_context, address):
    """Return an address as a pointer to numbers."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.int64), generate


@inner(bare=True)
def begin(position, axes, lengths, strides, n, at, index):
    """Find where the inputs are at a position along some axes, the last the fastest."""
    for i in range(n):
        at[i] = 0
    for k in range(axes - 1, -1, -1):
        index[k] = position % lengths[k]
        position //= lengths[k]
        for i in range(n):
            at[i] += index[k] * strides[k * n + i]


@inner(bare=True)
def advance(axes, lengths, strides, n, at, index):
    """Go to the next position."""
    k = axes - 1
    while k >= 0:
        index[k] += 1
        steps = beyond(strides, k * n)
        if index[k] < lengths[k]:
            for i in range(n):
                at[i] += steps[i]
            return
        index[k] = 0
        for i in range(n):
            at[i] -= (lengths[k] - 1) * steps[i]
        k -= 1


@inner(bare=True, fastmath=LOOSE)
def combine(what, row, n, c, a):
    """Set a row to a number times a stretch, add that onto it, or take the larger."""
    if what == SET:
        for i in range(n):
            row[i] = c * a[i]
    elif what == ADD:
        for i in range(n):
            row[i] += c * a[i]
    else:
        for i in range(n):
            v = c * a[i]
            row[i] = v if v > row[i] else row[i]


@inner(bare=True, fastmath=LOOSE)
def combine_two(what, row, n, c, a, b):
    """Set a row to a number times two stretches, add that onto it, or take the larger."""
    if what == SET:
        for i in range(n):
            row[i] = c * a[i] * b[i]
    elif what == ADD:
        for i in range(n):
            row[i] += c * a[i] * b[i]
    else:
        for i in range(n):
            v = c * a[i] * b[i]
            row[i] = v if v > row[i] else row[i]


@inner(bare=True, fastmath=LOOSE)
def total(n, a, maximise):
    """Return the sum of a stretch."""
    t = 0.0
    if maximise:
        for i in range(n):
            t = a[i] if a[i] > t else t
    else:
        for i in range(n):
            t += a[i]
    return t


@inner(bare=True, fastmath=LOOSE)
def total_two(n, a, b, maximise):
    """Return the sum of the products of two stretches."""
    t = 0.0
    if maximise:
        for i in range(n):
            v = a[i] * b[i]
            t = v if v > t else t
    else:
        for i in range(n):
            t += a[i] * b[i]
    return t


@inner(bare=True)
def stretch(i, slot, program, low, addresses, room):
    """Return where an input's stretch for a row lies: in its table, or gathered."""
    n, length = program[N], program[LENGTH]
    first = n - program[GATHERED]
    offset = room.kept_at[i] + room.removed_at[i]
    table = beyond(numbers_at(addresses[i]), offset)
    if i < first:
        return table
    place = (i - first) * SLOTS + slot
    found = beyond(room.gathered, place * length)
    if room.held[place] != offset:
        room.held[place] = offset
        steps = beyond(low, (i - first) * length)
        for k in range(length):
            found[k] = table[steps[k]]
    return found


@inner(bare=True)
def one_row(slot, scale, maximise, fresh, result, program, low, addresses, room):
    """Add the products of one row onto the result, or set it to them where it is fresh; say whether it still is."""
    n, length, constant = program[N], program[LENGTH], program[CONSTANT]
    c = scale
    for i in range(constant):
        c *= beyond(numbers_at(addresses[i]), room.kept_at[i] + room.removed_at[i])[0]
    if c == 0.0:
        return fresh
    if program[SUMMED]:
        t = c * row_total(slot, maximise, program, low, addresses, room)
        result[0] = t if fresh else max(result[0], t) if maximise else result[0] + t
        return False
    what = SET if fresh else MAXIMISE if maximise else ADD
    if n == constant:
        for k in range(length):
            result[k] = c if fresh else max(result[k], c) if maximise else result[k] + c
        return False
    a = all_but_one(slot, program, low, addresses, room)
    if n - constant == 1:
        combine(what, result, length, c, a)
    else:
        combine_two(what, result, length, c, a, stretch(n - 1, slot, program, low, addresses, room))
    return False


@inner(bare=True)
def all_but_one(slot, program, low, addresses, room):
    """Return the products of the stretches, but for the last where there are several."""
    n, constant = program[N], program[CONSTANT]
    a = stretch(constant, slot, program, low, addresses, room)
    for i in range(constant + 1, n - 1):
        combine_two(SET, room.row, program[LENGTH], 1.0, a, stretch(i, slot, program, low, addresses, room))
        a = room.row
    return a


@inner(bare=True)
def row_total(slot, maximise, program, low, addresses, room):
    """Return the sum of the products in a row, but for the constant ones."""
    n, length, constant = program[N], program[LENGTH], program[CONSTANT]
    if n == constant:
        return 1.0 if maximise else float(length)
    a = all_but_one(slot, program, low, addresses, room)
    if n - constant == 1:
        return total(length, a, maximise)
    return total_two(length, a, stretch(n - 1, slot, program, low, addresses, room), maximise)


@inner(bare=True)
def careful_row(scales, maximise, fresh, result, program, low, addresses, room):
    """Add the products of one row onto the result, rounding up what would become zero."""
    n, length = program[N], program[LENGTH]
    first, wide = n - program[GATHERED], 1 if program[SUMMED] else length
    for k in range(wide if fresh else 0):
        result[k] = 0.0
    for k in range(length):
        p = 1.0
        for i in range(n):
            offset = room.kept_at[i] + room.removed_at[i]
            if i >= first:
                offset += low[(i - first) * length + k]
            elif i >= program[CONSTANT]:
                offset += k
            x = beyond(numbers_at(addresses[i]), offset)[0]
            if x == 0.0:
                p = 0.0
                break
            p = max(p * (x * scales[i]), SMALLEST)
        at = 0 if program[SUMMED] else k
        result[at] = max(result[at], p) if maximise else result[at] + p


@inner(bare=True, fastmath=LOOSE)
def measure(row, n, extremes):
    """Keep the smallest number that is not zero, and the largest."""
    low, most = extremes[0], extremes[1]
    for k in range(n):
        v = row[k]
        most = v if v > most else most
        positive = v if v > 0.0 else 1.7e308
        low = positive if positive < low else low
    extremes[0] = low
    extremes[1] = most


@kernel(bare=True)
def multiply_rows(span, maximise, careful, scales, program, low, addresses, room, counts, result, extremes):
    """Compute some rows of a result.

    The span is the first and the last row (outside it), and the first and the last position along the removed axes that
    are outside rows; the scales begin with their product, and the result begins with the first row.
    """
    span, program, low, addresses = pointer(span), pointer(program), pointer(low), pointer(addresses)
    scales, room, counts = pointer(scales), pointer(room), pointer(counts)
    result, extremes = pointer(result), pointer(extremes)
    n, length, kept, removed = program[N], program[LENGTH], program[KEPT], program[REMOVED]
    kept_lengths, removed_lengths = beyond(program, HEAD), beyond(program, HEAD + kept)
    kept_strides = beyond(program, HEAD + kept + removed)
    removed_strides = beyond(kept_strides, kept * n)
    held, at = counts, beyond(counts, SLOTS * n)
    space = Room(
        room, beyond(room, length), held, at, beyond(at, 2 * n), beyond(at, n), beyond(at, 2 * n + kept)
    )
    wide = 1 if program[SUMMED] else length
    for i in range(SLOTS * n):
        held[i] = -1
    begin(span[0], kept, kept_lengths, kept_strides, n, space.kept_at, space.kept_index)
    for _ in range(span[0], span[1]):
        fresh = True
        begin(span[2], removed, removed_lengths, removed_strides, n, space.removed_at, space.removed_index)
        for j in range(span[2], span[3]):
            if careful:
                careful_row(beyond(scales, 1), maximise, fresh, result, program, low, addresses, space)
                fresh = False
            else:
                fresh = one_row(j % SLOTS, scales[0], maximise, fresh, result, program, low, addresses, space)
            advance(removed, removed_lengths, removed_strides, n, space.removed_at, space.removed_index)
        if fresh:
            for k in range(wide):
                result[k] = 0.0
        else:
            measure(result, wide, extremes)
        result = beyond(result, wide)
        advance(kept, kept_lengths, kept_strides, n, space.kept_at, space.kept_index)
