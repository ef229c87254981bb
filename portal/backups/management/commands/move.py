"""``manage.py move FILE``: move the installation to the settings of a file."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from portal.archive.storage.s3_store import S3Settings
from portal.backups.management.progress_bar import progress_bar
from portal.backups.services.moving import MoveTarget, installation_move
from portal.core import environment
from portal.core.errors import PortalError


class Command(BaseCommand):
    """Copy rows and files, compare both, and leave the source unchanged."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "settings_file",
            type=Path,
            help="TESSERA_DATABASE_URL, TESSERA_STORAGE and, for a bucket, TESSERA_STORE=s3 with "
            "TESSERA_S3_..., one NAME=VALUE a line",
        )

    def handle(self, *args: Any, settings_file: Path, **options: Any) -> None:
        """Move and report the counts."""
        try:
            target = _target(settings_file)
            with progress_bar(self.stderr) as progress:
                report = installation_move(target=target, progress=progress)
        except ImproperlyConfigured as error:
            raise CommandError(f"{settings_file}: {error}") from error
        except PortalError as error:
            raise CommandError(error.message) from error
        except DatabaseError as error:
            raise CommandError(f"The target's database: {error}") from error
        except OSError as error:
            raise CommandError(f"The move stopped: {error}. Run it again to continue.") from error
        self.stdout.write(
            f"{report.rows} rows of {report.tables} tables and {report.files} files "
            f"({report.size_bytes} bytes) were copied and compared. Start the portal with the "
            "settings of the file and the same TESSERA_SECRET_KEY; the old place is as it was."
        )


def _target(path: Path) -> MoveTarget:
    """Read a file of settings.

    Raises:
        ImproperlyConfigured: A setting is missing or invalid.
    """
    if not path.is_file():
        raise ImproperlyConfigured("there is no such file.")
    with _environment_of(path):
        environment.text("TESSERA_DATABASE_URL")
        bucket_settings = environment.object_storage()
        return MoveTarget(
            database=environment.database(""),
            folder=environment.storage_root(Path(environment.text("TESSERA_STORAGE"))),
            bucket=S3Settings(**bucket_settings) if bucket_settings else None,  # type: ignore[arg-type]
        )


@contextmanager
def _environment_of(path: Path) -> Iterator[None]:
    """Replace the portal's environment variables by those of a file."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("TESSERA_")]:
        del os.environ[name]
    try:
        environ.Env.read_env(path, overwrite=True)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
