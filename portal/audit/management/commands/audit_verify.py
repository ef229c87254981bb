"""Check the chains of the audit log."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser
from collections import defaultdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit import selectors, services
from portal.audit.append_only import triggers_missing
from portal.audit.selectors import Head


class Command(BaseCommand):
    """Find the first broken link of each lab's chain, and print the heads to store elsewhere."""

    help = "Check the hash chains of the audit log and print their heads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the heads that were stored elsewhere."""
        parser.add_argument(
            "--expect",
            action="append",
            default=[],
            metavar="LAB:NUMBER:HASH",
            help="a head printed earlier; may be given more than once",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each broken chain and exit with 1 if there is any."""
        expected: defaultdict[uuid.UUID, list[Head]] = defaultdict(list)
        for head in map(_head, options["expect"]):
            expected[head.lab_id].append(head)
        broken = [f"the trigger {name} is missing" for name in triggers_missing()]
        services.entries_seal_all()
        for lab_id in sorted({*selectors.chain_labs(), *expected}):
            chain_error = selectors.chain_break(lab_id, expected=expected[lab_id])
            if chain_error:
                broken.append(f"lab {lab_id}: number {chain_error.number}: {chain_error.reason}")
            elif end := selectors.chain_head(lab_id):
                self.stdout.write(f"{end.lab_id}:{end.number}:{end.hash}")
        if broken:
            raise CommandError(
                "The audit log was tampered with or is incomplete.\n" + "\n".join(broken)
            )


def _head(text: str) -> Head:
    try:
        lab_id, number, digest = text.split(":")
        return Head(uuid.UUID(lab_id), int(number), digest.lower())
    except ValueError:
        raise CommandError(f"--expect: {text!r} is not LAB:NUMBER:HASH.") from None
