"""Forms of the lab's pages."""

from __future__ import annotations

from datetime import timedelta

from django import forms

from portal.labs.models import Role, TokenScope

LIVES_DAYS = ((30, "30 days"), (90, "90 days"), (180, "half a year"), (366, "one year"))


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(
        max_length=80,
        help_text="What will use it, so that you can tell tokens apart.",
        widget=forms.TextInput(attrs={"placeholder": "LIS export", "autocomplete": "off"}),
    )
    scope = forms.ChoiceField(label="May", choices=TokenScope.choices, initial=TokenScope.READ)
    days = forms.TypedChoiceField(label="Expires after", choices=LIVES_DAYS, coerce=int, initial=90)

    @property
    def expires_in(self) -> timedelta:
        """How long the token is to live."""
        return timedelta(days=self.cleaned_data["days"])


class InviteForm(forms.Form):
    """A new member of the lab."""

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
    password = forms.CharField(
        label="First password",
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Left empty, the person gets a link by e-mail to choose one.",
    )


class RoleForm(forms.Form):
    """A member's new role."""

    role = forms.ChoiceField(choices=Role.choices)
