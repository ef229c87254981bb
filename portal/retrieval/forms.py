"""What the page of similar cases can be asked."""

from __future__ import annotations

import uuid

from django import forms
from django.http import QueryDict

from portal.annotations.selectors import label_list
from portal.archive.models import CanvasKind
from portal.labs.models import User
from portal.retrieval import selectors

K_DEFAULT = 20  # two screens of pictures
K_CHOICES = [(10, "10 results"), (20, "20 results"), (50, "50 results"), (100, "100 results")]


class SimilarForm(forms.Form):
    """Filters. What cannot be read falls back to no filter: the address may be old."""

    same_patient = forms.BooleanField(required=False, label="Include the same patient")
    plain = forms.BooleanField(required=False, label="Order by distance alone")
    organ = forms.ChoiceField(required=False)
    label = forms.ChoiceField(required=False)
    kind = forms.ChoiceField(required=False, choices=[("", "Any image"), *CanvasKind.choices])
    k = forms.TypedChoiceField(required=False, choices=K_CHOICES, coerce=int, label="Results")

    def __init__(self, query: QueryDict, *, user: User, lab_id: uuid.UUID) -> None:
        super().__init__({"k": str(K_DEFAULT)} | query.dict())
        organs = selectors.organs_of(lab_id)
        labels = label_list(user, lab_id=lab_id)
        self.fields["organ"].choices = [("", "Any organ"), *((o, o) for o in organs)]  # type: ignore[attr-defined]
        self.fields["label"].choices = [  # type: ignore[attr-defined]
            ("", "Any label"),
            *((str(label.pk), label.name) for label in labels),
        ]

    def filters(self) -> selectors.SimilarFilters:
        """What is chosen."""
        self.is_valid()
        clean = self.cleaned_data
        label = clean.get("label")
        filters: selectors.SimilarFilters = {
            "k": clean.get("k") or K_DEFAULT,
            "exclude_same_patient": not clean.get("same_patient"),
            "organ": clean.get("organ", ""),
            "label_id": uuid.UUID(label) if label else None,
            "kind": clean.get("kind", ""),
        }
        if clean.get("plain"):
            filters["expand"] = 0
        return filters
