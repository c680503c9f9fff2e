"""Taggers in markovia's own format: `chain-crf`, `memm` and `segment-crf`.

    {"format": "markovia", "version": 1, "kind": "chain-crf", "settings": {"C": 2.0},
     "classes": ["DET", "NOUN"], "features": ["word:the", "word:dog"],
     "transitions": [[0.0, 1.5], [0.0, 0.0]], "start": [0.0, 0.0], "end": [0.0, 0.0], "intercept": [0.0, 0.0],
     "weights": [[0, 0, 1.25], [1, 1, 0.75]]}

`features` are the names of the columns, or their number where they have none. `weights` lists what is not zero: column,
label, number; a MEMM with weights for each label before has the place of that label in front, 0 for the start of a
sequence. A chain-crf of higher order or with places has `ngrams`, a row of weights a place and history, transitions among
them. A segment-crf has `lengths`, a row of weights a label. A weight of minus infinity, for what is forbidden, is null.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.tokens import FewWeights
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.io.native.json_paths import JsonNode
from markovia.learning.conditional_fields.chain_objective import MOST_DENSE, ChainWeights
from markovia.learning.conditional_fields.segment_objective import SegmentWeights
from markovia.models.crf.chain_crf import ChainCRF
from markovia.models.crf.memm import MEMM
from markovia.models.crf.segment_crf import SegmentCRF
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import brief

KINDS = {"chain-crf": ChainCRF, "memm": MEMM, "segment-crf": SegmentCRF}
LEFT_OUT = ("random_state", "progress")
_KEYS = ("format", "version", "kind", "settings", "classes", "features", "transitions", "start", "weights")


def tagger_content(model: ChainCRF | MEMM | SegmentCRF) -> tuple[str, dict[str, Any]]:
    """Return the kind and the content of a tagger."""
    if not hasattr(model, "classes_"):
        raise UnsupportedModel(f"this {type(model).__name__} has no weights yet; call fit(X, Y) before save")
    settings = {n: v for n, v in model.get_params().items() if n not in LEFT_OUT}
    if settings.get("C") == np.inf:
        settings["C"] = None
    names = model.feature_names_
    found: dict[str, Any] = {
        "settings": settings,
        "classes": model.classes_.tolist(),
        "features": int(model.coef_.shape[-1]) if names is None else names,
        "transitions": [_listed(row) for row in model.transitions_],
        "start": _listed(model.start_),
    }
    if isinstance(model, ChainCRF):
        found |= {"end": _listed(model.end_), "intercept": _listed(model.intercept_)}
        if model._histories is not None:
            found["ngrams"] = [_listed(row) for row in model.ngrams_.reshape(-1, len(model.classes_))]
        labels, columns = model.coef_.nonzero()
        values = np.asarray(model.coef_[labels, columns]).ravel()
        parts = [columns.tolist(), labels.tolist(), values.tolist()]
    else:
        place = np.nonzero(model.coef_)
        parts = [p.tolist() for p in (*place[:-2], place[-1], place[-2], model.coef_[place])]
    found["weights"] = [list(row) for row in zip(*parts, strict=True)]
    if isinstance(model, SegmentCRF):
        found["lengths"] = [_listed(row) for row in model.lengths_]
    return next(kind for kind, cls in KINDS.items() if isinstance(model, cls)), found


def _listed(values: Array) -> list[float | None]:
    return [None if v == -np.inf else v for v in values.tolist()]


def read_chain_crf(root: JsonNode) -> ChainCRF:
    """Read a `ChainCRF`."""
    root.only(*_KEYS, "end", "intercept", "ngrams")
    made: ChainCRF
    made, classes, width = _begin(root, ChainCRF)
    k = len(classes)
    triples = _weights(root, (width, k))
    order = np.lexsort((triples[:, 1], triples[:, 0]))
    columns = triples[order, 0].astype(np.int64)
    starts = np.searchsorted(columns, np.arange(width + 1))
    few = FewWeights(k, starts, triples[order, 1].astype(np.int64), triples[order, 2].copy())
    made._set_weights(
        ChainWeights(
            few.dense if width * k <= MOST_DENSE else few,
            _transitions(root, made, k),
            _numbers(root.get("intercept"), k),
            _numbers(root.get("start"), k),
            _numbers(root.get("end"), k),
        )
    )
    return made


def _transitions(root: JsonNode, made: ChainCRF, k: int) -> Array:
    """Return the weights of labels in a row, as the settings say how many count."""
    histories = made._histories_of(k)
    if histories is None:
        return np.array([_numbers(row, k) for row in _rows(root.get("transitions"), k)])
    places, count = 1 + histories.first + histories.last, len(histories.label)
    rows = _rows(root.get("ngrams"), places * count)
    return np.array([_numbers(row, k) for row in rows]).reshape(places, count, k)


def read_memm(root: JsonNode) -> MEMM:
    """Read a `MEMM`."""
    root.only(*_KEYS)
    made: MEMM
    made, classes, width = _begin(root, MEMM)
    k = len(classes)
    groups = k + 1 if made.per_label else 1
    found = np.zeros((groups, width, k))
    rows = _weights(root, (groups, width, k) if made.per_label else (width, k))
    place = rows[:, :-1].astype(np.int64).T
    found[tuple(place) if made.per_label else (0, *place)] = rows[:, -1]
    moves = np.array([_numbers(row, k) for row in _rows(root.get("transitions"), k)])
    made._set_weights((found, np.vstack([_numbers(root.get("start"), k), moves])))
    return made


def read_segment_crf(root: JsonNode) -> SegmentCRF:
    """Read a `SegmentCRF`."""
    root.only(*_KEYS, "lengths")
    made: SegmentCRF
    made, classes, width = _begin(root, SegmentCRF)
    k = len(classes)
    columns = np.zeros((width, k))
    rows = _weights(root, (width, k))
    columns[tuple(rows[:, :-1].astype(np.int64).T)] = rows[:, -1]
    moves = np.array([_numbers(row, k) for row in _rows(root.get("transitions"), k)])
    sizes = _rows(root.get("lengths"), k)
    longest = len(sizes[0].need(list, "a list of numbers"))
    if longest == 0:
        sizes[0].fail("expected one number a length")
    spans = np.array([_numbers(row, longest, "length") for row in sizes])
    made._set_weights(SegmentWeights(columns, moves, _numbers(root.get("start"), k), spans))
    return made


def _begin(root: JsonNode, cls: Any) -> tuple[Any, NDArray[Any], int]:
    settings = root.get("settings")
    given = dict(settings.need(dict, "an object"))
    if "C" in given and given["C"] is None:
        given["C"] = np.inf
    if isinstance(given.get("constraints"), list):
        given["constraints"] = [tuple(pair) for pair in given["constraints"]]
    if isinstance(given.get("positions"), list):
        given["positions"] = tuple(given["positions"])
    try:
        made = cls(**given)
    except (TypeError, MarkoviaError) as error:
        settings.fail(f"expected settings of a {cls.__name__}; {brief(str(error))}")
    listed = root.get("classes")
    classes = np.array(listed.need(list, "a list of labels"))
    if classes.ndim != 1 or len(classes) < 2 or classes.dtype.kind not in "Uiub":
        listed.fail("expected two or more labels: strings, whole numbers or truth values")
    if np.unique(classes).tolist() != classes.tolist():
        listed.fail("expected different labels in order")
    features = root.get("features")
    names: list[str] | None = None
    if isinstance(features.value, int):
        width = features.value
    else:
        names = [n.text() for n in features.items()]
        width = len(names)
        if len(set(names)) != width:
            features.fail("expected each feature once")
    made.classes_ = classes
    made.feature_names_ = names
    made._vocabulary = None if names is None else Vocabulary.of(names)
    return made, classes, width


def _weights(root: JsonNode, shape: tuple[int, ...]) -> Array:
    listed = root.get("weights")
    rows = listed.need(list, "a list of weights")
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(shape) + 1 or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in row
        ):  # fmt: skip
            listed.at(i).fail(f"expected a list of {len(shape) + 1} numbers")
        if not all(isinstance(v, int) and 0 <= v < n for v, n in zip(row, shape, strict=False)):
            listed.at(i).fail(f"expected places below {', '.join(map(str, shape))}")
    return np.array(rows, dtype=np.float64).reshape(-1, len(shape) + 1)


def _rows(node: JsonNode, k: int) -> list[JsonNode]:
    rows = list(node.items())
    if len(rows) != k:
        node.fail(f"expected {k} rows, one a label, found {len(rows)}")
    return rows


def _numbers(node: JsonNode, k: int, what: str = "label") -> Array:
    values = node.need(list, "a list of numbers")
    if len(values) != k:
        node.fail(f"expected {k} numbers, one a {what}, found {len(values)}")
    for i, v in enumerate(values):
        if v is not None and (isinstance(v, bool) or not isinstance(v, int | float)):
            node.at(i).fail("expected a number, or null for minus infinity")
    return np.array([-np.inf if v is None else v for v in values], dtype=np.float64)
