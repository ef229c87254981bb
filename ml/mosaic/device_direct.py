"""``direct`` on a device: many pairs of views aligned at once.

The same Gauss-Newton steps on the same px. Values between px are exact here (OpenCV rounds to a
thirty-second of a px), and the spread of the differences is that of all px, not of some: a motion
agrees with the processor's to a twentieth of a working px across the view. Equations are solved in
float64, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from ml.mosaic.differences import TUKEY
from ml.mosaic.direct import (
    CELLS,
    MAX_ITERATIONS,
    MIN_OVERLAP,
    MIN_POINTS,
    PERSPECTIVE_SIGMA,
    STOP_PX,
    CellSums,
    DirectAlignment,
    Fit,
    described,
)
from ml.mosaic.direct_views import DirectView, LevelView, unit_frame
from ml.networks.device import Compute, in_batches
from ml.types import ArrayF64

PAIRS = 64
"""Aligned at once: their px and slopes are some 100 MB."""

ViewPair = tuple[DirectView, DirectView, ArrayF64]
"""Views a and b, and (3, 3) the start, working px of a to those of b."""


def align_on(
    compute: Compute,
    pairs: Sequence[ViewPair],
    *,
    generators: ArrayF64,
    work_shape: tuple[int, int],
    only_finest: bool = False,
) -> list[DirectAlignment | None]:
    """What ``align_views`` finds for each pair; views of one size.

    Args:
        generators, work_shape, only_finest: as in ``align_views``.
    """

    def step(part: slice) -> list[DirectAlignment | None]:
        with torch.inference_mode():
            batch = _Batch(compute, pairs[part], generators, work_shape)
            return batch.aligned(only_finest=only_finest)

    return [found for part in in_batches(step, len(pairs), PAIRS) for found in part]


class _Level(NamedTuple):
    """One level of V views.

    Attributes:
        image, seen: (V, 1, h, w) float32. unit: (3, 3) float64. radius_px: px per unit.
        points: (V, 3, N) float32, padded; is_point: (V, N) bool, where they are not.
        value: (V, N). gradient: (V, 2, N). descent: (V, N, K), see ``direct``.
    """

    image: Tensor
    seen: Tensor
    unit: Tensor
    radius_px: float
    points: Tensor
    is_point: Tensor
    value: Tensor
    gradient: Tensor
    descent: Tensor


class _Residual(NamedTuple):
    """One view's px, looked up in the other: (B, N) differences and weights, (B,) the rest."""

    residual: Tensor
    weight: Tensor
    spread: Tensor
    overlap: Tensor
    is_seen: Tensor


