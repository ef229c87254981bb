"""``manage.py archive_orphans``: list, restore or purge originals that no row names."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.services.assets import asset_restore, orphan_purge
from portal.archive.storage.files import asset_of, human_size
from portal.archive.storage.orphans import OrphanFile, orphan_list


class Command(BaseCommand):
    """``list``, ``restore`` or ``purge`` orphans by the beginning of their SHA-256."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("action", choices=["list", "restore", "purge"])
        parser.add_argument("sha256", nargs="*", help="beginnings of SHA-256; none means all")
        parser.add_argument(
            "--yes", action="store_true", help="purge everything when no file is named"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """List, restore or delete orphans."""
        action, sha256_prefixes = options["action"], tuple(options["sha256"])
        if action == "purge" and not sha256_prefixes and not options["yes"]:
            raise CommandError("Name the files to purge, or use --yes to empty the orphan folder.")
        items = [
            item
            for item in orphan_list()
            if not sha256_prefixes or item.home.rsplit("/", 1)[-1].startswith(sha256_prefixes)
        ]
        for item in items:
            self.stdout.write(f"{item.day} {human_size(item.size_bytes):>10} {item.home}")
        if action != "list":
            count = sum(_apply(action, item) for item in items)
            past = {"restore": "restored", "purge": "purged"}[action]
            self.stdout.write(f"{past}: {count} of {len(items)}")


def _apply(action: str, item: OrphanFile) -> int:
    asset = asset_of(item.home)
    if asset is None:  # added by hand
        return 0
    lab_id, sha256 = asset
    if action == "restore":
        return int(asset_restore(lab_id=lab_id, sha256=sha256))
    return int(orphan_purge(item, lab_id=lab_id, sha256=sha256))
