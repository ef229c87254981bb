"""Pairs of views aligned by grey values: one after the other, or many at once on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ml.keypoints.device import accelerator
from ml.mosaic.direct import DirectAlignment, align_views
from ml.types import ArrayF64

if TYPE_CHECKING:
    from ml.mosaic.device_direct import ViewPair


def pairs_at_once() -> int:
    """How many pairs are worth waiting for: 1 on a processor, which gains nothing by it."""
    if accelerator() is None:
        return 1
    from ml.mosaic.device_direct import PAIRS

    return PAIRS


def align_pairs(
    pairs: Sequence[ViewPair],
    *,
    generators: ArrayF64,
    work_shape: tuple[int, int],
    only_finest: bool = False,
) -> list[DirectAlignment | None]:
    """Of each pair (a, b, start) what ``align_views`` finds, on a GPU where there is one."""
    compute = accelerator()
    if compute is not None and pairs:
        from ml.mosaic.device_direct import align_on

        return align_on(
            compute,
            pairs,
            generators=generators,
            work_shape=work_shape,
            only_finest=only_finest,
        )
    return [
        align_views(
            a,
            b,
            start,
            generators=generators,
            work_shape=work_shape,
            only_finest=only_finest,
        )
        for a, b, start in pairs
    ]