class _Batch:
    """B pairs of views; ``state``, (B, 3, 3) float64, maps unit coordinates of a to b."""

    def __init__(
        self,
        compute: Compute,
        pairs: Sequence[ViewPair],
        generators: ArrayF64,
        work_shape: tuple[int, int],
    ) -> None:
        self.compute, self.unit = compute, unit_frame(work_shape)
        views = {id(view): view for a, b, _ in pairs for view in (a, b)}
        row = {name: i for i, name in enumerate(views)}
        self.views = list(views.values())
        self.a, self.b = (self._rows([row[id(pair[side])] for pair in pairs]) for side in (0, 1))
        inverse = np.linalg.inv(self.unit)
        self.state = self._exact([inverse @ start @ self.unit for _, _, start in pairs])
        self.alive = torch.ones(len(pairs), dtype=torch.bool, device=compute.device)
        self.generators = self._exact(generators)
        self.coefficients = self._exact(np.linalg.pinv(generators.reshape(len(generators), 9)))
        prior = np.zeros(len(generators))
        if len(generators) == 8:  # on the two perspective terms, as in ``direct``
            prior[6:] = 1 / PERSPECTIVE_SIGMA**2
        self.prior = self._exact(prior)

    def aligned(self, *, only_finest: bool) -> list[DirectAlignment | None]:
        """Coarse to fine, then what the finest level says."""
        count = len(self.views[0].levels)
        for number in range(count - 1 if only_finest else 0, count):
            level = self._level([view.levels[number] for view in self.views])
            self._solve(level)
        return self._described(level)

    def _solve(self, level: _Level) -> None:
        """Gauss-Newton; a pair whose steps have become small stays where it is."""
        moving = self.alive.clone()
        for _ in range(MAX_ITERATIONS):
            ahead, behind = self._sides(level)
            self.alive &= ~moving | (ahead.is_seen & behind.is_seen)
            step, is_solved = self._step(level, ahead, behind)
            self.alive &= ~moving | is_solved
            moving &= self.alive
            change = torch.eye(3, dtype=torch.float64, device=step.device)
            change = change + torch.einsum("bk,kij->bij", step, self.generators)
            state = self.state @ torch.linalg.inv_ex(change).inverse
            state = state / state[:, 2:, 2:]
            self.state = torch.where(moving[:, None, None], state, self.state)
            moving &= step.abs().amax(dim=1) * level.radius_px >= STOP_PX
            if not bool(moving.any()):
                break
        self.alive &= self.state.isfinite().all(dim=2).all(dim=1)

    def _sides(self, level: _Level) -> tuple[_Residual, _Residual]:
        back = torch.linalg.inv_ex(self.state).inverse
        return (
            self._side(level, self.a, self.b, self.state),
            self._side(level, self.b, self.a, back),
        )

    def _side(self, level: _Level, own: Tensor, other: Tensor, state: Tensor) -> _Residual:
        mapped = (level.unit @ state).float() @ level.points[own]
        last = [level.image.shape[3] - 1, level.image.shape[2] - 1]
        size = torch.tensor(last, device=mapped.device).clamp(min=1)
        grid = (2 * (mapped[:, :2] / mapped[:, 2:]).mT / size - 1)[:, None]
        grid = grid.nan_to_num(nan=-9.0, posinf=9.0, neginf=-9.0).clamp(-9, 9)
        found = functional.grid_sample(level.image[other], grid, align_corners=True)[:, 0, 0]
        trusted = functional.grid_sample(
            level.seen[other], grid, mode="nearest", align_corners=True
        )[:, 0, 0]
        is_point = level.is_point[own]
        seen = (trusted > 0.5) & is_point
        count, whole = seen.sum(dim=1), is_point.sum(dim=1)
        residual = found - level.value[own]
        spread = spread_where(residual, seen)
        ratio = (residual.abs() / (TUKEY * spread[:, None])).clamp(0, 1)
        weight = torch.where(seen, (1 - ratio**2) ** 2, 0.0)
        is_seen = (whole >= MIN_POINTS) & (count >= (MIN_OVERLAP * whole).clamp(min=MIN_POINTS))
        overlap = (weight > 0).sum(dim=1) / whole.clamp(min=1)
        return _Residual(residual, weight, spread, overlap, is_seen)

    def _step(self, level: _Level, ahead: _Residual, behind: _Residual) -> tuple[Tensor, Tensor]:
        """(B, K) by which a's points move to fit b, and (B,) where there is such a step."""
        normal, right = _equations(level.descent[self.a], ahead)
        back_normal, back_right = _equations(level.descent[self.b], behind)
        inverse = torch.linalg.inv_ex(self.state).inverse
        turned = self.state[:, None] @ self.generators @ inverse[:, None]
        eye = torch.eye(3, dtype=torch.float64, device=turned.device)
        turned = turned - turned[:, :, 2:, 2:] * eye
        along = -(turned.flatten(2) @ self.coefficients).mT
        normal = normal + along.mT @ back_normal @ along
        right = right + (along.mT @ back_right[:, :, None])[:, :, 0]
        diagonal = normal.diagonal(dim1=1, dim2=2)
        more = 1e-4 * diagonal + 1e-7 * diagonal.sum(dim=1, keepdim=True)
        variance = ahead.spread.double() ** 2 + behind.spread.double() ** 2
        normal = normal + torch.diag_embed(more + self.prior * variance[:, None])
        found = torch.linalg.solve_ex(normal, right[:, :, None])
        step = found.result[:, :, 0]
        is_solved = (found.info == 0) & step.isfinite().all(dim=1)
        return torch.where(is_solved[:, None], step, 0.0), is_solved

    def _described(self, level: _Level) -> list[DirectAlignment | None]:
        ahead, behind = self._sides(level)
        self.alive &= ahead.is_seen & behind.is_seen
        sums = self._cells(level, ahead, behind).double().cpu().numpy()
        ncc = 0.5 * (_ncc(level.value[self.a], ahead) + _ncc(level.value[self.b], behind))
        overlap = 0.5 * (ahead.overlap + behind.overlap)
        one = torch.stack([ahead.spread, ncc, overlap], dim=1).double().cpu().numpy()
        states, alive = self.state.cpu().numpy(), self.alive.cpu().numpy()
        return [
            described(_cell_sums(sums[i]), states[i], self.unit, _fit(one[i], level.radius_px))
            if alive[i]
            else None
            for i in range(len(states))
        ]

    def _cells(self, level: _Level, ahead: _Residual, behind: _Residual) -> Tensor:
        """(B, 8, C): what ``CellSums.of`` sums up, of both sides' px."""
        points_a, points_b = level.points[self.a], level.points[self.b]
        back = torch.linalg.inv_ex(self.state).inverse.float() @ points_b
        points = torch.cat([points_a[:, :2], back[:, :2] / back[:, 2:]], dim=2)
        jacobian = self.state[:, :2, :2] - self.state[:, :2, 2:] @ self.state[:, 2:, :2]
        turned = torch.linalg.inv_ex(jacobian).inverse.mT.float()
        x, y = torch.cat([turned @ level.gradient[self.a], level.gradient[self.b]], dim=2).unbind(1)
        weight = 0.5 * torch.cat([ahead.weight, behind.weight], dim=1)
        lack = torch.cat([-ahead.residual, behind.residual], dim=1)
        column, row = ((points + 1) / 2 * CELLS).nan_to_num().clamp(0, CELLS - 1).long().unbind(1)
        energy = x * x + y * y
        where = (energy, energy * points[:, 0], energy * points[:, 1])
        parts = torch.stack([*where, x * x, x * y, y * y, x * lack, y * lack], dim=1)
        values = torch.where(weight[:, None] > 0, parts * weight[:, None], 0.0)
        sums = torch.zeros(len(values), parts.shape[1], CELLS**2, device=values.device)
        cell = (row * CELLS + column)[:, None].expand(-1, parts.shape[1], -1)
        return sums.scatter_add_(2, cell, values)

    def _level(self, views: Sequence[LevelView]) -> _Level:
        longest = max(len(view.value) for view in views)
        radius_px = float(views[0].unit[0, 0])
        points = self._padded([view.points for view in views], longest)
        value, *gradient = self._padded(
            [np.concatenate([view.value[None], view.gradient]) for view in views], longest
        ).unbind(1)
        slope = torch.stack(gradient, dim=1)
        counts = self._rows([len(view.value) for view in views])
        is_point = torch.arange(longest, device=counts.device) < counts[:, None]
        points[:, 2] = 1.0  # beyond the last of a view's points as well: nothing is divided by 0
        moved = self.generators.float()[None] @ points[:, None]
        turn = moved[:, :, :2] - points[:, None, :2] * moved[:, :, 2:]
        descent = (slope[:, None] * turn).sum(dim=2).mT * radius_px
        return _Level(
            image=self._padded([view.image[None] for view in views]),
            seen=self._padded([view.seen[None] for view in views]),
            unit=self._exact(views[0].unit),
            radius_px=radius_px,
            points=points,
            is_point=is_point,
            value=value,
            gradient=slope,
            descent=descent,
        )

    def _padded(self, rows: Sequence[np.ndarray], width: int | None = None) -> Tensor:
        """The arrays as one, float32, each filled up with zeros to ``width`` columns."""
        shape = (*rows[0].shape[:-1], width or rows[0].shape[-1])
        out = np.zeros((len(rows), *shape), np.float32)
        for i, one in enumerate(rows):
            out[i, ..., : one.shape[-1]] = one
        return self.compute.sent(out)

    def _rows(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, device=self.compute.device)

    def _exact(self, values: npt.ArrayLike) -> Tensor:
        rows = np.asarray(values, np.float64)
        return torch.from_numpy(rows).to(self.compute.device)


