"""JSON objects that are serialised only once."""

from __future__ import annotations

import json
from typing import Any


class SerializedDict(dict[str, Any]):
    """Immutable JSON object that caches its text.

    Serialising an outline of 100,000 vertices takes longer than anything else done to it, and it
    is stored twice: with its ROI and with the revision.
    """

    __slots__ = ("_text",)

    @property
    def text(self) -> str:
        """JSON text of the object."""
        if not hasattr(self, "_text"):
            self._text = json.dumps(self)
        return self._text


class SerializedDictEncoder(json.JSONEncoder):
    """JSON encoder that uses the cached text of a ``SerializedDict``."""

    def encode(self, o: object) -> str:
        """Return the cached text, or serialise any other object."""
        return o.text if isinstance(o, SerializedDict) else super().encode(o)
