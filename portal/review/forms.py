"""Filters of the queue."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.annotations.models import Label, ReviewState
from portal.annotations.selectors.labels import label_list
from portal.labs.models import Lab, User
from portal.review.selectors.queue import QueueFilter, queue_people

_DAY = forms.DateInput(attrs={"type": "date"})


class QueueForm(forms.Form):
    """Filter of the review queue; invalid values are ignored."""

    state = forms.ChoiceField(choices=ReviewState.choices, required=False)
    label = forms.ModelChoiceField(Label.objects.none(), required=False, empty_label="All labels")
    person = forms.ModelChoiceField(User.objects.none(), required=False, empty_label="Everybody")
    case = forms.CharField(required=False, max_length=80)
    since = forms.DateField(required=False, widget=_DAY)
    until = forms.DateField(required=False, widget=_DAY)

    def __init__(self, *args: Any, user: User, lab: Lab | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lab = lab
        self.fields["label"].queryset = label_list(user, lab_id=lab.pk if lab else None)  # type: ignore[attr-defined]
        self.fields["person"].queryset = queue_people(user)  # type: ignore[attr-defined]

    def filters(self) -> QueueFilter:
        """Filter from the valid fields."""
        self.is_valid()
        data = self.cleaned_data
        label, person = data.get("label"), data.get("person")
        return QueueFilter(
            state=data.get("state") or ReviewState.SUBMITTED,
            lab_id=self._lab.pk if self._lab else None,
            label_id=label.pk if label else None,
            person_id=person.pk if person else None,
            case=data.get("case", ""),
            since=data.get("since"),
            until=data.get("until"),
        )
