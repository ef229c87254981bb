"""Identity of the database, stored with the files.

Housekeeping deletes files that no row names. With another database, or an empty one, that would be
every file. So an id is stored both in a row of the database and in the storage's ``identity.json``.
"""

from __future__ import annotations

import json

from django.db import transaction
from django.utils import timezone

from portal.archive.models import StorageIdentity
from portal.archive.storage import files as storage
from portal.core.database.locks import transaction_lock


def identity_mark() -> None:
    """Write the database's identity to the storage if there is none yet."""
    if storage.the_store().stat(storage.IDENTITY) is None:
        identity_adopt()


def identity_adopt() -> None:
    """Declare that the files in the storage belong to this database, whatever their identity was.

    For a restored backup and after the storage was moved. The file is written on commit, since one
    that names a rolled-back row would not match its own database.
    """
    with transaction.atomic():
        transaction_lock("storage identity")
        row, _ = StorageIdentity.objects.get_or_create(is_singleton=True)
        transaction.on_commit(lambda: _write(str(row.pk)), robust=True)


def identity_problem() -> str:
    """Reason that the files do not belong to this database; empty if they do or name none."""
    try:
        database_id = json.loads(storage.the_store().read(storage.IDENTITY))["database"]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{storage.IDENTITY} of the storage cannot be read ({error})."
    row = StorageIdentity.objects.first()
    if row is None:
        return (
            f"The files in the storage belong to database {database_id}; "
            "this database is a new one."
        )
    if str(row.pk) != database_id:
        return (
            f"The files in the storage belong to database {database_id}; this is database {row.pk}."
        )
    return ""


def _write(database: str) -> None:
    content = {"database": database, "written": timezone.now().isoformat()}
    storage.the_store().write(storage.IDENTITY, json.dumps(content).encode())
