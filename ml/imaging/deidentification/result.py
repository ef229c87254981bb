"""Result of de-identification: removed fields and identifying data that stays."""

from __future__ import annotations

from dataclasses import dataclass, field

CLEAN_NAME = "clean"
"""Name of the copy in the output folder."""
MAX_TEXTS, MAX_TEXT_LETTERS = 200, 200
"""Bounds on the values of removed fields."""


@dataclass(slots=True)
class DeidentificationResult:
    """Result of de-identifying a file.

    Attributes:
        removed: Sorted names of the fields whose values were removed, without duplicates.
        left: Identifying data that cannot be removed from this container, as sentences.
        stain: Stain that the file named, as a standard term; the field itself is removed.
        removed_texts: Values of removed fields, which may be written in the pixels as well.
    """

    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stain: str = ""
    removed_texts: list[str] = field(default_factory=list, repr=False)

    def add_removed(self, name: str, value: str | bytes = "") -> None:
        """Record a removed field, and its value if that is text."""
        if name not in self.removed:
            self.removed.append(name)
            self.removed.sort()
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        text = text.strip("\0 \r\n\t")[:MAX_TEXT_LETTERS]
        if text and len(self.removed_texts) < MAX_TEXTS and text not in self.removed_texts:
            self.removed_texts.append(text)

    def add_left(self, sentence: str) -> None:
        """Record identifying data that stays, as a sentence."""
        if sentence not in self.left:
            self.left.append(sentence)
