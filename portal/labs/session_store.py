"""Session store: a database row after sign-in, a signed cookie before.

Following a link or starting to sign in needs a few values across requests. Stored in rows, they
would let anybody without an account fill the database.
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
"""Keys of sessions stored in a row: the user is signed in, or gave the right password and still
needs a second factor."""


class SessionStore(db.SessionStore):
    """Django's database sessions, without rows for guests."""

    _is_new = False  # has a key, and no row yet

    def load(self) -> dict[str, Any]:
        """Values of the session; none if the cookie is forged or too old."""
        if not _is_packed(self.session_key):
            data: dict[str, Any] = super().load()
            return data
        try:
            values: dict[str, Any] = signing.loads(
                str(self.session_key), salt=_SALT, max_age=GUEST_LIFE_S
            )
        except signing.BadSignature:
            self._session_key = None
            return {}
        return values

    def create(self) -> None:
        """Choose a new key; ``save`` writes the row if there is to be one."""
        self._session_key = self._get_new_session_key()  # type: ignore[attr-defined]
        self._session_cache: dict[str, Any] = {}
        self._is_new = self.modified = True

    def save(self, must_create: bool = False) -> None:
        """Write the row of a user, or put a guest's values into the key, which is the cookie."""
        values: dict[str, Any] = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        if not _IN_ROWS & values.keys():
            if not self._is_new:
                self.delete()
            self._session_key = _pack(values)
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
        """Asynchronous ``load``."""
        return await sync_to_async(self.load)()

    async def acreate(self) -> None:
        """Asynchronous ``create``."""
        await sync_to_async(self.create)()

    async def asave(self, must_create: bool = False) -> None:
        """Asynchronous ``save``."""
        await sync_to_async(self.save)(must_create)

    async def adelete(self, session_key: str | None = None) -> None:
        """Asynchronous ``delete``."""
        await sync_to_async(self.delete)(session_key)


def _is_packed(key: str | None) -> bool:
    """Return whether a key holds signed values: they have colons, keys of rows do not."""
    return key is not None and ":" in key


def _pack(values: dict[str, Any]) -> str:
    text = signing.dumps(values, salt=_SALT, compress=True)
    if len(text) <= MAX_COOKIE_BYTES:
        return text
    logger.warning("session: a guest's values are too long for a cookie and were dropped")
    return signing.dumps({}, salt=_SALT)
