"""Secrets of one-time links, stored as SHA-256 only."""

from __future__ import annotations

import hashlib
import secrets

SECRET_BYTES = 32  # 256 random bits need no slow hash


def secret_make() -> tuple[str, str]:
    """Return a new secret and its SHA-256."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return secret, sha256_of(secret)


def sha256_of(secret: str) -> str:
    """SHA-256 of a secret, the only form in which it is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
