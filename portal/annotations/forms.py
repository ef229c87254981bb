"""Forms of the labels page."""

from __future__ import annotations

from django import forms


class LabelForm(forms.Form):
    """A label: its name and its colour on the canvas."""

    name = forms.CharField(max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    color = forms.RegexField(
        r"^#[0-9a-fA-F]{6}$", label="Colour", widget=forms.TextInput(attrs={"type": "color"})
    )
