"""Files that arrive in pieces: after a failure on either side, a transfer continues from there.

``upload_begin`` announces a file, ``upload_append`` takes its pieces, and the last byte submits the
job ``upload_finish``, which checks the file and makes a slide or a video of it. Of a large file,
several parts may arrive at once (``is_part``); ``upload_join`` makes them one whole.
"""

from portal.archive.services.transfers.arriving import (
    require_send,
    upload_append,
    upload_begin,
    upload_discard,
    upload_expires,
    upload_join,
)
from portal.archive.services.transfers.crates import (
    crate_begin,
    crate_check,
    crate_refused,
    crate_stored,
)
from portal.archive.services.transfers.finishing import (
    upload_finish,
    upload_job_ended,
    upload_placing,
    upload_store,
)
from portal.archive.services.transfers.writing import (
    CHECKSUMS,
    Checksum,
    ChecksumError,
    UploadBusyError,
)

__all__ = [
    "CHECKSUMS",
    "Checksum",
    "ChecksumError",
    "UploadBusyError",
    "crate_begin",
    "crate_check",
    "crate_refused",
    "crate_stored",
    "require_send",
    "upload_append",
    "upload_begin",
    "upload_discard",
    "upload_expires",
    "upload_finish",
    "upload_job_ended",
    "upload_join",
    "upload_placing",
    "upload_store",
]
