"""Second factors: how their secrets are kept, and what they are called."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes

from portal.labs.models import User


class LabFactorAdapter(DefaultMFAAdapter):
    """What stands in the database or its backup alone gives nobody a second factor."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code is not right, or was used already.",
    }

    def encrypt(self, text: str) -> str:
        """Under a key made of the installation's secret key."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The other way; keys of before are tried as well."""
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def generate_authenticator_name(self, user: User, type: Any) -> str:
        """What a new passkey is called unless its owner says."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "Passkey" if count == 0 else f"Passkey {count + 1}"


def _cipher() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    digests = [
        hashlib.sha256(b"tessera second factor:" + force_bytes(key)).digest() for key in keys
    ]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
