"""The stain swap: every patient of a gallery in the stains of another, so that colour says nothing.

Stains are measured, not made up: vectors, strengths and glass of one patient take the place of
those of another. The map is linear in optical density, so structure stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.sets import Item
from ml.roi.stain import StainEstimate, estimate_stain_of_image
from ml.roi.stain.deconvolution import with_residual
from ml.types import ArrayF64, ImageU8

_IMAGES = 12
"""Images that the stains of one patient are measured on, evenly among all of them."""


@dataclass(frozen=True, slots=True)
class Stained:
    """What was stained at once, and how.

    Attributes:
        name: of a patient, or of one section. patient: whose it is.
    """

    name: str
    patient: str
    stains: StainEstimate


@dataclass(frozen=True, slots=True)
class Recolouring:
    """From one patient's stains to another's.

    Attributes:
        od: (3, 3) float64, see ``od_map``.
        glass: (2, 3) float64, log10(RGB + 1) of the empty glass before and after.
    """

    od: ArrayF64
    glass: ArrayF64

    def as_bytes(self) -> bytes:
        """The colours as bytes, for the key of a cache."""
        return self.od.tobytes() + self.glass.tobytes()


def measure_stains(items: Sequence[Item], pixels: Sequence[ImageU8]) -> tuple[Stained, ...]:
    """The stains of all that was stained at once, in order of names.

    Args:
        items, pixels: in the same order; pixels are (H, W, 3) uint8 each.
    """
    of_name: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        of_name.setdefault(item.stained, []).append(number)
    return tuple(
        Stained(
            name,
            items[own[0]].patient,
            estimate_stain_of_image(montage([pixels[i] for i in _spread(own)])),
        )
        for name, own in sorted(of_name.items())
    )


def montage(images: Sequence[ImageU8]) -> ImageU8:
    """Images side by side, each cut to the smallest height: no pixel in it is made up."""
    height = min(image.shape[0] for image in images)
    return np.concatenate([image[:height] for image in images], axis=1)


def drawn_donors(
    stained: Sequence[Stained], donors: Sequence[Stained], *, draw: int, seed: int
) -> dict[str, Stained]:
    """For each of ``stained`` one of the donors, of another patient, independently of all others.

    Args:
        draw: 1, 2, ...: another draw, other donors.
    Raises:
        BadInputError: there is no other patient.
    """
    out = {}
    for unit in stained:
        others = [donor for donor in donors if donor.patient != unit.patient]
        if not others:
            raise BadInputError(f"stain swap: the suite has no other patient than {unit.patient}")
        # By name: one more set that gives no donors leaves the draws of the others as they were.
        rng = np.random.default_rng([seed, draw, *unit.name.encode()])
        out[unit.name] = others[int(rng.integers(len(others)))]
    return out


def recolourings(
    stained: Sequence[Stained], donors: Mapping[str, Stained]
) -> dict[str, Recolouring]:
    """How each name is stained anew."""
    return {
        unit.name: Recolouring(
            od_map(unit.stains, donors[unit.name].stains),
            np.log10(np.array([unit.stains.white, donors[unit.name].stains.white]) + 1),
        )
        for unit in stained
    }


def od_map(own: StainEstimate, donor: StainEstimate) -> ArrayF64:
    """(3, 3): optical densities (row vectors) under one patient's stains to those of another.

    Haematoxylin and eosin change vector and strength; what neither explains keeps its strength.
    """
    gain = np.append(donor.scale / own.scale, 1.0)
    unmix = np.linalg.inv(with_residual(own.matrix))
    return np.asarray(unmix @ np.diag(gain) @ with_residual(donor.matrix))


def restained(image: ImageU8, change: Recolouring) -> ImageU8:
    """An image (H, W, 3) uint8 RGB in other stains."""
    levels = np.log10(np.arange(256, dtype=np.float32) + 1)
    before, after = change.glass.astype(np.float32)
    density = after - (before - levels[image]) @ change.od.astype(np.float32)
    # Half a level up, so that the cut to whole numbers rounds; one down for the + 1 of densities.
    return np.clip(np.power(np.float32(10), density) - 0.5, 0, 255).astype(np.uint8)


def _spread(own: Sequence[int]) -> list[int]:
    chosen = np.linspace(0, len(own) - 1, min(len(own), _IMAGES)).round().astype(int)
    return [own[i] for i in chosen]
