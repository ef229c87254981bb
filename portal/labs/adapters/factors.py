"""Second factors: encryption of their secrets, and default names."""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator

from portal.core import ciphers
from portal.labs.models import User

PURPOSE = "tessera second factor"


class LabFactorAdapter(DefaultMFAAdapter):
    """Encrypt second factors with the installation's key."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code is wrong or has already been used.",
    }

    def encrypt(self, text: str) -> str:
        """Encrypt with a key derived from the installation's secret key."""
        return ciphers.encrypt(text, purpose=PURPOSE)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt with the present key, or one of the earlier keys."""
        return ciphers.decrypt(encrypted_text, purpose=PURPOSE)

    def generate_authenticator_name(self, user: User, type: Any) -> str:
        """Default name of a new passkey."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "Passkey" if count == 0 else f"Passkey {count + 1}"
