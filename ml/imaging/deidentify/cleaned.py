"""What was taken out of a file: the names of the fields, never their values."""

from __future__ import annotations

from dataclasses import dataclass, field

CLEAN_NAME = "clean"
"""The copy, in the folder that was given."""


@dataclass(slots=True)
class Cleaned:
    """What became of a file.

    Attributes:
        removed: names of fields that held something and hold nothing now, sorted, each once.
        left: what may name somebody and cannot be taken out of this container, as sentences.
        stain: the one that the file named, in our own term; its field itself is taken out.
    """

    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stain: str = ""

    def took(self, name: str) -> None:
        """Note a field."""
        if name not in self.removed:
            self.removed.append(name)
            self.removed.sort()

    def leaves(self, sentence: str) -> None:
        """Note what stays."""
        if sentence not in self.left:
            self.left.append(sentence)
