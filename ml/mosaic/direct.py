"""Direct alignment: the motion between two frames from their grey values, no key point needed.

Inverse-compositional Lucas-Kanade on band-passed, locally normalised images whose fixed pattern
was taken off, coarse to fine, with robust weights. Where texture is thin it finds what key points
miss, and it places well-textured pairs to a fraction of what a key point is good for.

Each frame is the other's template at once: of one template alone the noise, stronger towards the
rim, makes every motion seem to widen, by a ten-thousandth a pair and by pixels along a chain.

Source: Baker and Matthews 2004, section 3.2 (inverse compositional), section 4 (weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64, ImageU8

LEVELS = (0.25, 0.5)
"""Sizes, coarse to fine, as shares of the working image."""

FINE_SIGMA, GROUND_SIGMA = 1.0, 4.0
"""Band of one level, in its px: finer is noise, coarser is the lamp's shading."""

RIM_PX = 3
MAX_ITERATIONS = 12
MIN_POINTS = 200
SPREAD_POINTS = 1_500
MAX_POINTS = 6_000
"""Only the px of the steepest grey take part: flat ones say nothing and cost as much."""

STOP_PX = 0.015
TUKEY = 4.0
MIN_OVERLAP = 0.15
CELLS = 7
STRAY_PX = 1.0
"""How far a cell may stray from the motion of the whole, working px: more than any model leaves."""

PERSPECTIVE_SIGMA = 0.01
"""Prior of a pair's two perspective terms, view radius 1: one per cent across the view."""


@dataclass(frozen=True)
class DirectView:
    """A frame prepared for direct alignment: per level the image and where it may be trusted."""

    images: tuple[ArrayF32, ...]
    masks: tuple[ArrayBool, ...]

    @cached_property
    def layers(self) -> tuple[_Layer, ...]:
        """The levels as both sides of an alignment need them, worked out once a frame."""
        return tuple(_Layer.of(i, m) for i, m in zip(self.images, self.masks, strict=True))


