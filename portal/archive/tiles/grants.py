"""Tile grants: a signed, compact token that stands for "this user may see this canvas".

It is part of the tile's address, so it must be the same for hours or the browser's cache is
worthless: the expiry is rounded to a bucket, and nothing else in the token varies.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import time
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings

BUCKET_S = 12 * 3600
"""A grant lives between one and two buckets."""
_BODY = struct.Struct(">16s16sI")
_SIGNATURE_BYTES = 16  # 128 bits: beyond guessing, and short in an address


class Grant(NamedTuple):
    """What a token says."""

    canvas_id: uuid.UUID
    user_id: uuid.UUID
    expires_s: int


class GrantError(Exception):
    """Not a token of ours."""


def grant_issue(*, canvas_id: uuid.UUID, user_id: uuid.UUID, now_s: float | None = None) -> str:
    """A token for one canvas and one user; the same within a bucket of 12 hours."""
    bucket = int(time.time() if now_s is None else now_s) // BUCKET_S
    body = _BODY.pack(canvas_id.bytes, user_id.bytes, bucket + 2)
    return urlsafe_b64encode(body + _signature(body)).decode().rstrip("=")


def grant_read(token: str) -> Grant:
    """Check the signature. The caller checks the expiry and, against the database, the permission.

    Raises:
        GrantError: damaged, forged, or signed with another key.
    """
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        spelled = urlsafe_b64encode(raw).decode().rstrip("=")
    except (ValueError, Base64Error):
        raise GrantError from None
    if len(raw) != _BODY.size + _SIGNATURE_BYTES or spelled != token:
        raise GrantError
    body, signature = raw[: _BODY.size], raw[_BODY.size :]
    if not hmac.compare_digest(signature, _signature(body)):
        raise GrantError
    canvas, user, bucket = _BODY.unpack(body)
    return Grant(uuid.UUID(bytes=canvas), uuid.UUID(bytes=user), bucket * BUCKET_S)


def _signature(body: bytes) -> bytes:
    digest = hmac.new(_key(settings.SECRET_KEY), body, hashlib.sha256).digest()
    return digest[:_SIGNATURE_BYTES]


@lru_cache(maxsize=4)
def _key(secret: str) -> bytes:
    return hashlib.sha256(b"tessera.tile-grant:" + secret.encode()).digest()
