"""Form of the notification preferences."""

from __future__ import annotations

from django import forms

from portal.inbox.models import MailChoice


class PreferencesForm(forms.Form):
    """Notification preferences of a person."""

    mail = forms.ChoiceField(
        choices=MailChoice.choices, widget=forms.RadioSelect, label="Notifications by e-mail"
    )
