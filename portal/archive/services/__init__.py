"""Writes of the archive."""

from portal.archive.services.cases import (
    MAX_TAG_LENGTH,
    MAX_TAGS,
    case_create,
    case_delete,
    case_update,
    tags_clean,
)
from portal.archive.services.ingest import item_job_ended, item_preparing, slide_ready, video_ready
from portal.archive.services.items import (
    ItemReceived,
    item_create,
    item_delete,
    item_receive,
    item_retry,
)
from portal.archive.services.sweep import CACHE_BYTES, OLDER_THAN, storage_sweep
from portal.archive.services.uploads import (
    name_clean,
    upload_append,
    upload_begin,
    upload_complete,
    upload_receive,
)

__all__ = [
    "CACHE_BYTES",
    "MAX_TAGS",
    "MAX_TAG_LENGTH",
    "OLDER_THAN",
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
    "name_clean",
    "slide_ready",
    "storage_sweep",
    "tags_clean",
    "upload_append",
    "upload_begin",
    "upload_complete",
    "upload_receive",
    "video_ready",
]
