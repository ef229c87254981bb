"""One of several processes that write and seal at once. Run by ``test_race``: LAB LAB COUNT."""

from __future__ import annotations

import os
import random
import sys
import uuid

import django


def main(labs: list[uuid.UUID], count: int) -> None:
    """Note ``count`` entries in short transactions, and seal between them."""
    from django.db import transaction

    from portal.audit.services import entries_seal, entry_note

    draw = random.Random(os.getpid())
    for step in range(count):
        with transaction.atomic():
            entry_note(
                "roi.saved", lab_ids=[draw.choice(labs)], details={"by": os.getpid(), "step": step}
            )
        if draw.random() < 0.5:
            entries_seal()


if __name__ == "__main__":
    django.setup()
    main([uuid.UUID(text) for text in sys.argv[1:3]], int(sys.argv[3]))
