"""The choices of a mosaic that people may make; all others stay with ``ml.mosaic``.

Checked here because the web process does not import the engine. A test compares the two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.contrib.humanize.templatetags.humanize import ordinal

from portal.core.errors import InvalidInputError

MODELS = ("auto", "similarity", "affine", "homography")
MAX_STEP = 100


def options_clean(config: Mapping[str, Any]) -> dict[str, Any]:
    """The choices that differ from the defaults.

    Raises:
        InvalidInputError: an unknown choice, or a value that cannot be.
    """
    unknown = sorted(set(config) - {"step", "model"})
    if unknown:
        raise InvalidInputError(f"config: unknown {unknown[0]!r:.40}; known: model, step.")
    step, model = config.get("step", 1), config.get("model", "auto")
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= MAX_STEP:
        raise InvalidInputError(f"config.step: a whole number from 1 to {MAX_STEP}.")
    if model not in MODELS:
        raise InvalidInputError(f"config.model: one of {', '.join(MODELS)}.")
    chosen = {"step": step, "model": model}
    defaults = {"step": 1, "model": "auto"}
    return {key: value for key, value in chosen.items() if value != defaults[key]}


def options_hash(config: Mapping[str, Any]) -> str:
    """Names the choices."""
    return hashlib.sha256(json.dumps(dict(config), sort_keys=True).encode()).hexdigest()


def options_words(config: Mapping[str, Any]) -> str:
    """``every 3rd frame, affine``, or nothing for the defaults."""
    words = []
    if step := config.get("step"):
        words.append(f"every {ordinal(step)} frame")
    if model := config.get("model"):
        words.append(str(model))
    return ", ".join(words)
