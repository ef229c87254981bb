"""Transfers of files into a case."""

from __future__ import annotations

import hashlib
import io
import uuid
from pathlib import Path
from typing import Any

import pytest

from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_delete, item_receive
from portal.archive.services.transfers.arriving import upload_begin
from portal.archive.services.uploads import filename_clean, upload_receive
from portal.core.errors import (
    TooLargeInputError,
)
from portal.labs.models import Lab, User
from tests.portal.archive.support import files_below, picture

pytestmark = pytest.mark.django_db


def test_an_asset_is_stored_under_its_hash(case: Case, annotator: User, storage: Path) -> None:
    content = picture()
    upload = upload_receive(
        case=case, file=io.BytesIO(content), filename="C:\\scans\\a.png", user=annotator
    )
    sha = hashlib.sha256(content).hexdigest()
    assert files_below(storage) == [f"assets/{case.lab_id}/{sha[:2]}/{sha}"]
    assert (upload.filename, upload.size_bytes) == ("a.png", len(content))
    assert upload.asset is not None
    assert (upload.asset.sha256, upload.asset.size_bytes) == (sha, len(content))


def test_labs_do_not_share_a_file(
    case: Case, foreign_case: Case, annotator: User, stranger: User, storage: Path
) -> None:
    for target, user in ((case, annotator), (foreign_case, stranger)):
        upload_receive(case=target, file=io.BytesIO(picture()), filename="a.png", user=user)
    assert len(files_below(storage)) == 2
    assert Asset.objects.count() == 2


def test_the_same_file_in_two_cases_is_stored_once(
    case: Case, lab: Lab, annotator: User, receive: Any, storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    second = case_create(lab=lab, user=annotator, accession="S-2")
    first_item = receive(case, picture(), "a.png").item
    receive(second, picture(), "a.png")
    assert (Asset.objects.count(), len(files_below(storage))) == (1, 1)
    Slide.objects.filter(pk=first_item.pk).update(state="failed")
    first_item.refresh_from_db()
    with django_capture_on_commit_callbacks(execute=True):
        item_delete(item=first_item, user=annotator)
    assert (Asset.objects.count(), len(files_below(storage))) == (1, 1)


def test_an_upload_beyond_the_limit_is_discarded(
    case: Case, annotator: User, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 100
    with pytest.raises(TooLargeInputError, match="100 bytes"):
        upload_receive(case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator)
    with pytest.raises(TooLargeInputError):
        upload_begin(case=case, filename="a.png", size_bytes=101, user=annotator)
    assert files_below(storage) == []
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\x00b\n.svs", "ab .svs"),
        ("", "unnamed"),
        ("/", "unnamed"),
        ("ä" * 300, "ä" * 200),
    ],
)
def test_file_names_become_harmless(sent: str, expected: str) -> None:
    assert filename_clean(sent) == expected


def test_a_concurrently_deleted_file_is_stored_again(
    case: Case, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = picture(64, 48, 3)
    deleted = Asset(pk=uuid.uuid4(), lab_id=case.lab_id, sha256=hashlib.sha256(data).hexdigest())
    assets = [deleted]  # known when it was looked up, deleted before the lock was taken
    monkeypatch.setattr(
        "portal.archive.services.uploads.asset_received",
        lambda lab_id, sha256: assets.pop() if assets else None,
    )
    received = item_receive(case=case, file=io.BytesIO(data), filename="a.png", user=annotator)
    assert received.is_new
    assert Asset.objects.get().sha256 == deleted.sha256
    assert assets == []
