"""Signatures of Standard Webhooks, which any of its libraries can verify.

``webhook-signature`` is ``v1,<base64 of HMAC-SHA256>`` of ``id.timestamp.body``, one for each valid
secret, so that a secret can be replaced without a gap.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification allows 24 to 64


def secret_new() -> str:
    """Create a secret in the format of Standard Webhooks."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers_of(
    message_id: str, *, timestamp: int, body: str, keys: Iterable[str]
) -> Mapping[str, str]:
    """Headers that identify and sign a message."""
    signed = f"{message_id}.{timestamp}.{body}".encode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(key: str, signed: bytes) -> str:
    digest = hmac.new(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
