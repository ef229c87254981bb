"""Forms that assign work and create a study."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.annotations.models import Label
from portal.archive.models import Canvas
from portal.labs.models import Lab, User
from portal.reader_studies.models import DEFAULT_MIN_IOU, NOTE_MAX, BlindUntil
from portal.reader_studies.selectors.candidates import able_to_draw, images_to_choose
from portal.reader_studies.services.assignments import ReadingPlan

_DAY = forms.DateInput(attrs={"type": "date"})


class AssignForm(forms.Form):
    """Images, users, due date and note. ``q`` filters the offered images."""

    canvases = forms.ModelMultipleChoiceField(
        Canvas.objects.none(), error_messages={"required": "Choose at least one image."}
    )
    people = forms.ModelMultipleChoiceField(
        User.objects.none(), error_messages={"required": "Choose at least one person."}
    )
    due_on = forms.DateField(required=False, widget=_DAY)
    note = forms.CharField(required=False, max_length=NOTE_MAX)

    def __init__(self, *args: Any, user: User, lab: Lab, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["canvases"].queryset = images_to_choose(user, lab)  # type: ignore[attr-defined]
        self.fields["people"].queryset = able_to_draw(lab)  # type: ignore[attr-defined]

    def plan(self) -> ReadingPlan:
        """Assignments described by a valid form."""
        data = self.cleaned_data
        return ReadingPlan(
            canvases=list(data["canvases"]),
            people=list(data["people"]),
            due_on=data["due_on"],
            note=data["note"],
        )


class StudyForm(forms.Form):
    """Fields of a new study."""

    name = forms.CharField(max_length=120)
    note = forms.CharField(required=False, max_length=NOTE_MAX)
    labels = forms.ModelMultipleChoiceField(Label.objects.none(), required=False)
    min_iou = forms.FloatField(min_value=0.05, max_value=0.95, initial=DEFAULT_MIN_IOU)
    blind_until = forms.ChoiceField(choices=BlindUntil.choices, initial=BlindUntil.IMAGE)

    def __init__(self, *args: Any, lab: Lab, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = Label.objects.filter(lab=lab, retired_at=None)
        self.fields["labels"].queryset = labels.order_by("position", "name")  # type: ignore[attr-defined]
