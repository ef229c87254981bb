"""The choices of a mosaic that people may make; all others stay with ``ml.mosaic``.

Checked here because the web process does not import the engine. A test compares the two.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from django.contrib.humanize.templatetags.humanize import ordinal

from portal.core.errors import InvalidInputError

MOTION_MODELS = ("auto", "similarity", "affine", "homography")
MAX_STEP = 100
"""Frames further apart than this rarely overlap."""

MAX_SECONDS = 1e6
"""Eleven days: no examination is longer."""

KNOWN = ("end_s", "motion_model", "start_s", "step")
MIN_FRAMES = 2
"""A single frame cannot be stitched."""


class MosaicOptions(TypedDict, total=False):
    """Options that differ from the defaults, as stored in ``Mosaic.config``."""

    step: int
    motion_model: str
    start_s: float
    end_s: float


def options_clean(config: Mapping[str, Any]) -> MosaicOptions:
    """The choices that differ from the defaults.

    Raises:
        InvalidInputError: an unknown choice, or an invalid value.
    """
    unknown = sorted(set(config) - set(KNOWN))
    if unknown:
        raise InvalidInputError(
            f"config: unknown {unknown[0]!r:.40}; known: {', '.join(sorted(KNOWN))}."
        )
    step, model = config.get("step", 1), config.get("motion_model", "auto")
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= MAX_STEP:
        raise InvalidInputError(f"config.step: expected a whole number from 1 to {MAX_STEP}.")
    if model not in MOTION_MODELS:
        raise InvalidInputError(f"config.motion_model: expected one of {', '.join(MOTION_MODELS)}.")
    chosen: MosaicOptions = _span_clean(config)
    if step != 1:
        chosen["step"] = step
    if model != "auto":
        chosen["motion_model"] = model
    return chosen


def _span_clean(config: Mapping[str, Any]) -> MosaicOptions:
    """``start_s`` and ``end_s`` to the millisecond; each left out where it is not given."""
    span: MosaicOptions = {}
    names: tuple[Literal["start_s", "end_s"], ...] = ("start_s", "end_s")
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or abs(value) > MAX_SECONDS:
            raise InvalidInputError(f"config.{name}: expected seconds of the video, as a number.")
        span[name] = round(float(value), 3)
    start_s, end_s = span.get("start_s"), span.get("end_s")
    if start_s is not None and end_s is not None and end_s <= start_s:
        raise InvalidInputError(
            f"config: the span ends at {end_s:g} s, not after its start at {start_s:g} s."
        )
    return span


def options_hash(config: Mapping[str, Any]) -> str:
    """SHA-256 of the choices, in hexadecimal."""
    return hashlib.sha256(json.dumps(dict(config), sort_keys=True).encode()).hexdigest()


def span_text(config: Mapping[str, Any]) -> str:
    """``2 s to 5.5 s``, ``from 2 s``, ``up to 5.5 s``, or nothing for the whole video."""
    start_s, end_s = config.get("start_s"), config.get("end_s")
    if start_s is not None and end_s is not None:
        return f"{start_s:g} s to {end_s:g} s"
    if start_s is not None:
        return f"from {start_s:g} s"
    return f"up to {end_s:g} s" if end_s is not None else ""


def options_text(config: Mapping[str, Any]) -> str:
    """``2 s to 5 s, every 3rd frame, affine``, or nothing for the defaults."""
    words = []
    if span := span_text(config):
        words.append(span)
    if step := config.get("step"):
        words.append(f"every {ordinal(step)} frame")
    if model := config.get("motion_model"):
        words.append(str(model))
    return ", ".join(words)
