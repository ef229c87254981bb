"""Writes of the archive."""

from portal.archive.rules import KEPT
from portal.archive.services.assets import (
    asset_purge,
    asset_release,
    asset_restore,
    asset_trash,
    trash_purge,
)
from portal.archive.services.bin import bin_purge, bin_put, bin_restore
from portal.archive.services.cases import (
    MAX_TAG_LENGTH,
    MAX_TAGS,
    case_create,
    case_delete,
    case_update,
    tags_clean,
)
from portal.archive.services.identity import identity_adopt, identity_problem
from portal.archive.services.ingest import item_job_ended, item_preparing, slide_ready, video_ready
from portal.archive.services.items import (
    ItemReceived,
    item_create,
    item_delete,
    item_receive,
    item_retry,
)
from portal.archive.services.quotas import quota_limit_bytes, quota_set, quota_used_bytes
from portal.archive.services.scale import MPP_LEAST, MPP_MOST, canvas_scale_set
from portal.archive.services.sharing import LONGEST_SHARE, share_accept, share_end, share_offer
from portal.archive.services.sweep import CACHE_BYTES, Swept, storage_sweep
from portal.archive.services.transfers import (
    CHECKSUMS,
    Checksum,
    upload_append,
    upload_begin,
    upload_discard,
    upload_expires,
    upload_finish,
    upload_job_ended,
    upload_join,
    upload_placing,
    upload_store,
)
from portal.archive.services.uploads import name_clean, upload_admit, upload_receive

__all__ = [
    "CACHE_BYTES",
    "CHECKSUMS",
    "KEPT",
    "LONGEST_SHARE",
    "MAX_TAGS",
    "MAX_TAG_LENGTH",
    "MPP_LEAST",
    "MPP_MOST",
    "Checksum",
    "ItemReceived",
    "Swept",
    "asset_purge",
    "asset_release",
    "asset_restore",
    "asset_trash",
    "bin_purge",
    "bin_put",
    "bin_restore",
    "canvas_scale_set",
    "case_create",
    "case_delete",
    "case_update",
    "identity_adopt",
    "identity_problem",
    "item_create",
    "item_delete",
    "item_job_ended",
    "item_preparing",
    "item_receive",
    "item_retry",
    "name_clean",
    "quota_limit_bytes",
    "quota_set",
    "quota_used_bytes",
    "share_accept",
    "share_end",
    "share_offer",
    "slide_ready",
    "storage_sweep",
    "tags_clean",
    "trash_purge",
    "upload_admit",
    "upload_append",
    "upload_begin",
    "upload_discard",
    "upload_expires",
    "upload_finish",
    "upload_job_ended",
    "upload_join",
    "upload_placing",
    "upload_receive",
    "upload_store",
    "video_ready",
]
