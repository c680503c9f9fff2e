"""A name for what a model's functions compute: equal digests mean that compiled code can be used again.

It covers every function (`runtime/function_descriptions.py`), constants, shapes, roles, which entries are missing, and what
is sampled non-centred.
"""

import hashlib
from typing import Any

from markovia.inference.densities.program.layout import QuantityLayout
from markovia.runtime.function_descriptions import described


def digest(layout: QuantityLayout) -> str:
    """Return the digest of a model with its evidence, data aside: functions, roles, shapes and constants."""
    said = hashlib.sha256()
    for site in layout.sites.values():
        parts = (
            site.name,
            site.plates,
            site.role,
            site.shape,
            site.states,
            site.sources,
            sorted(site.lags.items()),
            site.centred,
        )
        said.update(repr(parts).encode())
        piece = site.piece
        form = getattr(piece, "form", None)
        said.update(described(form if form is not None else _numbers(piece)))
        said.update(described(getattr(piece, "first", None)))
        said.update(described(None if site.soft is None else site.soft.said))
        said.update(described(site.holes))
    said.update(repr(sorted(layout.lengths.items())).encode())
    said.update(repr(sorted(layout.fixed.items())).encode())
    said.update(repr([(k, v.shape, v.dtype.str) for k, v in sorted(layout.data.items())]).encode())
    said.update(repr(sorted(layout.column_plates.items())).encode())
    for name, skeleton in sorted(layout.parameters.items()):
        said.update(name.encode() + described(None if skeleton is None else skeleton.described()))
    return said.hexdigest()


def _numbers(piece: Any) -> Any:
    return piece.values if piece.kind == "table" else [piece.bias, piece.weights, piece.variance]
