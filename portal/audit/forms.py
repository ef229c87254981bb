"""Filters of the audit log, for the page and the API."""

from __future__ import annotations

import datetime
from typing import Any

from django import forms
from django.utils import timezone

from portal.audit.actions import ACTIONS
from portal.audit.selectors import EntryFilter
from portal.labs.models import Lab
from portal.labs.selectors import members_of


class EntryForm(forms.Form):
    """Filter of the log. Days are in UTC; the last one is included."""

    actor = forms.UUIDField(required=False, label="Who")
    action = forms.ChoiceField(required=False, label="What")
    case = forms.UUIDField(required=False, label="Case", widget=forms.HiddenInput())
    object = forms.UUIDField(required=False, label="Object", widget=forms.HiddenInput())
    since = forms.DateField(
        required=False, label="From", widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        required=False, label="To", widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, lab: Lab | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        words = sorted(ACTIONS.items(), key=lambda item: item[1])
        self.fields["action"].choices = [("", "Anything"), *words]  # type: ignore[attr-defined]
        if lab is not None:
            people = [(str(row.user_id), str(row.user)) for row in members_of(lab)]
            self.fields["actor"].widget = forms.Select(choices=[("", "Anybody"), *people])

    @property
    def filters(self) -> EntryFilter:
        """Filter of a valid form."""
        clean = self.cleaned_data
        return EntryFilter(
            actor_id=clean["actor"],
            action=clean["action"],
            object_id=clean["object"],
            case_id=clean["case"],
            since=_begin(clean["since"]),
            until=_begin(clean["until"] + datetime.timedelta(days=1)) if clean["until"] else None,
        )


def _begin(day: datetime.date | None) -> datetime.datetime | None:
    midnight = datetime.time.min
    return timezone.make_aware(datetime.datetime.combine(day, midnight)) if day else None
