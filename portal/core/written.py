"""JSON whose text is made once, however often it is stored."""

from __future__ import annotations

import json
from typing import Any


class WrittenOnce(dict[str, Any]):
    """An object that is not changed any more. A hundred thousand vertices take longer to write than
    all else that is done to them, and are stored with their ROI and with its revision."""

    __slots__ = ("_text",)

    @property
    def text(self) -> str:
        """As JSON."""
        if not hasattr(self, "_text"):
            self._text = json.dumps(self)
        return self._text


class OnceEncoder(json.JSONEncoder):
    """The encoder of a column that may be given such objects."""

    def encode(self, o: object) -> str:
        """The text that a ``WrittenOnce`` has already."""
        return o.text if isinstance(o, WrittenOnce) else super().encode(o)
