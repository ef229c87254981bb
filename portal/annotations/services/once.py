"""A write that its client can send again, and that is carried out once."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import QuerySet

from portal.annotations.models import Roi, RoiRevision
from portal.core.errors import KeyReusedError, StaleVersionError
from portal.labs.models import User

_ROI_IDS = uuid.UUID("6d1f7e0e-6a0e-5d0b-9c53-5f2f9a4f3c11")  # of ROIs that were drawn under a key


@dataclass(frozen=True, slots=True)
class Once:
    """A write that its client can send again when the answer was lost.

    Attributes:
        key: SHA-256 of the person and the key that the client gave the write.
        digest: SHA-256 of what was asked for; the same key must not ask for something else.
    """

    key: str
    digest: str

    @classmethod
    def of(cls, user: User, *, key: str, request: str) -> Once:
        """From the client's key and the request as text."""
        return cls(_sha256(f"{user.pk}:{key}"), _sha256(request))

    @property
    def roi_id(self) -> uuid.UUID:
        """The id of an ROI that is drawn under this key, where the client chose none."""
        return uuid.uuid5(_ROI_IDS, self.key)

    def was_done(self, roi: Roi) -> bool:
        """True if a revision of the ROI comes from this write.

        Raises:
            KeyReusedError: the key stands for another write.
        """
        return self._made_one_of(roi.revisions.all())

    def was_done_to_any(self, roi_ids: Sequence[uuid.UUID]) -> bool:
        """True if a revision of one of these ROIs comes from this write. One query.

        Raises:
            KeyReusedError: the key stands for another write.
        """
        return self._made_one_of(RoiRevision.objects.filter(roi__in=roi_ids))

    def sign(self, revision: RoiRevision) -> None:
        """Say in a revision, not saved yet, that it comes from this write."""
        revision.client_key, revision.client_digest = self.key, self.digest

    def _made_one_of(self, revisions: QuerySet[RoiRevision]) -> bool:
        revision = revisions.filter(client_key=self.key).only("client_digest").first()
        if revision is None:
            return False
        if revision.client_digest != self.digest:
            raise KeyReusedError(
                "This Idempotency-Key was used for another request. Choose a new one."
            )
        return True


@contextmanager
def at_most_once(roi: Roi, once: Once | None) -> Iterator[None]:
    """A write that is stale because it was carried out before ends the block without an error.

    The row then is as it is now, with what others changed since.
    """
    try:
        yield
    except (StaleVersionError, IntegrityError):
        if once is None or not once.was_done(roi):
            raise
        roi.refresh_from_db()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
