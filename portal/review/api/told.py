"""The answer of ``/live/``: written the same way for one page or, from memory, for many."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.annotations.api.rows import JsonText, rows_text
from portal.annotations.selectors import roi_rows_small
from portal.review.selectors import Person, RoiChanged

CARRIED_MOST = 100  # changes that come with their ROI: as many as a page asks for at once
CARRIED_CHARS = 512 * 1024  # of all of them; a page asks for the others by id
ROI_CHARS = 64 * 1024  # of one outline: some 4,000 vertices
TOLD_AGAIN_S = 2.0  # clocks of machines differ, and an answer may be lost
RENEWED_S = 20.0
"""Older cursors are answered again though nothing changed, or they would fall behind for ever."""


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """An answer, and its ETag."""

    etag: str
    text: JsonText

    def is_known(self, if_none_match: str, *, since: datetime, now: datetime) -> bool:
        """Whether the page has it already, with a cursor that it may keep."""
        return if_none_match == self.etag and now - since < timedelta(seconds=RENEWED_S)


def told(
    *, cursor: datetime, changes: Iterable[str], people: Iterable[str], has_more: bool
) -> TaggedAnswer:
    """The answer out of its parts; the ETag is of everything but the cursor."""
    more = "true" if has_more else "false"
    rest = f'"changed":[{",".join(changes)}],"has_more":{more},"people":[{",".join(people)}]'
    etag = f'"{hashlib.blake2b(rest.encode(), digest_size=16).hexdigest()}"'
    at = cursor.isoformat().replace("+00:00", "Z")
    return TaggedAnswer(etag, JsonText(f'{{"cursor":"{at}",{rest}}}'))


def change_text(change: RoiChanged, roi: str | None) -> str:
    """One change, with the ROI as it is now where that is at hand."""
    gone = "true" if change.is_deleted else "false"
    return (
        f'{{"id":"{change.id}","version":{change.version},"is_deleted":{gone},'
        f'"roi":{roi or "null"}}}'
    )


def person_text(person: Person) -> str:
    """One person, as ``PersonSerializer`` describes them."""
    return _encode(
        {
            "id": str(person.id),
            "name": person.name,
            "initials": person.initials,
            "hue": person.hue,
            "view": person.view,
            "roi": str(person.roi) if person.roi else None,
        }
    )


def rois_carried(changes: Sequence[RoiChanged]) -> dict[tuple[uuid.UUID, int], str]:
    """The ROIs of these changes by id and version, the newest first, as far as they may go along.

    Call with changes of ROIs that the person may see.
    """
    wanted = {change.id for change in changes[:CARRIED_MOST]}
    rows = roi_rows_small(list(wanted), most_chars=ROI_CHARS) if wanted else []
    versions = {row.id: row.version for row in rows}
    texts = dict(zip(versions, rows_text(rows), strict=True))
    found: dict[tuple[uuid.UUID, int], str] = {}
    left = CARRIED_CHARS
    for change in changes:
        text = texts.get(change.id)
        left -= len(text) if text else 0
        if text is not None and left >= 0:
            found[change.id, versions[change.id]] = text
    return found


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
