"""Second factors: how their secrets are kept, and what they are called."""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator

from portal.core import ciphers
from portal.labs.models import User

PURPOSE = "tessera second factor"


class LabFactorAdapter(DefaultMFAAdapter):
    """The database or its backup alone gives nobody a second factor."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code is wrong or has already been used.",
    }

    def encrypt(self, text: str) -> str:
        """Under a key made of the installation's secret key."""
        return ciphers.encrypt(text, purpose=PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        """The reverse; earlier keys are tried as well."""
        return ciphers.decrypt(encrypted_text, purpose=PURPOSE)

    def generate_authenticator_name(self, user: User, type: Any) -> str:
        """What a new passkey is called unless its owner names it."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "Passkey" if count == 0 else f"Passkey {count + 1}"
