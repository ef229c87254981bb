"""View of a flat picture through a simulated hand-held scope: its pose, lamp and highlights."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.geometry import normalised, similarity, translation
from ml.types import ArrayF32, ArrayF64, ImageU8

FALL_OFF = 0.45
"""Share of the lamp's light that is missing at the rim of the view, as in our own recordings."""

RIM, RIM_STEEPNESS = 0.97, 60
"""The view ends at this share of half the side, within a pixel or two of a usual frame."""

VISIBLE = 0.955
"""Share of half the side that the mask keeps: safely inside the rim."""

GLARE_LEVEL, GLARE_BLUR_PX = 250, 1.2
"""Highlights nearly saturate, and have soft edges."""


@dataclass(frozen=True, slots=True)
class Highlights:
    """Specular spots, which stay with the lamp and wander a little; all (K,) float64.

    Attributes:
        x, y, radius_px: where they are in a frame, and how large.
        flicker, wander: phases of their brightness and of their path, radians.
    """

    x: ArrayF64
    y: ArrayF64
    radius_px: ArrayF64
    flicker: ArrayF64
    wander: ArrayF64

    def glare(self, frame: int, size_px: int) -> ArrayF32:
        """(size, size, 1) float32: share of a pixel that is highlight, in frame number ``frame``.

        The pace of flicker and wandering, and the 3 px of the path, are those of a hand's tremor.
        """
        glare = np.zeros((size_px, size_px), np.float32)
        spots = zip(self.x, self.y, self.radius_px, self.flicker, self.wander, strict=True)
        for x, y, radius, flicker, wander in spots:
            strength = 0.5 + 0.5 * np.sin(flicker + frame * 0.35)
            right = round(x + 3 * np.sin(frame * 0.2 + wander))
            down = round(y + 3 * np.cos(frame * 0.17 + wander))
            reach = max(1, round(radius * (0.6 + strength)))
            cv2.circle(glare, (right, down), reach, float(strength), -1)
        return np.asarray(cv2.GaussianBlur(glare, (0, 0), GLARE_BLUR_PX), np.float32)[..., None]


def scope_pose(
    centre: tuple[float, float], angle: float, zoom: float, tilt: ArrayF64, *, size_px: int
) -> ArrayF64:
    """(3, 3) H_picture_from_frame of a scope over a picture.

    Args:
        centre: picture px that the middle of the frame sees.
        zoom: picture px per frame px.
        angle: radians.
        tilt: (2,) perspective terms, 1 / frame px.
    """
    half = (size_px - 1) / 2
    tilted = np.eye(3)
    tilted[2, :2] = tilt
    return normalised(similarity(zoom, angle, *centre) @ tilted @ translation(-half, -half))


def scope_view(picture: ImageU8, H_picture_from_frame: ArrayF64, size_px: int) -> ImageU8:
    """View of a picture through the scope, evenly lit: (size, size, 3) uint8."""
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    size = (size_px, size_px)
    return np.asarray(
        cv2.warpPerspective(picture, H_picture_from_frame, size, flags=flags), np.uint8
    )


def scope_light(size_px: int) -> tuple[ArrayF32, ImageU8]:
    """(size, size) float32 brightness with a dark round rim, and uint8 mask of the visible part."""
    half = (size_px - 1) / 2
    y, x = np.mgrid[:size_px, :size_px].astype(np.float32)
    radius = np.hypot(x - half, y - half) / (size_px / 2)
    light = (1.0 - FALL_OFF * radius**2) * np.clip((RIM - radius) * RIM_STEEPNESS, 0, 1)
    return light.astype(np.float32), ((radius < VISIBLE) * 255).astype(np.uint8)


def light_view(view: ArrayF32, light: ArrayF32, glare: ArrayF32) -> ArrayF32:
    """Add highlights and the lamp's fall-off to a view (size, size, 3)."""
    return np.asarray((view * (1 - glare) + GLARE_LEVEL * glare) * light[..., None], np.float32)
