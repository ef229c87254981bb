"""Forms of the pages of labels and properties."""

from __future__ import annotations

from typing import Self

from django import forms

from portal.annotations.properties import MAX_KEY_CHARS, MAX_UNIT_CHARS, PropertyType
from portal.annotations.services.labels import LabelChanges
from portal.annotations.services.properties import PropertyForm


class LabelForm(forms.Form):
    """A label: its name and its colour on the canvas."""

    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    color = forms.RegexField(
        r"^#[0-9a-fA-F]{6}$", label="Colour", widget=forms.TextInput(attrs={"type": "color"})
    )
    key = forms.RegexField(r"^[1-9]$", required=False, widget=forms.HiddenInput())

    def changes(self) -> LabelChanges:
        """Changes to an existing label; the key only if it was submitted."""
        data = self.cleaned_data
        changes: LabelChanges = {"name": data["name"], "color": data["color"]}
        if "key" in self.data:
            changes["key"] = data["key"]
        return changes


_KINDS = (
    ("text", "Text"),
    ("number", "Number"),
    ("choice", "One of several choices"),
    ("yes-no", "Yes or no"),
)


class _OfSomeKinds(forms.CharField):
    """Field that only some kinds require; the service checks that it is set."""

    def validate(self, value: str) -> None:
        """Accept an empty value: other kinds need none."""


class PropertyTypeForm(forms.Form):
    """A property that a lab keeps; the unit is of a number, the choices of a choice."""

    use_required_attribute = False  # the browser would wait for a field that is not shown

    name = forms.CharField(
        max_length=MAX_KEY_CHARS, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    kind = forms.ChoiceField(choices=_KINDS, initial="text", label="Kind of value")
    unit = forms.CharField(
        max_length=MAX_UNIT_CHARS, required=False, help_text="Unit of the value: mm, %, HPF"
    )
    choices = _OfSomeKinds(widget=forms.Textarea(attrs={"rows": 4}), help_text="One per line")

    @classmethod
    def of(cls, stored: PropertyType, *, auto_id: str) -> Self:
        """The form that changes one."""
        initial = {"name": stored.title, "kind": stored.kind, "unit": stored.unit}
        return cls(initial=initial | {"choices": "\n".join(stored.choices)}, auto_id=auto_id)

    def property_data(self) -> PropertyForm:
        """Property type of a valid form."""
        data = self.cleaned_data
        choices = tuple(text for line in data["choices"].splitlines() if (text := line.strip()))
        return PropertyForm(data["name"], data["kind"], choices, data["unit"])
