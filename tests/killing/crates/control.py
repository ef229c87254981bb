"""Answers ``make COUNT FOLDER``, ``lab`` and ``came``: a case with files, and what was imported."""

from __future__ import annotations

import io
from pathlib import Path

import django

django.setup()

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from portal.archive import storage  # noqa: E402
from portal.archive.models import Asset, Case, Slide  # noqa: E402
from portal.archive.services import case_create, item_receive  # noqa: E402
from portal.exchange.services import case_export_to  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, Role, User  # noqa: E402
from tests.killing.answers import answer  # noqa: E402

SIDE_PX = 700  # a picture of noise of 1.4 MB: two pieces


def _manager() -> tuple[Lab, User]:
    lab = Lab.objects.create(name="Crates", slug="crates")
    user = User.objects.create_user("crates@kill.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    return lab, user


def make(count: str, folder: str) -> object:
    """A case with so many pictures, exported; returns their hashes."""
    lab, user = _manager()
    case = case_create(lab=lab, user=user, accession="K-3")
    rng = np.random.default_rng(8)
    for number in range(int(count)):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (SIDE_PX, SIDE_PX, 3), np.uint8)).save(file, "PNG")
        file.seek(0)
        item_receive(case=case, file=file, filename=f"{number}.png", user=user)
    case_export_to(user=user, case=case, out=Path(folder), as_folder=False)
    return sorted(Asset.objects.values_list("sha256", flat=True))


def lab() -> object:
    """A lab to import into."""
    return str(_manager()[0].pk)


def came() -> object:
    """Rows, files that were taken out so far, and files in place with the hash of their name."""
    scratch = storage.root() / "scratch"
    placed = [path for path in (storage.root() / "assets").rglob("*") if path.is_file()]
    return {
        "cases": Case.objects.count(),
        "slides": Slide.objects.count(),
        "jobs": Job.objects.count(),
        "assets": sorted(Asset.objects.values_list("sha256", flat=True)),
        "placed": sorted(p.name for p in placed if storage.file_sha256(p) == p.name),
        "odd": [p.name for p in placed if storage.file_sha256(p) != p.name],
        "taken": len([p for p in scratch.glob("import-*/originals/*") if p.name[0] != "."]),
    }


if __name__ == "__main__":
    answer({"make": make, "lab": lab, "came": came})
