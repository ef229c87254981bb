"""Forms of the labels page."""

from __future__ import annotations

from django import forms

from portal.annotations.services import LabelChanges


class LabelForm(forms.Form):
    """A label: its name and its colour on the canvas."""

    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    color = forms.RegexField(
        r"^#[0-9a-fA-F]{6}$", label="Colour", widget=forms.TextInput(attrs={"type": "color"})
    )
    key = forms.RegexField(r"^[1-9]$", required=False, widget=forms.HiddenInput())

    def changes(self) -> LabelChanges:
        """What the form says of a label that is there; a key only where it was sent."""
        given = self.cleaned_data
        changes: LabelChanges = {"name": given["name"], "color": given["color"]}
        if "key" in self.data:
            changes["key"] = given["key"]
        return changes
