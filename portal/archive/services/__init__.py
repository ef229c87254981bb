"""Writes of the archive."""

from portal.archive.services.cases import CaseFields, case_create, case_delete, case_update
from portal.archive.services.ingest import (
    item_job_ended,
    item_preparing,
    slide_ready,
    video_ready,
)
from portal.archive.services.items import (
    ItemReceived,
    item_create,
    item_delete,
    item_receive,
    item_retry,
    slide_create,
    video_create,
)
from portal.archive.services.uploads import (
    upload_append,
    upload_begin,
    upload_complete,
    upload_discard,
    upload_receive,
)

__all__ = [
    "CaseFields",
    "ItemReceived",
    "case_create",
    "case_delete",
    "case_update",
    "item_create",
    "item_delete",
    "item_job_ended",
    "item_preparing",
    "item_receive",
    "item_retry",
    "slide_create",
    "slide_ready",
    "upload_append",
    "upload_begin",
    "upload_complete",
    "upload_discard",
    "upload_receive",
    "video_create",
    "video_ready",
]
