"""Forms of the lab's pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple, NotRequired, TypedDict

from django import forms
from django.db.models import QuerySet

from portal.labs.models import Lab, Role, TokenArea, TokenScope

LIFETIME_DAYS = ((30, "30 days"), (90, "90 days"), (180, "half a year"), (366, "one year"))


CHOSEN = "chosen"
MAY = (*TokenScope.choices, (CHOSEN, "Only what is ticked"))
AREAS = tuple(
    (f"{area}:{scope}", f"{area.label}: {scope.label.lower()}")
    for area in TokenArea
    for scope in TokenScope
    if (area, scope) != (TokenArea.SEARCH, TokenScope.WRITE)  # a search only reads
)


class Tick(NamedTuple):
    """A checkbox."""

    value: str
    title: str
    is_ticked: bool


class AreaRow(NamedTuple):
    """Checkboxes of one area; None if there is nothing to check."""

    title: str
    ticks: list[Tick | None]


class Rights(TypedDict):
    """``scope`` and ``areas``, as arguments of the services."""

    scope: TokenScope
    areas: NotRequired[dict[str, str]]


class ScopedForm(forms.Form):
    """Rights of a token: full access, or the checked areas."""

    scope = forms.ChoiceField(label="May", choices=MAY, initial=TokenScope.READ)
    areas = forms.MultipleChoiceField(
        required=False, choices=AREAS, widget=forms.CheckboxSelectMultiple
    )

    def clean(self) -> dict[str, Any]:
        """Require checked areas exactly if access is limited to areas."""
        cleaned = super().clean() or {}
        is_chosen = cleaned.get("scope") == CHOSEN
        if is_chosen and not cleaned.get("areas"):
            self.add_error("areas", "Tick at least one.")
        if cleaned.get("areas") and not is_chosen:
            self.add_error("scope", "Choose “Only what is ticked”, or tick nothing.")
        return cleaned

    @property
    def area_rows(self) -> list[AreaRow]:
        """Checkboxes as a table: a row per area, with columns for reading and writing."""
        offered, ticked = dict(AREAS), self["areas"].value() or []
        return [
            AreaRow(
                area.label,
                [
                    Tick(name, offered[name], name in ticked)
                    if (name := f"{area}:{scope}") in offered
                    else None
                    for scope in TokenScope
                ],
            )
            for area in TokenArea
        ]

    @property
    def rights(self) -> Rights:
        """Rights from the valid fields."""
        if self.cleaned_data["scope"] != CHOSEN:
            return {"scope": TokenScope(self.cleaned_data["scope"])}
        ticked = sorted(self.cleaned_data["areas"])  # read before write: write includes it
        areas = dict(area_and_right.split(":") for area_and_right in ticked)
        return {"scope": TokenScope.READ, "areas": areas}


class TokenForm(ScopedForm):
    """A new API token."""

    field_order = ("name", "scope", "areas", "lab", "days")

    name = forms.CharField(
        max_length=80,
        help_text="What will use it, so that you can tell tokens apart.",
        widget=forms.TextInput(attrs={"placeholder": "LIS export", "autocomplete": "off"}),
    )
    lab = forms.ModelChoiceField(
        queryset=Lab.objects.none(), required=False, empty_label="All my labs"
    )
    days = forms.TypedChoiceField(
        label="Expires after", choices=LIFETIME_DAYS, coerce=int, initial=90
    )

    def __init__(self, *args: Any, labs: QuerySet[Lab], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["lab"].queryset = labs  # type: ignore[attr-defined]

    @property
    def expires_in(self) -> timedelta:
        """Lifetime of the token."""
        return timedelta(days=self.cleaned_data["days"])


class InviteForm(forms.Form):
    """Address and role of a new invitation."""

    email = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    full_name = forms.CharField(
        label="Name",
        max_length=120,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.ANNOTATOR)


class RoleForm(forms.Form):
    """A member's new role."""

    role = forms.ChoiceField(choices=Role.choices)


class AddressForm(forms.Form):
    """An e-mail address."""

    email = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )


class PasswordForm(forms.Form):
    """A new password, entered twice."""

    password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="A few words work well. Nobody else can see or set it.",
    )
    repeated = forms.CharField(
        label="Password again",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean_repeated(self) -> str:
        """Require both passwords to be the same."""
        repeated: str = self.cleaned_data["repeated"]
        if repeated != self.cleaned_data.get("password", repeated):
            raise forms.ValidationError("The two passwords differ.")
        return repeated


class NewAccountForm(PasswordForm):
    """Name and password of the user's new account."""

    full_name = forms.CharField(
        label="Your name",
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order: tuple[str, ...] = ("full_name", "password", "repeated")


class SetUpForm(NewAccountForm):
    """The first lab and its manager."""

    token = forms.CharField(
        label="Token",
        max_length=100,
        help_text="The server printed it when it started.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    lab = forms.CharField(label="Name of the lab", max_length=120)
    email = forms.EmailField(
        label="Your e-mail address", widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )
    field_order = ("token", "lab", "full_name", "email", "password", "repeated")


class ServiceAccountForm(forms.Form):
    name = forms.CharField(
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": "LIS export", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        choices=[choice for choice in Role.choices if choice[0] != Role.MANAGER.value],
        help_text="A service account cannot be a manager.",
    )


class ServiceAccountTokenForm(ScopedForm):
    """A new token of a service account."""

    days = forms.TypedChoiceField(
        label="Expires after", choices=LIFETIME_DAYS, coerce=int, initial=90
    )
