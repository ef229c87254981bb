"""A portal over real HTTP with slides of several formats, and clients of DICOMweb that ask it."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
import tifffile
from dicomweb_client.api import DICOMwebClient
from django.test import override_settings

from ml.imaging.dicom.uids import uid_of
from ml.imaging.slides.pyramids import write_pyramid
from portal.archive.models import Canvas, Case
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.archive.tiles.cache import SOURCES
from portal.interop.dicomweb.selectors.objects import _own_objects
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.tokens import token_create
from tests.world import in_process


@dataclass
class Site:
    """A portal and its one lab."""

    url: str
    lab: Lab
    user: User
    secret: str
    folder: Path
    sessions: list[requests.Session] = field(default_factory=list)

    def session(self) -> requests.Session:
        """With the token in each request."""
        made = requests.Session()
        made.headers["Authorization"] = f"Bearer {self.secret}"
        self.sessions.append(made)
        return made

    def client(self) -> DICOMwebClient:
        """Client of the dicomweb-client library."""
        return DICOMwebClient(f"{self.url}/api/v1/dicomweb", session=self.session())

    def case(self, accession: str, **found: Any) -> Case:
        """A new case."""
        return case_create(lab=self.lab, user=self.user, accession=accession, **found)

    def slide(self, case: Case, path: Path) -> Canvas:
        """Uploaded, through the gate."""
        with path.open("rb") as file:
            received = item_receive(case=case, file=file, filename=path.name, user=self.user)
        assert received.job is not None
        job_run(received.job.pk)
        received.item.refresh_from_db()
        assert received.item.state == "ready", received.item.error_message
        canvas = received.item.canvas
        assert canvas is not None
        return canvas


@pytest.fixture
def site(
    transactional_db: None, live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Site]:
    """Live site with an empty lab."""
    in_process(monkeypatch)
    with override_settings(TESSERA_STORAGE=tmp_path / "storage"):
        lab = Lab.objects.create(name="DICOM", slug="dicom")
        user = User.objects.create_user("dicom@dicom.example", "correct horse battery")
        Membership.objects.create(user=user, lab=lab, role=Role.ANNOTATOR)
        _, secret = token_create(
            user, name="v", scope=TokenScope.READ, expires_in=timedelta(days=1)
        )
        made = Site(live_server.url, lab, user, secret, tmp_path)
        before = set(threading.enumerate())
        yield made
        for session in made.sessions:
            session.close()
        for thread in set(threading.enumerate()) - before:  # they share the test's connection
            thread.join(10)
        SOURCES.clear()
        _own_objects.cache_clear()


def pixels(width: int = 1500, height: int = 1100) -> np.ndarray:
    """Structure in it, so that a tile is not the next."""
    rng = np.random.default_rng(5)
    blocks = rng.integers(40, 255, (-(-height // 50), -(-width // 50), 3), dtype=np.uint8)
    return np.kron(blocks, np.ones((50, 50, 1), np.uint8))[:height, :width]


def pyramid(folder: Path) -> Path:
    """A TIFF of JPEG tiles in YCbCr, with levels."""
    return write_pyramid(pixels(), folder / "pyramid.tif", mpp=0.5)


def aperio(folder: Path) -> Path:
    """An SVS with a label and a macro, whose JPEG tiles are RGB without a marker that says so."""
    path, picture = folder / "aperio.svs", pixels(1300, 700)
    head = "Aperio Image Library v11.2.1\r\n1300x700 (128x128) JPEG/RGB Q=90|AppMag = 20|MPP = 0.5"
    options: dict[str, Any] = {"compression": "jpeg", "photometric": "rgb", "metadata": None}
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(picture, tile=(128, 128), description=head, **options)
        tiff.write(picture[::4, ::4], description=head, **options)
        label = "Aperio Image Library v11.2.1\r\nlabel 30x40"
        tiff.write(
            np.full((40, 30, 3), 7, np.uint8),
            description=label,
            subfiletype=1,
            photometric="rgb",
            metadata=None,
        )
    return path


def zipped(folder: Path, path: Path) -> Path:
    """A series as it is uploaded."""
    with zipfile.ZipFile(path, "w") as archive:
        for item in sorted(folder.glob("*.dcm")):
            archive.write(item, item.name)
    return path


def uids(canvas: Canvas) -> tuple[str, str]:
    """UIDs of the study and the series of a canvas."""
    return uid_of(canvas.case_id), uid_of(canvas.pk)
