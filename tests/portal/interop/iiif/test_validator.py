"""The IIIF consortium's own validator, over real HTTP, with its test image of a hundred squares."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from django.test import override_settings

from ml.imaging.slides.pyramids import write_pyramid
from portal.archive.models import Canvas
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.archive.tiles.cache import SOURCES
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.tokens import token_create
from tests.world import in_process

sys.modules.setdefault("magic", ModuleType("magic"))  # libmagic; for formats not claimed here
from iiif_validator.validator import ImageAPI, TestSuite, ValidationInfo  # noqa: E402

TestSuite.__test__ = False
NOT_CLAIMED = {
    *("format_gif", "format_jp2", "format_pdf", "format_tif", "format_webp"),
    *("rot_full_non90", "rot_region_non90", "size_up"),
}
CONTRADICTED = {"size_noup"}
"""The validator expects ``!2000,3000`` of 1,000 px to be refused; specification 4.2 allows it."""
BY_SPECIFICATION = "!2000,3000"


@pytest.fixture
def image(
    transactional_db: None, live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[tuple[str, str]]:
    """Host and port, and the id of the test image; urllib sends the token and an origin."""
    in_process(monkeypatch)
    with override_settings(TESSERA_STORAGE=tmp_path / "storage"):
        lab = Lab.objects.create(name="IIIF", slug="iiif")
        user = User.objects.create_user("iiif@iiif.example", "correct horse battery")
        Membership.objects.create(user=user, lab=lab, role=Role.ANNOTATOR)
        canvas = _squares(lab, user, tmp_path)
        _, secret = token_create(
            user, name="v", scope=TokenScope.READ, expires_in=timedelta(days=1)
        )
        opener = urllib.request.build_opener()
        opener.addheaders = [
            ("Authorization", f"Bearer {secret}"),
            ("Origin", "http://viewer.test"),
        ]
        urllib.request.install_opener(opener)
        yield live_server.url.removeprefix("http://"), str(canvas.pk)
        urllib.request.install_opener(urllib.request.build_opener())
        SOURCES.clear()


def _squares(lab: Lab, user: User, folder: Path) -> Canvas:
    colors = np.array(ValidationInfo().colorInfo, np.uint8).transpose(1, 0, 2)
    path = folder / "squares.tif"
    write_pyramid(np.kron(colors, np.ones((100, 100, 1), np.uint8)), path)
    case = case_create(lab=lab, user=user, accession="IIIF-1")
    with path.open("rb") as file:
        received = item_receive(case=case, file=file, filename=path.name, user=user)
    assert received.job is not None
    job_run(received.job.pk)
    received.item.refresh_from_db()
    assert received.item.canvas is not None
    return received.item.canvas


@pytest.mark.slow
def test_every_check_of_the_claimed_level_passes(image: tuple[str, str]) -> None:
    server, canvas = image
    suite = TestSuite(ValidationInfo())
    names = {*suite.list_tests("3.0")} - NOT_CLAIMED - CONTRADICTED
    failed = {}
    for name in sorted(names):
        requested = ImageAPI(canvas, server, "api/v1/iiif", version="3.0", debug=False)
        suite.run_test(name, requested)
        if requested.exception is not None:
            failed[name] = f"{requested.exception} at {requested.urls}"
    assert failed == {}
    assert {"info_json", "region_pixels", "rot_full_basic", "size_bwh", "cors"} <= names
    assert len(names) >= 30
    requested = ImageAPI(canvas, server, "api/v1/iiif", version="3.0", debug=False)
    for size in ("1200,1200", ",1200", "1200,", "pct:200"):  # what the check left out has in it
        requested.fetch(requested.make_url({"size": size}))
        assert requested.last_status == 400
    assert requested.get_image({"size": BY_SPECIFICATION}).size == (1000, 1000)
