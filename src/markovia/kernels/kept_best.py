"""The best few of many entries, in a heap whose top is the worst of them: what a beam keeps."""

from markovia.kernels.kernel import inner


@inner(bare=True)
def keep_best(values, heap, kept, width, new):
    """Put an entry into a heap of `kept` entries, at most `width`; return the one that went, which may be it, or -1."""
    at, gone = kept, -1
    if kept < width:
        while at > 0 and values[int(heap[(at - 1) // 2])] > values[new]:
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
    else:
        at, gone = 0, int(heap[0])
        if values[new] <= values[gone]:
            return new
        while 2 * at + 1 < kept:
            child = 2 * at + 1
            if child + 1 < kept and values[int(heap[child + 1])] < values[int(heap[child])]:
                child += 1
            if values[int(heap[child])] >= values[new]:
                break
            heap[at] = heap[child]
            at = child
    heap[at] = new
    return gone
