"""Error messages of the engine as sentences for users."""

from __future__ import annotations

from ml.errors import MlError


def sentence(error: MlError) -> str:
    """``register: no two ...`` as a sentence without the stage's name in front."""
    text = str(error).strip()
    stage, _, message = text.partition(": ")
    if message and stage.isalpha() and stage.islower():
        text = message
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
