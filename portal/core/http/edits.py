"""Forms for objects that several people may edit at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

SAVED = (
    "Someone else changed this while you had it open, so your changes were not saved. The value "
    "that is saved now is shown at each field that differs. Save once more to replace it with "
    "yours."
)


class EditedForm(forms.Form):
    """Form that sends back the edit tag of the state that the page showed."""

    def show_saved(self, now: Mapping[str, Any]) -> None:
        """Show the values that another person saved next to this person's input."""
        differ = {
            name: value
            for name, value in now.items()
            if name in self.fields and self.cleaned_data.get(name) != value
        }
        self.add_error(None, SAVED)
        for name, value in differ.items():
            self.add_error(name, f"Saved now: {self._words(name, value)}")

    def _words(self, name: str, value: Any) -> str:
        titles = dict(getattr(self.fields[name], "choices", ()))
        values = value if isinstance(value, list) else [value]
        text = ", ".join(
            str(titles.get(entry, entry)) for entry in values if entry not in {None, ""}
        )
        return text or "nothing"
