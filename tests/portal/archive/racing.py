"""Two real processes upload and purge the same bytes at once; prints what became of each try.

``python -m tests.portal.archive.racing TRIES``: a migrated database and a storage by environment.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import random
import sys
import time
from typing import Any

import django

django.setup()

from django.db import connections  # noqa: E402

from portal.archive.models import Asset, Case, Slide, TrashEntry  # noqa: E402
from portal.archive.services.cases import case_create  # noqa: E402
from portal.archive.services.items import item_delete, item_receive  # noqa: E402
from portal.archive.services.trash import trash_purge  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.core.errors import PortalError  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, User  # noqa: E402
from tests.portal.archive.support import picture  # noqa: E402


def upload(case: Case, user: User, seed: int) -> str:
    try:
        file = io.BytesIO(picture(64, 48, seed))
        received = item_receive(case=case, file=file, filename="a.png", user=user)
    except PortalError as error:
        return error.code
    return "202" if received.is_new else "200"


def purge(case: Case, user: User, seed: int) -> str:
    """Out of the trash: every other try leaves nothing in the orphan folder either."""
    entry = TrashEntry.objects.get(name=f"{seed}.png")
    try:
        trash_purge(entry=entry, user=None, erase=seed % 2 == 0)
    except PortalError as error:
        return error.code
    return "204"


def play(role: Any, tries: int, case: Case, user: User, barrier: Any, answers: Any) -> None:
    """One of the two processes: the same try at the same time, give or take two milliseconds."""
    for seed in range(tries):
        barrier.wait()
        time.sleep(random.uniform(0, 0.002))  # so that each try interleaves differently
        try:
            answers.put(role(case, user, seed))
        except Exception as error:  # noqa: BLE001 - any error is reported
            answers.put(f"broken: {error!r}")
        barrier.wait()
    connections.close_all()


def lost() -> int:
    """Rows whose bytes are not there, or are others."""
    count = 0
    for lab_id, sha256 in Asset.objects.values_list("lab_id", "sha256"):
        path = storage.asset_path(lab_id, sha256)
        count += not path.is_file() or storage.file_sha256(path) != sha256
    return count


def main(tries: int) -> dict[str, Any]:
    lab = Lab.objects.create(name="North", slug="north")
    user = User.objects.create_user("a@north.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role="annotator")
    entry = case_create(lab=lab, user=user, accession="1")
    two = case_create(lab=lab, user=user, accession="2")
    for seed in range(tries):
        file = io.BytesIO(picture(64, 48, seed))
        item_receive(case=entry, file=file, filename=f"{seed}.png", user=user)
    Slide.objects.update(state="failed")
    Job.objects.update(state="failed")
    for item in list(Slide.objects.all()):
        item_delete(item=item, user=user)
    connections.close_all()
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(3), [context.Queue(), context.Queue()]
    players = [
        context.Process(target=play, args=(upload, tries, two, user, barrier, answers[0])),
        context.Process(target=play, args=(purge, tries, entry, user, barrier, answers[1])),
    ]
    for player in players:
        player.start()
    outcomes: dict[str, int] = {}
    for _ in range(tries):
        barrier.wait()
        barrier.wait()
        key = " ".join(queue.get(timeout=30) for queue in answers)
        outcomes[key] = outcomes.get(key, 0) + 1
    for player in players:
        player.join(30)
    return {"outcomes": outcomes, "lost": lost(), "slides": Slide.all_objects.count()}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
