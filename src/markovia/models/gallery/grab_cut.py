"""Cutting an object out of a picture from a box around it: mixtures of colours and minimum cuts in turn.

Method: GrabCut (Rother, Kolmogorov and Blake 2004). A Gaussian mixture describes the colours of what is taken for the
object, another one those of the rest; the mask that is best given both is one minimum cut, whose borders like to run where
the picture changes; the mixtures are fitted again, from where they were, and so on. The energy

    E = sum_i -log p(colour_i | mixture of mask_i) + sum over neighbours with different masks of w_ij

falls with every turn; each cut is the best one, the whole a local minimum. Cost of a turn: some steps of EM on all pixels,
and one cut. Use it where a box is all that is known; with label images to learn from there is `mk.crf.GridCRF`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.models.crf.grid_crf import standard_colours, two_labels
from markovia.models.gallery.pixel_fields import field_energy, pair_weights, pixel_network, read_pixels
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.models.mixtures.named_mixtures import GaussianMixture
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.shown import InNotebooks

FLOOR = 1e-4
"""The prior variance of a component, in units of the picture's: flat regions have colours without any spread."""


@dataclass(frozen=True, eq=False, repr=False)
class Cutout(InNotebooks):
    """An object cut out of a picture.

    Attributes
    ----------
    mask
        True where the object is, shape (rows, columns).
    energies
        The energy after each turn, colours in units of the picture's standard deviation; it never rises.
    converged
        Whether the last turn changed no pixel; else `max_iter` or the time ended it.
    foreground, background
        The mixtures of colours in these units; None where there was nothing left to fit one to.
    log_likelihoods
        The log density of each pixel's colour under background and object, (rows, columns, 2), marked pixels excepted.
    """

    mask: Flags
    energies: tuple[float, ...]
    converged: bool
    foreground: GaussianMixture | None
    background: GaussianMixture | None
    log_likelihoods: Array
    _pairs: tuple[Ints, Ints, Array]

    @property
    def energy(self) -> float:
        """The energy of the mask."""
        return self.energies[-1]

    @property
    def _one_sided(self) -> bool:
        return not self.mask.any() or bool(self.mask.all())

    def network(self) -> MarkovNetwork:
        """Return the Markov network (0 background, 1 object) of the last turn, whose best configuration is the mask."""
        tails, heads, weights = self._pairs
        return pixel_network(self.log_likelihoods, tails, heads, _border_tables(weights), "cutout")

    def __repr__(self) -> str:
        rows, cols = self.mask.shape
        turns = f"{len(self.energies)} turn{'s' if len(self.energies) > 1 else ''}"
        end = "" if self.converged else ", not converged"
        return f"Cutout({int(self.mask.sum())} of {rows} x {cols} pixels, {turns}{end})"


def grab_cut(
    image: ArrayLike,
    box: Sequence[int] | None = None,
    *,
    foreground: ArrayLike | None = None,
    background: ArrayLike | None = None,
    components: int = 5,
    coupling: float = 10.0,
    contrast: float = 1.0,
    neighbours: Literal[4, 8] = 8,
    max_iter: int = 20,
    time_limit: float | None = None,
    seed: Any = 0,
    progress: bool | None = None,
) -> Cutout:
    """Cut an object out of a picture, given a box around it or marks on it.

    Parameters
    ----------
    image
        An array of shape (rows, columns), or (rows, columns, channels), in any unit.
    box
        `(top, left, bottom, right)`, the last two exclusive as in slices; what is outside is background for good.
    foreground, background
        Masks (rows, columns) of pixels that are marked by hand and stay so; both are needed where there is no box.
    components
        Gaussians in each mixture, fewer where there are fewer different colours.
    coupling
        What a border between two pixels of equal colour costs, in nats.
    contrast, neighbours
        As in `segmentation_model`.
    max_iter, time_limit, progress
        Turns and seconds at most, and whether to show a bar; Ctrl-C keeps what there is.
    seed
        For the first fit of the mixtures.

    Raises
    ------
    InvalidArgument
        For a box or marks that leave no pixel inside or outside, or do not fit the picture.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> row, column = np.mgrid[:30, :40]
    >>> disc = np.hypot(row - 15, column - 20) < 8
    >>> picture = np.where(disc, 200.0, 90.0) + rng.normal(scale=25.0, size=disc.shape)
    >>> found = grab_cut(picture, box=(4, 8, 26, 32), components=1)
    >>> float((found.mask == disc).mean().round(3)), found.converged
    (0.999, True)
    """
    pixels = read_pixels(image)
    check_count("components", components, 1)
    check_count("max_iter", max_iter, 1)
    tails, heads, weights = pairs = pair_weights(pixels, coupling, contrast, neighbours)
    on, off = _marks(pixels.shape[:2], box, foreground, background)
    colours = standard_colours(pixels).reshape(-1, pixels.shape[2])
    tables = _border_tables(weights)
    # a mark weighs more than all pairs of its pixel together
    marked = 1.0 + 8.0 * float(weights.max(initial=0.0))
    first = on if box is None else ~off  # whose colours the object's are at first

    def turn(now: Cutout) -> tuple[Cutout, float]:
        if now.energies and now._one_sided:  # nothing to fit a mixture to
            return now, -now.energy
        inside = now.mask if now.energies else first
        rest = _colours_of(colours[~now.mask.ravel()], components, now.background, seed)
        thing = _colours_of(colours[inside.ravel()], components, now.foreground, seed)
        logs = np.stack([m.score_samples(colours) for m in (rest, thing)], axis=1)
        for own, hand in ((1, on.ravel()), (0, off.ravel())):
            logs[hand, 1 - own] = logs[hand, own] - marked
        ones = two_labels(logs, tails, heads, tables)
        energy = field_energy(logs, tails, heads, tables, ones)
        if now.energies and energy >= now.energy:
            return now, -now.energy
        mask, logs = ones.reshape(off.shape).astype(bool), logs.reshape(*off.shape, 2)
        return Cutout(mask, (*now.energies, energy), False, thing, rest, logs, pairs), -energy

    found = climb(
        turn, Cutout(~off, (), False, None, None, np.zeros((*off.shape, 2)), pairs), max_iter=max_iter, tol=0.0,
        time_limit=time_limit, progress=progress, name="GrabCut", unit="turn",
        settled=lambda before, after: bool(before.energies) and np.array_equal(before.mask, after.mask),
    )  # fmt: skip
    found.warn(1.0, ("max_iter", "time_limit"))
    if found.state._one_sided:
        warn_user(
            "the colours inside are those outside, so that one of the two is empty; lower coupling=, or mark some of the "
            "object with foreground=",
            ConvergenceWarning,
        )
    return replace(found.state, converged=found.converged)


