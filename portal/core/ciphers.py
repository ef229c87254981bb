"""Encryption of stored secrets that have to be read again, by a key from the installation's secret
key.

The database or its backup does not reveal them without that key.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes


def encrypt(text: str, *, purpose: str) -> str:
    """Encrypt under the key of a purpose; one purpose's key opens nothing of another's."""
    return _cipher(purpose).encrypt(text.encode()).decode()


def decrypt(text: str, *, purpose: str) -> str:
    """Decrypt; earlier keys are tried as well.

    Raises:
        cryptography.fernet.InvalidToken: it is under none of this installation's keys.
    """
    return _cipher(purpose).decrypt(text.encode()).decode()


def _cipher(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    digests = [hashlib.sha256(f"{purpose}:".encode() + force_bytes(key)).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
