"""Colours of labels: differences of two, for people with and without full colour vision.

Distances are Euclidean in Oklab (Ottosson, 2020), times 100. Deficient vision is simulated by the
matrices of Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

APART = 6.0
"""Below this, two outlines on tissue are hard to tell apart: about three just noticeable steps."""
HALOS = ("#14181f", "#ffffff")
"""Outline halos: dark under light colours, white under dark ones."""
VISIONS: Mapping[str, npt.NDArray[np.float64]] = {
    "full colour vision": np.eye(3),
    "no green (deuteranopia)": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no red (protanopia)": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no blue (tritanopia)": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TISSUE = ("#e8a9c4", "#7d5ba6", "#8a5a2b", "#f4f1f0", "#c4594f")
"""Typical backgrounds of ROIs: eosin, haematoxylin, DAB, glass, mucosa."""
FROM_TISSUE = 12.0  # of a suggested colour: the distance of two clearly different labels
DARK, CONTRAST = "#162023", 3.0  # the dark theme's surface; WCAG 2.2, 1.4.11 for graphics
_LMS_FROM_RGB = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB_FROM_LMS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def distance(first: str, second: str) -> float:
    """The least distance of two colours ``#rrggbb`` over all kinds of colour vision."""
    return float(
        np.linalg.norm(_perceived_oklab((first,)) - _perceived_oklab((second,)), axis=-1).min()
    )


def color_suggest(used_colors: Iterable[str]) -> str:
    """The colour most distinct from the used ones and from tissue, for all kinds of colour
    vision."""
    candidates = _candidates()
    oklab = _perceived_oklab(candidates)[:, :, None]
    from_tissue = np.linalg.norm(oklab - _perceived_oklab(TISSUE)[:, None], axis=-1).min(
        axis=(0, 2)
    )
    names = tuple(dict.fromkeys(used_colors))
    score = from_tissue
    if names:
        from_used = np.linalg.norm(oklab - _perceived_oklab(names)[:, None], axis=-1).min(
            axis=(0, 2)
        )
        score = np.minimum(
            from_used, from_tissue + APART
        )  # distance to labels first, then to tissue
        clear = np.where(from_tissue > APART, score, 0.0)
        score = clear if clear.max() > APART else score
    return candidates[int(score.argmax())]


def too_close(colors: Sequence[str]) -> list[tuple[int, int, str]]:
    """Pairs of colours, by index, that are hard to tell apart, and for which colour vision."""
    if len(colors) < 2:
        return []
    lab_colors = _perceived_oklab(tuple(colors))
    gaps = np.linalg.norm(lab_colors[:, :, None] - lab_colors[:, None], axis=-1)
    clashes = []
    for i in range(len(colors)):
        for j in range(i + 1, len(colors)):
            if gaps[:, i, j].min() < APART:
                clashes.append((i, j, tuple(VISIONS)[int(gaps[:, i, j].argmin())]))
    return clashes


@lru_cache(maxsize=1)
def _candidates() -> tuple[str, ...]:
    """Six steps of each channel, less what is nearly black, white or grey, too dark for the dark
    theme, or near to tissue for those with full colour vision."""
    steps = (0, 51, 102, 153, 204, 255)
    rgb = [(r, g, b) for r in steps for g in steps for b in steps]
    vivid = [c for c in rgb if max(c) - min(c) >= 102 and 153 <= sum(c) <= 612]
    names = tuple("#" + "".join(f"{channel:02x}" for channel in c) for c in vivid)
    gaps = np.linalg.norm(
        _perceived_oklab(names)[0][:, None] - _perceived_oklab(TISSUE)[0], axis=-1
    ).min(axis=1)
    return tuple(
        name
        for name, gap in zip(names, gaps, strict=True)
        if gap >= FROM_TISSUE and contrast(name, DARK) >= CONTRAST
    )


def contrast(first: str, second: str) -> float:
    """The contrast of two colours by WCAG 2, from 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def halo_of(color: str) -> str:
    """Halo colour with the higher contrast to an outline's colour."""
    return max(HALOS, key=lambda halo: contrast(color, halo))


def _luminance(color: str) -> float:
    return float(_linear((color,))[0] @ [0.2126, 0.7152, 0.0722])


def _linear(colors: Sequence[str]) -> npt.NDArray[np.float64]:
    """(colours, 3) linear RGB, 0 to 1."""
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colors]) / 255
    linear: npt.NDArray[np.float64] = np.where(
        rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4
    )
    return linear


def _perceived_oklab(colors: Sequence[str]) -> npt.NDArray[np.float64]:
    """(visions, colours, 3) in Oklab, times 100."""
    linear = _linear(colors)
    perceived = np.stack([np.clip(linear @ matrix.T, 0, 1) for matrix in VISIONS.values()])
    lab: npt.NDArray[np.float64] = 100 * np.cbrt(perceived @ _LMS_FROM_RGB.T) @ _LAB_FROM_LMS.T
    return lab
