"""Sessions: a row in the database once somebody signs in, before that a signed cookie.

Following a link or beginning to sign in needs a few words from one request to the next. Kept in
rows, they would let anybody without an account fill the database.
"""

from __future__ import annotations

import logging
from typing import Any

from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from asgiref.sync import sync_to_async
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.core import signing

logger = logging.getLogger(__name__)

GUEST_LIFE_S = 3600  # to follow a link, and to come back from the organization's sign-in service
MAX_COOKIE_BYTES = 3800  # browsers drop cookies of more than 4096, name and attributes included
_SALT = "portal.labs.session_store"
_IN_ROWS = frozenset({SESSION_KEY, LOGIN_SESSION_KEY})
"""A session with one of these has a row: somebody is signed in, or gave the right password and now
owes a second factor."""


class SessionStore(db.SessionStore):
    """Django's sessions in the database, without rows for people who are not signed in."""

    _is_new = False  # has a key, and no row yet

    def load(self) -> dict[str, Any]:
        """The session's values; none where the cookie is forged, or too old."""
        if not _is_packed(self.session_key):
            found: dict[str, Any] = super().load()
            return found
        try:
            values: dict[str, Any] = signing.loads(
                str(self.session_key), salt=_SALT, max_age=GUEST_LIFE_S
            )
        except signing.BadSignature:
            self._session_key = None
            return {}
        return values

    def create(self) -> None:
        """Choose a new key; ``save`` writes the row where there is to be one."""
        self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
        self._session_cache: dict[str, Any] = {}
        self._is_new = self.modified = True

    def save(self, must_create: bool = False) -> None:
        """Write the row of a person, or put a guest's values into the key, which is the cookie."""
        values: dict[str, Any] = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        if not _IN_ROWS & values.keys():
            if not self._is_new:
                self.delete()
            self._session_key = _packed(values)
            return
        if self.session_key is None or _is_packed(self.session_key):
            self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
            self._is_new = True
        super().save(must_create=must_create or self._is_new)
        self._is_new = False

    def delete(self, session_key: str | None = None) -> None:
        """Delete the row, if there is one."""
        key = session_key or self.session_key
        if key is not None and not _is_packed(key):
            super().delete(key)

    async def aload(self) -> dict[str, Any]:
        """``load``."""
        return await sync_to_async(self.load)()

    async def acreate(self) -> None:
        """``create``."""
        await sync_to_async(self.create)()

    async def asave(self, must_create: bool = False) -> None:
        """``save``."""
        await sync_to_async(self.save)(must_create)

    async def adelete(self, session_key: str | None = None) -> None:
        """``delete``."""
        await sync_to_async(self.delete)(session_key)


def _is_packed(key: str | None) -> bool:
    """Keys of rows are letters and digits; signed values have colons."""
    return key is not None and ":" in key


def _packed(values: dict[str, Any]) -> str:
    text = signing.dumps(values, salt=_SALT, compress=True)
    if len(text) <= MAX_COOKIE_BYTES:
        return text
    logger.warning("session: a guest's values are too long for a cookie and were dropped")
    return signing.dumps({}, salt=_SALT)
