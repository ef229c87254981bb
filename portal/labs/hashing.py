"""Secrets of one-time links: made here, kept only as a SHA-256."""

from __future__ import annotations

import hashlib
import secrets

SECRET_BYTES = 32  # 256 random bits need no slow hash


def secret_make() -> tuple[str, str]:
    """A secret for a link, and the SHA-256 that is kept of it."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return secret, sha256_of(secret)


def sha256_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
