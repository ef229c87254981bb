"""Vocabulary of a lab: terms for organ and diagnosis, with codes."""

from __future__ import annotations

from django.db import models

from portal.core.database.names import NameField, NameKeyField
from portal.labs.models import LabOwned

MAX_CODE_LENGTH = 20  # "8140/3", "C18.0", a number of SNOMED CT


class VocabularyField(models.TextChoices):
    """Field of a case that a term is for."""

    ORGAN = "organ", "Organ"
    DIAGNOSIS = "diagnosis", "Diagnosis"


class VocabularyTerm(LabOwned):
    """A term that a lab suggests for a field of its cases. Synonyms may share a code."""

    field = models.CharField(max_length=10, choices=VocabularyField.choices)
    term = NameField(max_length=200)
    term_key = NameKeyField(max_length=400, of="term")  # a folded letter may become two or three
    code = NameField(max_length=MAX_CODE_LENGTH, blank=True)

    class Meta:
        ordering = ("field", "term_key", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "field", "term_key"], name="vocabulary_term_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.term} ({self.code})" if self.code else self.term
