"""Direct alignment: the motion between two frames from their grey values, no key point needed.

Inverse-compositional Lucas-Kanade on band-passed, locally normalised images whose fixed pattern
was taken off, coarse to fine, with robust weights. Where texture is thin it finds what key points
miss, and it places well-textured pairs to a fraction of what a key point is good for.

Source: Baker and Matthews 2004, section 3.2 (inverse compositional), section 4 (weights).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayBool, ArrayF32, ArrayF64

LEVELS = (0.25, 0.5)
"""Sizes, coarse to fine, as shares of the working image."""

FINE_SIGMA, GROUND_SIGMA = 1.0, 4.0
"""Band of one level, in its px: finer is noise, coarser is the lamp's shading."""

RIM_PX = 3
MAX_ITERATIONS = 12
MIN_POINTS = 200
SPREAD_POINTS = 1_500
MAX_POINTS = 10_000
"""Only the px of the steepest grey take part: flat ones say nothing and cost as much."""

STOP_PX = 0.015
TUKEY = 4.0
MIN_OVERLAP = 0.15
CELLS = 7
PERSPECTIVE_SIGMA = 0.01
"""Prior of a pair's two perspective terms, view radius 1: one per cent across the view."""


@dataclass(frozen=True, slots=True)
class DirectView:
    """A frame prepared for direct alignment: per level the image and where it may be trusted."""

    images: tuple[ArrayF32, ...]
    masks: tuple[ArrayBool, ...]


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
    levels = list(zip(a.images, a.masks, b.images, b.masks, strict=True))
    for image_a, mask_a, image_b, mask_b in levels[-1:] if only_finest else levels:
        last = _Level(image_a, mask_a, image_b, mask_b, generators)
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
    """One level of the pyramid; motions in unit coordinates."""

    def __init__(
        self,
        image_a: ArrayF32,
        mask_a: ArrayBool,
        image_b: ArrayF32,
        mask_b: ArrayBool,
        generators: ArrayF64,
    ) -> None:
        self.image_b, self.mask_b = image_b, mask_b.astype(np.uint8)
        self.generators = generators
        self.unit = unit_frame((image_a.shape[0], image_a.shape[1]))
        gradient_x = cv2.Sobel(image_a, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
        gradient_y = cv2.Sobel(image_a, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
        rows, columns = _telling(gradient_x**2 + gradient_y**2, mask_a)
        self.px = np.stack([columns, rows], axis=1).astype(np.float32)
        self.template = image_a[rows, columns]
        back = np.linalg.inv(self.unit)
        self.points = np.stack(
            [
                self.px[:, 0] * back[0, 0] + back[0, 2],
                self.px[:, 1] * back[1, 1] + back[1, 2],
                np.ones(len(rows)),
            ]
        )
        self.points_32 = self.points.astype(np.float32)
        self.gradient = np.stack(
            [gradient_x[rows, columns], gradient_y[rows, columns]], axis=1
        ).astype(np.float64)
        self.descent = self._descent()
        # the prior acts on the perspective terms only, which are the last two of eight
        self.prior = np.zeros(len(generators))
        if len(generators) == 8:
            self.prior[6:] = 1 / PERSPECTIVE_SIGMA**2

    def _descent(self) -> ArrayF32:
        """(N, K): change of the template's value by each parameter."""
        x, y = self.points[0], self.points[1]
        columns = []
        for generator in self.generators:
            moved = generator @ self.points
            dx, dy = moved[0] - x * moved[2], moved[1] - y * moved[2]
            columns.append(self.gradient[:, 0] * dx + self.gradient[:, 1] * dy)
        return np.asarray(np.stack(columns, axis=1) * self.unit[0, 0], np.float32)

    def solve(self, state: ArrayF64) -> ArrayF64 | None:
        for _ in range(MAX_ITERATIONS):
            sampled = self._sample(state)
            if sampled is None:
                return None
            residual, weight = sampled[:2]
            weighted = self.descent * weight[:, None]
            normal = (weighted.T @ self.descent).astype(np.float64)
            normal += np.diag(self.prior * sampled[2] ** 2)
            right = (weighted.T @ residual).astype(np.float64)
            normal[np.diag_indices(len(normal))] += 1e-4 * np.diag(normal) + 1e-7 * np.trace(normal)
            try:
                step = np.linalg.solve(normal, right)
            except np.linalg.LinAlgError:
                return None
            change = np.eye(3) + np.einsum("k,kij->ij", step, self.generators)
            state = state @ np.linalg.inv(change)
            state = state / state[2, 2]
            if float(np.abs(step).max()) * self.unit[0, 0] < STOP_PX:
                break
        return state if np.isfinite(state).all() else None

    def _sample(self, state: ArrayF64) -> tuple[ArrayF32, ArrayF32, float] | None:
        """Residual and weight of each px of a, and the residuals' spread; None: no overlap."""
        if len(self.template) < MIN_POINTS:
            return None
        xy = self._project(state)
        x, y = xy[:1], xy[1:]
        warped = cv2.remap(self.image_b, x, y, cv2.INTER_LINEAR)[0]
        seen = cv2.remap(self.mask_b, x, y, cv2.INTER_NEAREST)[0] > 0
        if seen.sum() < max(MIN_POINTS, MIN_OVERLAP * len(seen)):
            return None
        residual = warped - self.template
        inside = residual[seen]
        some = inside[:: max(1, len(inside) // SPREAD_POINTS)]
        spread = max(1.4826 * float(np.median(np.abs(some - np.median(some)))), 1e-3)
        ratio = np.clip(np.abs(residual) / (TUKEY * spread), 0, 1)
        weight = np.where(seen, (1 - ratio**2) ** 2, 0).astype(np.float32)
        return residual.astype(np.float32), weight, spread

    def _project(self, state: ArrayF64) -> ArrayF32:
        mapped = (self.unit @ state).astype(np.float32) @ self.points_32
        return np.asarray(mapped[:2] / mapped[2], np.float32)

    def describe(self, state: ArrayF64, unit: ArrayF64) -> Alignment | None:
        sampled = self._sample(state)
        if sampled is None:
            return None
        residual, weight, spread = sampled
        warped = residual + self.template
        matrix = unit @ state @ np.linalg.inv(unit)
        ncc = _ncc(self.template, warped, weight > 0)
        cells, inverse = self._cells(weight)
        scale = unit[0, 0] / self.unit[0, 0]
        middle, roots = _cell_information(
            self.points, self.gradient, weight, inverse, count=len(cells)
        )
        keep = (roots**2).sum(axis=(1, 2)) > 1e-6
        in_b = state @ np.vstack([middle.T, np.ones(len(middle))])
        xy_a = middle * unit[0, 0] + unit[:2, 2]
        xy_b = (in_b[:2] / in_b[2]).T * unit[0, 0] + unit[:2, 2]
        # correlated residuals: a px tells less than an independent sample would
        whiten = 1 / (spread * scale * 2 * np.sqrt(np.pi) * FINE_SIGMA)
        turned = _to_b(roots, state)
        return Alignment(
            matrix=np.asarray(matrix / matrix[2, 2], np.float64),
            ncc=ncc,
            overlap=float((weight > 0).mean()),
            xy_a=xy_a[keep].astype(np.float32),
            xy_b=xy_b[keep].astype(np.float32),
            root_info=turned[keep] * whiten,
        )

    def _cells(self, weight: ArrayF32) -> tuple[np.ndarray, np.ndarray]:
        column = np.clip((self.points[0] + 1) / 2 * CELLS, 0, CELLS - 1).astype(np.int64)
        row = np.clip((self.points[1] + 1) / 2 * CELLS, 0, CELLS - 1).astype(np.int64)
        cells, inverse = np.unique(row * CELLS + column, return_inverse=True)
        return cells, inverse


def _telling(energy: ArrayF32, mask: ArrayBool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of at most ``MAX_POINTS`` px of the mask, those of the steepest grey."""
    inside = np.flatnonzero(mask)
    if len(inside) > MAX_POINTS:
        strength = energy.ravel()[inside]
        chosen = np.argpartition(strength, len(inside) - MAX_POINTS)[-MAX_POINTS:]
        inside = np.sort(inside[chosen])
    return np.divmod(inside, mask.shape[1])


def _cell_information(
    points: ArrayF64, gradient: ArrayF64, weight: ArrayF32, cell: np.ndarray, *, count: int
) -> tuple[ArrayF64, ArrayF64]:
    """Per cell the weighted middle (C, 2) and the root of its structure tensor (C, 2, 2)."""

    def total(values: ArrayF64) -> ArrayF64:
        return np.bincount(cell, values, count).astype(np.float64)

    gx, gy = gradient[:, 0], gradient[:, 1]
    energy = weight * (gx * gx + gy * gy)
    mass = np.maximum(total(energy), 1e-12)
    middle = np.stack([total(energy * points[0]) / mass, total(energy * points[1]) / mass], axis=1)
    tensor = np.empty((count, 2, 2))
    tensor[:, 0, 0], tensor[:, 1, 1] = total(weight * gx * gx), total(weight * gy * gy)
    tensor[:, 0, 1] = tensor[:, 1, 0] = total(weight * gx * gy)
    values, vectors = np.linalg.eigh(tensor)
    roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    return middle, np.asarray(roots, np.float64)


def _to_b(roots: ArrayF64, state: ArrayF64) -> ArrayF64:
    """Information of displacements in a, carried to displacements in b: ``J^-T R``."""
    inverse = np.linalg.inv(state[:2, :2] - np.outer(state[:2, 2], state[2, :2]))
    return np.asarray(np.einsum("ji,cjk->cik", inverse, roots), np.float64)


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
