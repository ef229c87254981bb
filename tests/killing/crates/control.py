"""Answers ``make COUNT FOLDER``, ``lab``, ``send ZIP`` and ``came``: a case, and its import."""

from __future__ import annotations

import io
from pathlib import Path

import django

django.setup()

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from portal.archive.models import Asset, Case, Slide  # noqa: E402
from portal.archive.services.cases import case_create  # noqa: E402
from portal.archive.services.items import item_receive  # noqa: E402
from portal.archive.services.transfers.arriving import upload_append  # noqa: E402
from portal.archive.services.transfers.crates import crate_begin  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.core.storage_layout import root as storage_root  # noqa: E402
from portal.interop.rocrate.selectors.imports import IMPORT_KIND  # noqa: E402
from portal.interop.rocrate.services.exports import case_export_to  # noqa: E402
from portal.interop.rocrate.services.imports.jobs import case_import_request  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, Role, User  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402

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


def send(path: str) -> object:
    """Send a crate of the lab to REST and start its import."""
    lab, user = Lab.objects.get(), User.objects.get()
    file = Path(path)
    upload = crate_begin(lab=lab, filename=file.name, size_bytes=file.stat().st_size, user=user)
    with file.open("rb") as sent:
        upload_append(
            upload=upload, offset=0, chunks=iter(lambda: sent.read(2**20), b""), user=user
        )
    return str(case_import_request(user=user, upload_id=upload.pk).pk)


def came() -> object:
    """Rows, files that were taken out so far, and files in place with the hash of their name."""
    scratch = storage_root() / "scratch"
    placed = [path for path in (storage_root() / "assets").rglob("*") if path.is_file()]
    return {
        "cases": Case.objects.count(),
        "slides": Slide.objects.count(),
        "jobs": Job.objects.exclude(kind=IMPORT_KIND).count(),
        "import": Job.objects.filter(kind=IMPORT_KIND).values_list("state", flat=True).first(),
        "sent": len(list((storage_root() / "incoming").glob("*"))),
        "assets": sorted(Asset.objects.values_list("sha256", flat=True)),
        "placed": sorted(p.name for p in placed if storage.file_sha256(p) == p.name),
        "odd": [p.name for p in placed if storage.file_sha256(p) != p.name],
        "taken": len([p for p in scratch.glob("crate-*/originals/*") if p.name[0] != "."]),
    }


if __name__ == "__main__":
    dispatch({"make": make, "lab": lab, "send": send, "came": came})