@dataclass(frozen=True, slots=True)
class _Layer:
    """One level of a view.

    Attributes:
        image: (h, w) float32; seen: (h, w) uint8, where it may be trusted.
        unit: (3, 3), unit coordinates (middle of the image, radius 1) to px.
        points: (3, N) float64, homogeneous unit coordinates of the px that take part.
        value: (N,) float32, the image there; gradient: (2, N) float32, its slope, 1 / px.
    """

    image: ArrayF32
    seen: ImageU8
    unit: ArrayF64
    points: ArrayF64
    value: ArrayF32
    gradient: ArrayF32

    @classmethod
    def of(cls, image: ArrayF32, mask: ArrayBool) -> _Layer:
        gradient_x = cv2.Sobel(image, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
        gradient_y = cv2.Sobel(image, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
        rows, columns = _telling(gradient_x**2 + gradient_y**2, mask)
        unit = unit_frame((image.shape[0], image.shape[1]))
        px = np.stack([columns, rows, np.ones(len(rows))]).astype(np.float64)
        return cls(
            image=image,
            seen=mask.astype(np.uint8),
            unit=unit,
            points=np.linalg.inv(unit) @ px,
            value=image[rows, columns],
            gradient=np.stack([gradient_x[rows, columns], gradient_y[rows, columns]]),
        )


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the grey values say about a pair.

    Attributes:
        matrix: (3, 3) float64, working px of a to working px of b.
        ncc: correlation over the overlap's agreeing px after alignment. Unrelated views reach
            0.3, for the motion was chosen to please.
        overlap: share of a's view that b shows.
        xy_a, xy_b: (P, 2) float32, middles of the cells of a that carry texture, and their places
            in b, working px.
        root_info: (P, 2, 2) float64, square roots R of each cell's information in the plane of b:
            ``R R^T`` is the inverse covariance of ``xy_b``, 1 / px2.
    """

    matrix: ArrayF64
    ncc: float
    overlap: float
    xy_a: ArrayF32
    xy_b: ArrayF32
    root_info: ArrayF64


def direct_view(grey: ArrayF32, mask: ArrayBool) -> DirectView:
    """Prepare a frame. grey: (h, w) float32 without the fixed pattern; mask: (h, w), trusted px."""
    images, masks = [], []
    for share in LEVELS:
        size = (max(8, round(grey.shape[1] * share)), max(8, round(grey.shape[0] * share)))
        small = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.float32)
        inside = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA) > 0.99
        images.append(_normalised(small, inside))
        # along the rim the band is one-sided
        rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
        masks.append(cv2.erode(inside.astype(np.uint8), rim, borderValue=1) > 0)
    return DirectView(tuple(images), tuple(masks))


def align_views(
    a: DirectView,
    b: DirectView,
    start: ArrayF64,
    *,
    generators: ArrayF64,
    work_shape: tuple[int, int],
    only_finest: bool = False,
) -> Alignment | None:
    """Refine ``start``, (3, 3) working px of a to b; None where they hardly overlap or it fails.

    Args:
        generators: (K, 3, 3), the directions in which the motion may change, view radius 1.
        work_shape: (h, w) of the working image.
        only_finest: the start is near already.
    """
    unit = unit_frame(work_shape)
    state = np.linalg.inv(unit) @ start @ unit
    last: _Level | None = None
    levels = list(zip(a.layers, b.layers, strict=True))
    for layer_a, layer_b in levels[-1:] if only_finest else levels:
        last = _Level(layer_a, layer_b, generators)
        found = last.solve(state)
        if found is None:
            return None
        state = found
    return None if last is None else last.describe(state, unit)


def unit_frame(shape: tuple[int, int]) -> ArrayF64:
    """(3, 3): unit coordinates (middle of the image, radius 1) to px of an image of that shape."""
    radius = 0.5 * max(shape)
    return np.array([[radius, 0, (shape[1] - 1) / 2], [0, radius, (shape[0] - 1) / 2], [0, 0, 1.0]])


class _Level:
    """One level of the pyramid; motions in unit coordinates, ``state`` maps a to b."""

    def __init__(self, a: _Layer, b: _Layer, generators: ArrayF64) -> None:
        self.generators = generators
        self.coefficients = np.linalg.pinv(generators.reshape(len(generators), 9))
        self.ahead, self.behind = _Side(a, b, generators), _Side(b, a, generators)
        # the prior acts on the perspective terms only, which are the last two of eight
        self.prior = np.zeros(len(generators))
        if len(generators) == 8:
            self.prior[6:] = 1 / PERSPECTIVE_SIGMA**2

    def solve(self, state: ArrayF64) -> ArrayF64 | None:
        """Gauss-Newton; None where the views hardly overlap."""
        for _ in range(MAX_ITERATIONS):
            ahead, behind = self._samples(state)
            if ahead is None or behind is None:
                return None
            step = self._step(state, ahead, behind)
            if step is None:
                return None
            change = np.eye(3) + np.einsum("k,kij->ij", step, self.generators)
            state = state @ np.linalg.inv(change)
            state = state / state[2, 2]
            if float(np.abs(step).max()) * self.ahead.radius_px < STOP_PX:
                break
        return state if np.isfinite(state).all() else None

    def _samples(self, state: ArrayF64) -> tuple[_Sample | None, _Sample | None]:
        back = np.asarray(np.linalg.inv(state), np.float64)
        return self.ahead.sample(state), self.behind.sample(back)

    def _step(self, state: ArrayF64, ahead: _Sample, behind: _Sample) -> ArrayF64 | None:
        """(K,) by which a's points move to fit b, both ways of looking at it taken together."""
        normal, right = self.ahead.equations(ahead)
        back_normal, back_right = self.behind.equations(behind)
        # b's points move against a's, seen through the motion between them
        turned = state @ self.generators @ np.linalg.inv(state)
        turned = turned - turned[:, 2:, 2:] * np.eye(3)
        along = -(turned.reshape(-1, 9) @ self.coefficients).T
        normal = normal + along.T @ back_normal @ along
        right = right + along.T @ back_right
        normal[np.diag_indices(len(normal))] += 1e-4 * np.diag(normal) + 1e-7 * np.trace(normal)
        normal += np.diag(self.prior * (ahead.spread**2 + behind.spread**2))
        try:
            return np.asarray(np.linalg.solve(normal, right), np.float64)
        except np.linalg.LinAlgError:
            return None

    def describe(self, state: ArrayF64, unit: ArrayF64) -> Alignment | None:
        ahead, behind = self._samples(state)
        if ahead is None or behind is None:
            return None
        cells = self._cells(state, ahead, behind)
        in_b = state @ np.vstack([cells.middle.T, np.ones(len(cells.middle))])
        xy_a = cells.middle * unit[0, 0] + unit[:2, 2]
        xy_b = (in_b[:2] / in_b[2]).T * unit[0, 0] + unit[:2, 2]
        # correlated residuals: a px tells less than an independent sample would
        scale = unit[0, 0] / self.ahead.radius_px
        whiten = 1 / (ahead.spread * scale * 2 * np.sqrt(np.pi) * FINE_SIGMA)
        info = cells.tensor * whiten**2
        shift = np.linalg.solve(
            info + np.eye(2) / STRAY_PX**2, cells.pull[:, :, None] * whiten**2 * scale
        )[:, :, 0]
        keep = np.trace(cells.tensor, axis1=1, axis2=2) > 1e-6
        matrix = unit @ state @ np.linalg.inv(unit)
        return Alignment(
            matrix=np.asarray(matrix / matrix[2, 2], np.float64),
            ncc=0.5 * (self.ahead.ncc(ahead) + self.behind.ncc(behind)),
            overlap=0.5 * (ahead.overlap + behind.overlap),
            xy_a=xy_a[keep].astype(np.float32),
            xy_b=(xy_b + shift)[keep].astype(np.float32),
            root_info=_roots(info[keep]),
        )

    def _cells(self, state: ArrayF64, ahead: _Sample, behind: _Sample) -> _Cells:
        """Both sides' points, sorted into the cells of a's view, their slopes as seen in b."""
        back = np.linalg.inv(state)
        seen = back @ self.behind.layer.points
        jacobian = state[:2, :2] - np.outer(state[:2, 2], state[2, :2])
        slope = np.linalg.inv(jacobian).T @ self.ahead.layer.gradient
        return _Cells.of(
            np.hstack([self.ahead.layer.points[:2], seen[:2] / seen[2]]),
            np.hstack([slope, self.behind.layer.gradient]),
            weight=0.5 * np.concatenate([ahead.weight, behind.weight]),
            lack=np.concatenate([-ahead.residual, behind.residual]),
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    """The other view at a side's points: (N,) difference, (N,) weight, the differences' spread."""

    residual: ArrayF32
    weight: ArrayF32
    spread: float

    @property
    def overlap(self) -> float:
        return float((self.weight > 0).mean())


class _Side:
    """One view's points, looked up in the other view."""

    def __init__(self, layer: _Layer, other: _Layer, generators: ArrayF64) -> None:
        self.layer, self.other = layer, other
        self.radius_px = float(layer.unit[0, 0])
        self.points_32 = layer.points.astype(np.float32)
        x, y = layer.points[0], layer.points[1]
        columns = []
        for generator in generators:
            moved = generator @ layer.points
            dx, dy = moved[0] - x * moved[2], moved[1] - y * moved[2]
            columns.append(layer.gradient[0] * dx + layer.gradient[1] * dy)
        # (N, K): change of the view's value by each parameter
        self.descent = np.asarray(np.stack(columns, axis=1) * self.radius_px, np.float32)

    def sample(self, state: ArrayF64) -> _Sample | None:
        """Compare, ``state`` mapping this view to the other; None where they hardly overlap."""
        if len(self.layer.value) < MIN_POINTS:
            return None
        mapped = (self.other.unit @ state).astype(np.float32) @ self.points_32
        x, y = mapped[:1] / mapped[2], mapped[1:2] / mapped[2]
        warped = cv2.remap(self.other.image, x, y, cv2.INTER_LINEAR)[0]
        seen = cv2.remap(self.other.seen, x, y, cv2.INTER_NEAREST)[0] > 0
        if seen.sum() < max(MIN_POINTS, MIN_OVERLAP * len(seen)):
            return None
        residual = warped - self.layer.value
        inside = residual[seen]
        some = inside[:: max(1, len(inside) // SPREAD_POINTS)]
        spread = max(1.4826 * float(np.median(np.abs(some - np.median(some)))), 1e-3)
        ratio = np.clip(np.abs(residual) / (TUKEY * spread), 0, 1)
        weight = np.where(seen, (1 - ratio**2) ** 2, 0).astype(np.float32)
        return _Sample(residual.astype(np.float32), weight, spread)

    def equations(self, found: _Sample) -> tuple[ArrayF64, ArrayF64]:
        """(K, K) and (K,): the weighted normal equations of this side's own increments."""
        weighted = self.descent * found.weight[:, None]
        normal = (weighted.T @ self.descent).astype(np.float64)
        return normal, (weighted.T @ found.residual).astype(np.float64)

    def ncc(self, found: _Sample) -> float:
        """Correlation over the px that agree."""
        return _ncc(self.layer.value, found.residual + self.layer.value, found.weight > 0)


def _telling(energy: ArrayF32, mask: ArrayBool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of at most ``MAX_POINTS`` px of the mask, those of the steepest grey."""
    inside = np.flatnonzero(mask)
    if len(inside) > MAX_POINTS:
        strength = energy.ravel()[inside]
        chosen = np.argpartition(strength, len(inside) - MAX_POINTS)[-MAX_POINTS:]
        inside = np.sort(inside[chosen])
    return np.divmod(inside, mask.shape[1])


@dataclass(frozen=True, slots=True)
class _Cells:
    """What the px of each of C cells say of its place in b.

    Attributes:
        middle: (C, 2), unit coordinates of a, weighted by slope.
        tensor: (C, 2, 2), structure tensor; pull: (C, 2), by which the cell wants to move beyond
            the common motion: ``tensor^-1 pull`` px of the level, in b.
    """

    middle: ArrayF64
    tensor: ArrayF64
    pull: ArrayF64

    @classmethod
    def of(cls, points: ArrayF64, slope: ArrayF64, *, weight: ArrayF64, lack: ArrayF64) -> _Cells:
        column, row = np.clip((points + 1) / 2 * CELLS, 0, CELLS - 1).astype(np.int64)
        cells, cell = np.unique(row * CELLS + column, return_inverse=True)

        def total(values: ArrayF64) -> ArrayF64:
            return np.bincount(cell, weight * values, len(cells)).astype(np.float64)

        x, y = slope
        energy = x * x + y * y
        mass = np.maximum(total(energy), 1e-12)[:, None]
        xx, xy, yy = total(x * x), total(x * y), total(y * y)
        return cls(
            middle=np.stack([total(energy * points[0]), total(energy * points[1])], axis=1) / mass,
            tensor=np.stack([np.stack([xx, xy], axis=1), np.stack([xy, yy], axis=1)], axis=1),
            pull=np.stack([total(x * lack), total(y * lack)], axis=1),
        )


def _roots(info: ArrayF64) -> ArrayF64:
    """(P, 2, 2) R with ``R R^T`` the information."""
    values, vectors = np.linalg.eigh(info)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[:, None, :], np.float64)


def _ncc(a: ArrayF32, b: ArrayF32, both: ArrayBool) -> float:
    x, y = a[both] - a[both].mean(), b[both] - b[both].mean()
    return float((x * y).sum()) / max(float(np.sqrt((x * x).sum() * (y * y).sum())), 1e-9)


def _normalised(image: ArrayF32, inside: ArrayBool) -> ArrayF32:
    """Band-passed, divided by the local contrast, zero outside."""
    mass = inside.astype(np.float32)

    def local_mean(values: ArrayF32, sigma: float) -> ArrayF32:
        blurred = cv2.GaussianBlur(values * mass, (0, 0), sigma)
        return np.asarray(blurred / np.maximum(cv2.GaussianBlur(mass, (0, 0), sigma), 1e-3))

    band = local_mean(image, FINE_SIGMA) - local_mean(image, GROUND_SIGMA)
    contrast = np.sqrt(local_mean(band * band, 3 * GROUND_SIGMA))
    usual = float(np.median(contrast[inside])) if inside.any() else 1.0
    return np.asarray(band / (contrast + 0.5 * max(usual, 1e-3)) * mass, np.float32)
