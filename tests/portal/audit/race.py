"""Processes that write and seal at once, then a look at the chains they left. Run by ``test_race``.

``race.py PROCESSES COUNT LAB LAB``; the last line has the numbers of entries, seals and places.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import uuid
from typing import Any

import django


def play(labs: list[uuid.UUID], count: int, barrier: Any) -> None:
    """Note ``count`` entries in short transactions, and seal between them."""
    from django.db import transaction

    from portal.audit.services import entries_seal, entry_note

    draw = random.Random(os.getpid())
    barrier.wait()
    for step in range(count):
        with transaction.atomic():
            entry_note(
                "roi.saved", lab_ids=[draw.choice(labs)], details={"by": os.getpid(), "step": step}
            )
        if draw.random() < 0.5:
            entries_seal()


def main(processes: int, count: int, labs: list[uuid.UUID]) -> int:
    """The exit code: 0 where every process ended well."""
    from django.core.management import call_command

    from portal.audit.models import AuditEntry, AuditSeal

    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(processes)
    players = [context.Process(target=play, args=(labs, count, barrier)) for _ in range(processes)]
    for player in players:
        player.start()
    for player in players:
        player.join()
    call_command("audit_verify")  # seals the rest and checks every link
    places = AuditSeal.objects.values("lab_id", "number").distinct().count()
    print(AuditEntry.objects.count(), AuditSeal.objects.count(), places)
    return int(any(player.exitcode for player in players))


if __name__ == "__main__":
    django.setup()
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), [uuid.UUID(text) for text in sys.argv[3:]]))
