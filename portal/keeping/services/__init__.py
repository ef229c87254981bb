"""Writes of keeping: backups and their way back, the bin, erasure."""

from portal.keeping.services.backup import BackupReport, backup_take, backup_verify
from portal.keeping.services.bin import bin_purge_due, roi_purge
from portal.keeping.services.erasing import (
    cases_of,
    erasure_begin,
    erasure_preview,
    erasure_request,
    erasure_run,
)
from portal.keeping.services.moving import MoveReport, installation_move
from portal.keeping.services.moving import Target as MoveTarget
from portal.keeping.services.restore import RestoreReport, restore

__all__ = [
    "BackupReport",
    "MoveReport",
    "MoveTarget",
    "RestoreReport",
    "backup_take",
    "backup_verify",
    "bin_purge_due",
    "cases_of",
    "erasure_begin",
    "erasure_preview",
    "erasure_request",
    "erasure_run",
    "installation_move",
    "restore",
    "roi_purge",
]
