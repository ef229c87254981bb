"""Forms of the thresholds."""

from __future__ import annotations

from django import forms

from ml.quantification.config import MAX_OD


def _density(label: str, help_text: str) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=0.01, max_value=MAX_OD, help_text=help_text)


class ThresholdsForm(forms.Form):
    """Thresholds of a lab."""

    weak_od = _density("Weak (1+) from", "Mean optical density of DAB in a nucleus")
    moderate_od = _density("Moderate (2+) from", "")
    strong_od = _density("Strong (3+) from", "")
    nucleus_od = _density("Nucleus from", "Smallest stain density that belongs to a nucleus")
    min_area_um2 = forms.FloatField(label="Smallest nucleus, µm²", min_value=1, max_value=10_000)
    max_area_um2 = forms.FloatField(label="Largest nucleus, µm²", min_value=1, max_value=10_000)
