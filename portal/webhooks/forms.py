"""Forms of the webhooks' pages."""

from __future__ import annotations

from typing import TypedDict, cast

from django import forms

from portal.core.errors import InvalidInputError
from portal.core.http.edits import EditedForm
from portal.webhooks.catalogue import TYPES
from portal.webhooks.models import MAX_URL_CHARS
from portal.webhooks.transport import url_check


class WebhookValues(TypedDict):
    """Fields of a webhook."""

    name: str
    url: str
    types: list[str]


class WebhookForm(EditedForm):
    """Address of a webhook, and the events it receives."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "LIS", "autocomplete": "off"}),
    )
    url = forms.CharField(
        label="Address",
        max_length=MAX_URL_CHARS,
        widget=forms.URLInput(
            attrs={"placeholder": "https://lis.hospital.example/tessera", "autocomplete": "off"}
        ),
    )
    types = forms.MultipleChoiceField(
        label="Events to send",
        required=False,
        choices=[(name, kind.title) for name, kind in TYPES.items()],
        help_text=(
            "If none is ticked, all events are sent, including those that later versions add."
        ),
        widget=forms.CheckboxSelectMultiple,
    )

    def clean_url(self) -> str:
        """Check the address as far as possible without connecting to it."""
        url: str = self.cleaned_data["url"].strip()
        try:
            url_check(url)
        except InvalidInputError as error:
            text = error.message.removeprefix("url: ")
            raise forms.ValidationError(text[:1].upper() + text[1:]) from None
        return url

    @property
    def values(self) -> WebhookValues:
        """Values as arguments of the services."""
        return cast(WebhookValues, dict(self.cleaned_data))