def _border_tables(weights: Array) -> Array:
    """Return the log tables of pairs whose different masks cost some weights."""
    return weights[:, None, None] * (np.eye(2) - 1.0)


def _marks(
    shape: tuple[int, ...], box: Sequence[int] | None, foreground: ArrayLike | None, background: ArrayLike | None
) -> tuple[Flags, Flags]:  # fmt: skip
    """Return which pixels are the object, and which are background, for good."""
    marks = []
    for what, given in (("foreground", foreground), ("background", background)):
        mark = np.zeros(shape, dtype=bool) if given is None else np.asarray(given)
        if mark.shape != shape or not np.isin(mark, (0, 1)).all():
            raise InvalidArgument(f"{what}= is a mask of {shape[0]} x {shape[1]} truth values")
        marks.append(mark.astype(bool))
    on, off = marks
    if box is not None:
        corners = np.asarray(box)
        if corners.shape != (4,) or corners.dtype.kind not in "iu":
            raise InvalidArgument(f"box= is four whole numbers (top, left, bottom, right), not {box!r}")
        top, left, bottom, right = corners.tolist()
        if not (0 <= top < bottom <= shape[0] and 0 <= left < right <= shape[1]):
            raise InvalidArgument(
                f"box={box!r} is not inside a picture of {shape[0]} x {shape[1]} pixels; it is (top, left, bottom, right)"
            )
        outside = np.ones(shape, dtype=bool)
        outside[top:bottom, left:right] = False
        off |= outside & ~on
    elif not (on.any() and off.any()):
        raise InvalidArgument(
            "give box=(top, left, bottom, right), or mark some of the object with foreground= and some of the rest with "
            "background="
        )
    if (on & off).any():
        raise InvalidArgument("foreground= and background= mark the same pixel")
    if not off.any():
        raise InvalidArgument("the box is the whole picture; leave some background outside, or mark some")
    if off.all():
        raise InvalidArgument("background= marks the whole box; leave some pixels to the object")
    return on, off


def _colours_of(rows: Array, components: int, before: GaussianMixture | None, seed: Any) -> GaussianMixture:
    """Fit a mixture to colours, from the one before on where there is one."""
    k = min(components, len(np.unique(rows, axis=0)))
    width = rows.shape[1]
    prior = {"mean": rows.mean(axis=0), "strength": 1e-3, "scale": FLOOR * np.eye(width), "df": width + 2.0}
    fresh = GaussianMixture(k, prior=prior, init_params="kmeans", random_state=seed)
    if before is not None and before.n_components == k:
        fresh = replace(
            fresh, weights_init=before.weights_, means_init=before.means_, precisions_init=before.precisions_
        )
    with warnings.catch_warnings():  # one flat colour is no mistake here
        warnings.filterwarnings("ignore", "the column", UserWarning)
        return fresh.fit(rows)
