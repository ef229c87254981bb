"""Forms of erasure."""

from __future__ import annotations

from typing import Any

from django import forms


class ErasureFindForm(forms.Form):
    """Selection of the data to erase: one case, or all cases of a patient."""

    accession = forms.CharField(
        label="Accession number",
        max_length=64,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    patient_key = forms.CharField(
        max_length=64,
        required=False,
        help_text="Or this: all cases of the patient.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Require exactly one of the two fields."""
        cleaned = super().clean() or {}
        if bool(cleaned.get("accession")) == bool(cleaned.get("patient_key")):
            raise forms.ValidationError("Enter an accession number or a patient key.")
        return cleaned


class ErasureForm(ErasureFindForm):
    """Order of an erasure, with the typed confirmation."""

    accession = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput())
    patient_key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput())
    typed = forms.CharField(
        max_length=64, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )
    reason = forms.CharField(
        max_length=200,
        required=False,
        help_text="It is kept in the certificate and must not name the patient.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
