"""Forms of the search pages; they parse the query string."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from portal.annotations.models import ReviewState
from portal.archive.models import CanvasKind, Modality
from portal.labs.models import Lab, User
from portal.search.models import QuerySource, Verdict
from portal.search.selectors.filters import FILTER_TITLES, CaseScope, Filters
from portal.search.selectors.similar_cases import SimilarOptions
from portal.search.services.queries import QueryData

K_DEFAULT = 20  # two screens
K_CHOICES = [(10, "10 results"), (20, "20 results"), (50, "50 results"), (100, "100 results")]
_CASES = [
    (CaseScope.ANY, "Any case"),
    (CaseScope.ONLY, "This case only"),
    (CaseScope.OTHERS, "Other cases only"),
]
_SHOWS = [
    (Modality.HISTOLOGY, "Tissue under the microscope"),
    (Modality.ENDOSCOPY, "An endoscopic view"),
]


class SimilarForm(forms.Form):
    """Search options. Invalid values are ignored, since the URL may be old."""

    same_patient = forms.BooleanField(required=False, label="Include the same patient")
    plain = forms.BooleanField(required=False, label="Order by distance alone")
    regions = forms.BooleanField(required=False, label="Every region of a case")
    distances = forms.BooleanField(required=False, label="Show distances")
    unmarked = forms.BooleanField(required=False, label="Ignore my marks")
    k = forms.TypedChoiceField(required=False, choices=K_CHOICES, coerce=int, label="Results")
    case = forms.ChoiceField(required=False, choices=_CASES)
    since = forms.DateField(required=False, label="Drawn from")
    until = forms.DateField(required=False, label="to")

    organ = forms.CharField(required=False, max_length=80)
    diagnosis = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=80)
    stain = forms.CharField(required=False, max_length=80)
    scanner = forms.CharField(required=False, max_length=60)
    label = forms.UUIDField(required=False)
    kind = forms.ChoiceField(required=False, choices=CanvasKind.choices)
    review_state = forms.ChoiceField(required=False, choices=ReviewState.choices)

    def __init__(self, query: QueryDict) -> None:
        super().__init__({"k": str(K_DEFAULT)} | query.dict())
        for name in ("since", "until"):
            self.fields[name].widget = forms.DateInput(attrs={"type": "date"})
        self.is_valid()

    @property
    def shows_distances(self) -> bool:
        """Return whether the page shows raw distances."""
        return bool(self.cleaned_data.get("distances"))

    @property
    def goes_by_marks(self) -> bool:
        """Return whether the person's own judgements move the query."""
        return not self.cleaned_data.get("unmarked")

    @property
    def options(self) -> SimilarOptions:
        """Search options chosen in the form."""
        clean: dict[str, Any] = self.cleaned_data
        filters = {name: clean[name] for name in FILTER_TITLES if clean.get(name)}
        options: SimilarOptions = {
            "k": clean.get("k") or K_DEFAULT,
            "exclude_same_patient": not clean.get("same_patient"),
            "filters": Filters(
                label_id=clean.get("label"), case=CaseScope(clean.get("case") or ""), **filters
            ),
            "by_case": not clean.get("regions"),
            "with_facets": True,
        }
        if clean.get("plain"):
            options["expand"] = 0
        return options


class JudgementForm(forms.Form):
    """Judgement of a hit; an empty verdict deletes it."""

    other = forms.UUIDField()
    verdict = forms.ChoiceField(required=False, choices=Verdict.choices)


class QueryForm(forms.Form):
    """Query sent by the viewer or a page; the service validates it."""

    source = forms.ChoiceField(choices=QuerySource.choices, required=False)
    canvas = forms.UUIDField(required=False)
    geometry = forms.JSONField(required=False)
    roi = forms.UUIDField(required=False)
    query = forms.UUIDField(required=False)
    frame_pts = forms.IntegerField(required=False)
    scale = forms.FloatField(required=False)

    def query_data(self) -> QueryData:
        """Arguments of ``query_create``."""
        clean: dict[str, Any] = self.cleaned_data
        return QueryData(
            source=QuerySource(clean["source"] or QuerySource.AREA),
            canvas_id=clean["canvas"],
            geometry=clean["geometry"],
            roi_id=clean["roi"],
            repeat_of=clean["query"],
            frame_pts=clean["frame_pts"],
            scale=clean["scale"] or 1.0,
        )


class PictureForm(forms.Form):
    """Upload of a picture to search with."""

    picture = forms.FileField(
        label="Picture",
        help_text="JPEG, JPEG 2000, PNG, TIFF, WebP or BMP; a field of view, not a slide",
    )
    kind = forms.ChoiceField(label="It shows", choices=_SHOWS)
    mpp = forms.FloatField(
        required=False,
        label="Microns per pixel",
        help_text="A scan at 40× has about 0.25, at 20× 0.5, at 10× 1; endoscopy needs none",
        min_value=0.05,
        max_value=100,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )

    lab = forms.ModelChoiceField(
        queryset=Lab.objects.none(), label="Search in", to_field_name="slug"
    )

    use_required_attribute = False  # depends on the kind

    def __init__(self, *args: Any, user: User, chosen: str | None) -> None:
        super().__init__(*args)
        labs = Lab.objects.visible_to(user).order_by("name", "id")
        if labs.count() > 1:
            self.fields["lab"].queryset = labs  # type: ignore[attr-defined]
            self.fields["lab"].initial = chosen
            self.fields["lab"].empty_label = None if chosen else "Choose a lab"  # type: ignore[attr-defined]
        else:
            del self.fields["lab"]
        mpp = self.fields["mpp"]
        mpp.required = self["kind"].value() != Modality.ENDOSCOPY  # tissue has a scale
        mpp.error_messages["required"] = "Enter how many microns wide a pixel of the picture is."

    def query_data(self, only_lab: Lab) -> QueryData:
        """Arguments of ``query_create``.

        Args:
            only_lab: The lab of a user who is in a single lab.
        """
        clean: dict[str, Any] = self.cleaned_data
        return QueryData(
            source=QuerySource.PICTURE,
            upload=clean["picture"].read(),
            kind=clean["kind"],
            mpp=clean["mpp"],
            lab=clean.get("lab") or only_lab,
        )
