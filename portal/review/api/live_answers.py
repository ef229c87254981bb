"""Response of ``/live/``, computed for one page or, from memory, for many."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.annotations.api.rows import JsonText, rows_text
from portal.annotations.selectors.rows import roi_rows_small
from portal.core.api.etags import tag_of
from portal.review.selectors.live import Person, RoiChanged

MAX_INCLUDED_ROIS = 100  # changes that include their ROI
MAX_INCLUDED_CHARS = 512 * 1024  # in total; pages request the others by id
MAX_ROI_CHARS = 64 * 1024  # of one outline: some 4,000 vertices
REPEAT_S = 2.0  # for clock differences and lost responses
RENEWED_S = 20.0
"""Older cursors are renewed even if nothing changed."""


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """A response and its ETag."""

    etag: str
    text: JsonText

    def is_known(self, if_none_match: str, *, since: datetime, now: datetime) -> bool:
        """Return whether the page has this response, with a cursor that is recent enough."""
        return if_none_match == self.etag and now - since < timedelta(seconds=RENEWED_S)


def live_answer(
    *,
    cursor: datetime,
    changes: Iterable[str],
    people: Iterable[str],
    has_more: bool,
    video_events: int,
) -> TaggedAnswer:
    """Response made of its parts; the ETag covers everything but the cursor."""
    has_more_json = "true" if has_more else "false"
    body = (
        f'"changed":[{",".join(changes)}],"has_more":{has_more_json},"people":[{",".join(people)}],'
        f'"video_events":{video_events}'
    )
    at = cursor.isoformat().replace("+00:00", "Z")
    return TaggedAnswer(tag_of(body.encode()), JsonText(f'{{"cursor":"{at}",{body}}}'))


def change_text(change: RoiChanged, roi: str | None) -> str:
    """A change as JSON, with the present ROI if it is available."""
    is_deleted = "true" if change.is_deleted else "false"
    return (
        f'{{"id":"{change.id}","version":{change.version},"is_deleted":{is_deleted},'
        f'"roi":{roi or "null"}}}'
    )


def person_text(person: Person) -> str:
    """A person as JSON, as ``PersonSerializer`` describes them."""
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


def included_rois(changes: Sequence[RoiChanged]) -> dict[tuple[uuid.UUID, int], str]:
    """ROIs of these changes by id and version, newest first, up to the limits of size.

    Call with changes of visible ROIs.
    """
    ids = {change.id for change in changes[:MAX_INCLUDED_ROIS]}
    rows = roi_rows_small(list(ids), max_chars=MAX_ROI_CHARS) if ids else []
    versions = {row.id: row.version for row in rows}
    texts = dict(zip(versions, rows_text(rows), strict=True))
    included: dict[tuple[uuid.UUID, int], str] = {}
    chars_left = MAX_INCLUDED_CHARS
    for change in changes:
        text = texts.get(change.id)
        chars_left -= len(text) if text else 0
        if text is not None and chars_left >= 0:
            included[change.id, versions[change.id]] = text
    return included


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
