"""Ways to damage a file, and the promise that every reader keeps: a model or one ParseError, quickly."""

import random
import re
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

from markovia.errors import ParseError

Read = Callable[[str], object]


def must_hold(read: Read, text: str, seconds: float = 20.0) -> bool:
    """Read damaged text; True if it was refused. Anything but a model or a ParseError comes through as it is."""
    start = process_time()
    error = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            read(text)
    except ParseError as caught:
        error = caught
    assert process_time() - start < seconds
    if error is None:
        return False
    assert 1 <= error.line <= text.count("\n") + 1, "the position lies in the file"
    assert error.column >= 1
    assert error.expected
    return True


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Measure how much memory Python takes at most inside the block."""
    tracemalloc.start()
    peak = 0
    try:
        yield lambda: peak
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def truncations(text: str, count: int) -> Iterator[str]:
    for i in range(count):
        yield text[: len(text) * i // count]


def flips(text: str, count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        data = list(text)
        for _ in range(rng.choice([1, 1, 2, 8])):
            data[rng.randrange(len(data))] = rng.choice('{}()[];,|"\\/*=<>- \n\t09.eEnax\x01\xe9\ufffd\ufdd3')
        yield "".join(data)


def shuffled_tokens(text: str, count: int, seed: int) -> Iterator[str]:
    """Swap, delete, repeat and insert whole tokens."""
    rng = random.Random(seed)
    tokens = re.findall(r"\w+|\s+|.", text, re.DOTALL)
    for _ in range(count):
        out = list(tokens)
        for _ in range(rng.choice([1, 2, 4, 30])):
            i, j = rng.randrange(len(out)), rng.randrange(len(out))
            match rng.randrange(4):
                case 0:
                    out[i], out[j] = out[j], out[i]
                case 1:
                    del out[i]
                case 2:
                    out.insert(i, out[j])
                case _:
                    out[i] = rng.choice(
                        ["999999999999", "-1", "1e999", "nan", "0x10", "", "{", "}", "\ud800"]
                    )
        yield "".join(out)


def nonsense(size: int, seed: int, alphabet: str) -> str:
    rng = random.Random(seed)
    block = "".join(rng.choices(alphabet, k=10_000))
    return (block * (size // len(block) + 1))[:size]
