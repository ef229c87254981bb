"""Check that a published network is the one that an encoder was created with.

The file of an encoder does not contain the weights of published networks, only the vector of a
synthetic patch. It is computed again when the encoder is loaded, so that other weights, pooling or
preprocessing are rejected.
"""

from __future__ import annotations

import numpy as np

from ml.errors import WeightsError
from ml.roi.encoders.combined import CombinedEncoder
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.stain.deconvolution import published_stains
from ml.types import ArrayF32, ImageU8

TOLERANCE = 0.05
"""Largest relative distance of two vectors; half precision stays below a fifth of it."""


def probe_patch(side_px: int = 224) -> ImageU8:
    """Synthetic patch (side_px, side_px, 3) uint8: waves, blobs and noise in the colours of H&E.

    Integer arithmetic gives the same bytes on all machines.
    """
    y, x = np.mgrid[:side_px, :side_px].astype(np.int64)
    wave = np.abs((3 * x + 5 * y) % 120 - 60)
    blob = ((x % 37 - 18) ** 2 + (y % 41 - 20) ** 2 < 90) * 70
    noise = (x * x * 31 + y * y * 17 + x * y * 7) % 23
    planes = [225 - wave - blob + noise, 165 - wave // 2 - blob + noise, 205 - wave // 3 - noise]
    return np.asarray(np.clip(np.stack(planes, axis=2), 0, 255), np.uint8)


def probe_vector(patches: PatchEncoder | None) -> ArrayF32 | None:
    """Vector of the probe patch by the published network of an encoder; None if it has none."""
    parts = patches.parts if isinstance(patches, CombinedEncoder) else (patches,)
    published = [part for part in parts if isinstance(part, PublishedEncoder)]
    if not published:
        return None
    patch = probe_patch()
    return np.concatenate([part.encode([patch], published_stains(patch))[0] for part in published])


def check_probe(where: str, patches: PatchEncoder, expected: ArrayF32 | None) -> None:
    """Check the published networks of an encoder against the stored vector.

    Raises:
        WeightsError: The vectors differ, or only one of the two exists.
    """
    measured = probe_vector(patches)
    if measured is None and expected is None:
        return
    if measured is None or expected is None or measured.shape != expected.shape:
        raise WeightsError(
            f"{where}: it was made with another published network than {patches.name!r}"
        )
    distance = float(np.linalg.norm(measured - expected) / np.linalg.norm(expected))
    if not distance <= TOLERANCE:
        raise WeightsError(
            f"{where}: the weights of {patches.name!r} here are not those that it was made with: "
            f"their outputs differ by {distance:.0%}, expected at most {TOLERANCE:.0%}"
        )
