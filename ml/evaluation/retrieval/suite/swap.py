"""The stain swap: each patient of a gallery in the measured stains of another patient.

Vectors, strengths and glass are exchanged by a map that is linear in optical density, which leaves
the structure unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.sets import Item
from ml.roi.stain.deconvolution import StainEstimate, with_residual
from ml.roi.stain.estimate import estimate_stain_of_image
from ml.types import ArrayF64, ImageU8

_IMAGES = 12
"""Number of images on which the stains of a patient are measured."""


@dataclass(frozen=True, slots=True)
class Stained:
    """A stain batch and its stains.

    Attributes:
        name: of a patient, or of one section.
        patient: of the batch.
    """

    name: str
    patient: str
    stains: StainEstimate


@dataclass(frozen=True, slots=True)
class Recolouring:
    """Recolouring from the stains of one patient to those of another.

    Attributes:
        od: (3, 3) float64, see ``od_map``.
        glass: (2, 3) float64, log10(RGB + 1) of the empty glass before and after.
    """

    od: ArrayF64
    glass: ArrayF64

    def as_bytes(self) -> bytes:
        """Bytes for the key of a cache."""
        return self.od.tobytes() + self.glass.tobytes()


def measure_stains(items: Sequence[Item], pixels: Sequence[ImageU8]) -> tuple[Stained, ...]:
    """Measure the stains of each stain batch, in order of names.

    Args:
        items, pixels: in the same order; pixels are (H, W, 3) uint8 each.
    """
    of_name: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        of_name.setdefault(item.stained, []).append(number)
    return tuple(
        Stained(
            name,
            items[members[0]].patient,
            estimate_stain_of_image(montage([pixels[i] for i in _farthest_first(members)])),
        )
        for name, members in sorted(of_name.items())
    )


def montage(images: Sequence[ImageU8]) -> ImageU8:
    """Images side by side, each cut to the smallest height."""
    height = min(image.shape[0] for image in images)
    return np.concatenate([image[:height] for image in images], axis=1)


def drawn_donors(
    stained: Sequence[Stained], donors: Sequence[Stained], *, draw: int, seed: int
) -> dict[str, Stained]:
    """Draw for each of ``stained`` a donor of another patient.

    Args:
        draw: number of the draw, from 1.
    Raises:
        BadInputError: there is no other patient.
    """
    out = {}
    for unit in stained:
        candidates = [donor for donor in donors if donor.patient != unit.patient]
        if not candidates:
            raise BadInputError(f"stain swap: the suite has no other patient than {unit.patient}")
        # Seeded by name: another set without donors does not change the draws.
        rng = np.random.default_rng([seed, draw, *unit.name.encode()])
        out[unit.name] = candidates[int(rng.integers(len(candidates)))]
    return out


def recolourings(
    stained: Sequence[Stained], donors: Mapping[str, Stained]
) -> dict[str, Recolouring]:
    """Recolouring of each stain batch."""
    return {
        unit.name: Recolouring(
            od_map(unit.stains, donors[unit.name].stains),
            np.log10(np.array([unit.stains.white, donors[unit.name].stains.white]) + 1),
        )
        for unit in stained
    }


def od_map(estimate: StainEstimate, donor: StainEstimate) -> ArrayF64:
    """(3, 3) map of optical densities (row vectors) from one patient's stains to another's.

    Haematoxylin and eosin change vector and strength; the residual keeps its strength.
    """
    gain = np.append(donor.scale / estimate.scale, 1.0)
    unmix = np.linalg.inv(with_residual(estimate.matrix))
    return np.asarray(unmix @ np.diag(gain) @ with_residual(donor.matrix))


def restained(image: ImageU8, change: Recolouring) -> ImageU8:
    """Recolour an image (H, W, 3) uint8 RGB."""
    levels = np.log10(np.arange(256, dtype=np.float32) + 1)
    before, after = change.glass.astype(np.float32)
    density = after - (before - levels[image]) @ change.od.astype(np.float32)
    # Half a level up to round, one down for the + 1 of the densities.
    return np.clip(np.power(np.float32(10), density) - 0.5, 0, 255).astype(np.uint8)


def _farthest_first(members: Sequence[int]) -> list[int]:
    chosen = np.linspace(0, len(members) - 1, min(len(members), _IMAGES)).round().astype(int)
    return [members[i] for i in chosen]
