"""Forms of the archive's pages."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.db.models import QuerySet

from ml.types import JsonObject
from portal.archive.models import AgeBand, Case, Sex
from portal.archive.models.records import MAX_NOTES
from portal.archive.services.cases import CaseFields
from portal.core.errors import PortalError
from portal.core.http.edits import EditedForm
from portal.core.text import text_clean
from portal.labs.models import Lab


class CaseValues(CaseFields):
    """Fields of a case from a form."""

    accession: str


def _input_with_suggestions(name: str) -> forms.TextInput:
    """A text field with the suggestions of ``archive/_case_words.html``."""
    return forms.TextInput(attrs={"list": f"words-{name}", "autocomplete": "off"})


class CaseForm(EditedForm):
    """A case. The services validate; the form only shows what they say."""

    lab = forms.ModelChoiceField(queryset=Lab.objects.none(), empty_label=None)
    accession = forms.CharField(
        label="Accession number",
        max_length=64,
        help_text="The number of the examination in the hospital system; unique in the lab.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    patient_key = forms.CharField(
        max_length=64,
        required=False,
        help_text="A pseudonym, never a name. Cases of one patient share it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    organ = forms.CharField(max_length=80, required=False, widget=_input_with_suggestions("organ"))
    procedure = forms.CharField(
        max_length=120, required=False, widget=_input_with_suggestions("procedure")
    )
    diagnosis = forms.CharField(
        max_length=200, required=False, widget=_input_with_suggestions("diagnosis")
    )
    sex = forms.ChoiceField(choices=Sex.choices, initial=Sex.UNKNOWN)
    age_band = forms.ChoiceField(choices=AgeBand.choices, initial=AgeBand.UNKNOWN)
    tags = forms.CharField(
        required=False, max_length=1000, help_text="Separated by commas: teaching, second opinion"
    )

    clinical_question = forms.CharField(
        max_length=500,
        required=False,
        help_text="The question of the referring clinician, without a name.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    notes = forms.CharField(
        max_length=MAX_NOTES,
        required=False,
        help_text="Plain text for members of the lab; a lab that the case is shared with does not "
        "see it. No names of patients.",
        widget=forms.Textarea(attrs={"rows": 6}),
    )

    def __init__(
        self, *args: Any, labs: QuerySet[Lab], case: Case | None = None, **kwargs: Any
    ) -> None:
        if case is not None:
            kwargs["initial"] = _form_values(case)
        super().__init__(*args, **kwargs)
        if case is not None:
            del self.fields["lab"]
            return
        field = self.fields["lab"]
        field.queryset = labs  # type: ignore[attr-defined]
        if len(labs) == 1:
            field.initial, field.widget = labs[0], forms.HiddenInput()

    def clean_notes(self) -> str:
        """The notes as they are stored, so that only a real difference counts as one."""
        return text_clean(str(self.cleaned_data["notes"]))

    def show_case(self, case: Case) -> None:
        """Show the case as another person saved it next to this person's input."""
        self.show_saved(_form_values(case))

    @property
    def values(self) -> CaseValues:
        """Arguments for the case services, without the lab."""
        cleaned = {name: value for name, value in self.cleaned_data.items() if name != "lab"}
        cleaned["tags"] = cleaned["tags"].split(",")
        return cast(CaseValues, cleaned)

    def refuse(self, error: PortalError) -> None:
        """Show a service's error at the field it concerns."""
        errors = error.details.get("errors")
        if errors:
            for name, messages in errors.items():
                self.add_error(name if name in self.fields else None, messages)
        elif error.code == "accession-taken":
            self.add_error("accession", error.message)
        else:
            self.add_error("tags" if error.message.startswith("tags:") else None, error.message)


class ShareForm(forms.Form):
    """Lab that a case is shared with, and the last day."""

    with_lab = forms.CharField(
        label="Lab",
        max_length=120,
        help_text="Its name or short name, exactly as the lab writes it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    until = forms.DateField(
        help_text="The last day it may be read (UTC), at most a year ahead.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def refuse(self, message: str) -> None:
        """Show a service's error at the field it concerns."""
        name, colon, text = message.partition(": ")
        if colon and name in self.fields:
            self.add_error(name, text[:1].upper() + text[1:])
        else:
            self.add_error(None, message)


_PLAIN = (
    *("accession", "patient_key", "organ", "procedure", "diagnosis", "sex", "age_band"),
    *("clinical_question", "notes"),
)


def _form_values(case: Case) -> JsonObject:
    """Values of a case, as the form shows them."""
    return {name: getattr(case, name) for name in _PLAIN} | {"tags": ", ".join(case.tags)}