def spread_where(residual: Tensor, seen: Tensor) -> Tensor:
    """(B,): 1.4826 times the median distance of the seen differences from their median."""
    known = torch.where(seen, residual, torch.nan)
    middle = known.nanmedian(dim=1, keepdim=True).values
    apart = (known - middle).abs().nanmedian(dim=1).values
    return (1.4826 * apart).nan_to_num(nan=1.0).clamp(min=1e-3)


def _equations(descent: Tensor, side: _Residual) -> tuple[Tensor, Tensor]:
    """(B, K, K) and (B, K) float64: the weighted normal equations of a side's own increments."""
    weighted = descent * side.weight[:, :, None]
    right = (weighted * side.residual[:, :, None]).sum(dim=1)
    return (weighted.mT @ descent).double(), right.double()


def _ncc(value: Tensor, side: _Residual) -> Tensor:
    """(B,): correlation over the px that agree."""
    both = (side.weight > 0).float()
    count = both.sum(dim=1, keepdim=True).clamp(min=1)
    x, y = value * both, (side.residual + value) * both
    x = (x - x.sum(dim=1, keepdim=True) / count) * both
    y = (y - y.sum(dim=1, keepdim=True) / count) * both
    length = (x.square().sum(dim=1) * y.square().sum(dim=1)).sqrt()
    return (x * y).sum(dim=1) / length.clamp(min=1e-9)


def _fit(values: ArrayF64, radius_px: float) -> Fit:
    spread, ncc, overlap = values.tolist()
    return Fit(spread, ncc, overlap, radius_px)


def _cell_sums(sums: ArrayF64) -> CellSums:
    energy, first, second, xx, xy, yy, *pull = sums
    middle = np.stack([first, second], axis=1) / np.maximum(energy, 1e-12)[:, None]
    tensor = np.stack([xx, xy, xy, yy], axis=1).reshape(-1, 2, 2)
    return CellSums(middle, tensor, np.stack(pull, axis=1))
