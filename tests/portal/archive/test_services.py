"""Writes of the archive: cases, transfers, items."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.models import Roi
from portal.archive import services
from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services import name_clean, tags_clean
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    TooLargeInputError,
)
from portal.labs.models import Lab, User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


def files_below(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


# --- cases -----------------------------------------------------------------------------------


def test_text_is_trimmed_and_searchable(lab: Lab, annotator: User) -> None:
    case = services.case_create(
        lab=lab, user=annotator, accession=" S\n1 ", diagnosis="Tubular  ADENOMA", tags=["#Rare "]
    )
    assert (case.accession, case.diagnosis, case.tags) == ("S 1", "Tubular ADENOMA", ["Rare"])
    assert case.search_text == "\ns 1\ntubular adenoma\n#rare\n"


def test_tags_are_trimmed_and_counted() -> None:
    assert tags_clean([" a ", "A", "", "b  c"]) == ["a", "b c"]
    with pytest.raises(InvalidInputError, match="at most 20 tags; got 21"):
        tags_clean(str(n) for n in range(21))
    with pytest.raises(InvalidInputError, match="at most 40 characters"):
        tags_clean(["x" * 41])


def test_an_unknown_field_is_refused(case: Case, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="A case has no patient_name"):
        services.case_update(case=case, user=annotator, patient_name="Ada")


def test_a_refused_change_leaves_the_row_as_it_was(case: Case, annotator: User, lab: Lab) -> None:
    services.case_create(lab=lab, user=annotator, accession="S-2")
    with pytest.raises(ConflictError, match="already a case S-2"):
        services.case_update(case=case, user=annotator, accession="S-2")
    with pytest.raises(InvalidInputError, match="sex"):
        services.case_update(case=case, user=annotator, sex="robot")
    case.refresh_from_db()
    assert (case.accession, case.sex) == ("S-1", "unknown")


def test_two_labs_may_use_one_accession(case: Case, other_lab: Lab, stranger: User) -> None:
    services.case_create(lab=other_lab, user=stranger, accession=case.accession)


def test_roles_are_checked_by_the_services(case: Case, viewer: User, stranger: User) -> None:
    for user in (viewer, stranger):
        with pytest.raises(ForbiddenError):
            services.case_update(case=case, user=user, organ="x")
        with pytest.raises(ForbiddenError):
            services.case_delete(case=case, user=user)
        with pytest.raises(ForbiddenError):
            services.upload_receive(
                case=case, file=io.BytesIO(picture()), filename="a.png", user=user
            )
        with pytest.raises(ForbiddenError):
            services.upload_begin(case=case, filename="a.png", size_bytes=1, user=user)


# --- transfers -------------------------------------------------------------------------------


def test_an_asset_lies_under_its_hash(case: Case, annotator: User, storage: Path) -> None:
    content = picture()
    upload = services.upload_receive(
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
        services.upload_receive(
            case=target, file=io.BytesIO(picture()), filename="a.png", user=user
        )
    assert len(files_below(storage)) == 2
    assert Asset.objects.count() == 2


def test_the_same_file_in_two_cases_is_stored_once(
    case: Case, lab: Lab, annotator: User, receive: Any, storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:  # fmt: skip
    second = services.case_create(lab=lab, user=annotator, accession="S-2")
    first_item = receive(case, picture(), "a.png").item
    receive(second, picture(), "a.png")
    assert (Asset.objects.count(), len(files_below(storage))) == (1, 1)
    Slide.objects.filter(pk=first_item.pk).update(state="failed")
    first_item.refresh_from_db()
    with django_capture_on_commit_callbacks(execute=True):
        services.item_delete(item=first_item, user=annotator)
    assert (Asset.objects.count(), len(files_below(storage))) == (1, 1)


def test_beyond_the_limit_nothing_is_kept(
    case: Case, annotator: User, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 100
    with pytest.raises(TooLargeInputError, match=r"the limit is 100 bytes \(100 bytes\)"):
        services.upload_receive(
            case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator
        )
    with pytest.raises(TooLargeInputError):
        services.upload_begin(case=case, filename="a.png", size_bytes=101, user=annotator)
    assert files_below(storage) == []
    assert not Upload.objects.exists()


def test_a_transfer_in_pieces_resumes_where_it_stopped(
    case: Case, annotator: User, storage: Path
) -> None:
    content = picture()
    upload = services.upload_begin(
        case=case, filename="a.png", size_bytes=len(content), user=annotator
    )
    services.upload_append(upload=upload, offset=0, chunks=[content[:100], content[100:150]])
    with pytest.raises(ConflictError) as wrong:
        services.upload_append(upload=upload, offset=100, chunks=[b""])
    assert wrong.value.details == {"offset": 150}
    with pytest.raises(ConflictError, match="are missing"):
        services.upload_complete(upload=upload, user=annotator)

    def broken() -> Any:
        yield content[150:180]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        services.upload_append(upload=upload, offset=150, chunks=broken())
    assert upload.received_bytes == 180
    services.upload_append(upload=upload, offset=180, chunks=[content[180:]])
    services.upload_complete(
        upload=upload, user=annotator, sha256=hashlib.sha256(content).hexdigest()
    )
    assert services.item_create(upload=upload, user=annotator).is_new
    assert len(files_below(storage)) == 1


def test_more_than_announced_is_refused(case: Case, annotator: User) -> None:
    upload = services.upload_begin(case=case, filename="a", size_bytes=3, user=annotator)
    with pytest.raises(InvalidInputError, match="announced with 3 bytes"):
        services.upload_append(upload=upload, offset=0, chunks=[b"four"])


def test_a_transfer_that_arrived_damaged_is_discarded(
    case: Case, annotator: User, storage: Path
) -> None:
    upload = services.upload_begin(case=case, filename="a", size_bytes=3, user=annotator)
    services.upload_append(upload=upload, offset=0, chunks=[b"abc"])
    with pytest.raises(InvalidInputError, match="arrived damaged"):
        services.upload_complete(upload=upload, user=annotator, sha256="0" * 64)
    assert files_below(storage) == []
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\x00b\n.svs", "a b .svs"),
        ("", "unnamed"),
        ("/", "unnamed"),
        ("ä" * 300, "ä" * 200),
    ],
)
def test_file_names_become_harmless(sent: str, kept: str) -> None:
    assert name_clean(sent) == kept


# --- items -----------------------------------------------------------------------------------


def test_the_same_file_twice_is_one_slide(case: Case, receive: Any) -> None:
    first, second = receive(case, picture(), "a.png"), receive(case, picture(), "b.png")
    assert (first.is_new, second.is_new) == (True, False)
    assert (second.item, second.job) == (first.item, first.job)
    assert second.item.name == "a.png"


def test_sending_a_failed_file_again_tries_again(case: Case, receive: Any) -> None:
    first = receive(case, picture(), "a.png")
    Slide.objects.update(state="failed")
    second = receive(case, picture(), "a.png")
    assert second.item.state == "preparing"
    assert second.job != first.job


def test_a_slide_with_regions_is_not_deleted(still: Slide, annotator: User) -> None:
    Roi.objects.create(
        lab=still.lab, canvas=still.canvas, geometry={}, left=0, top=0, right=1, bottom=1, area_px=1
    )
    with pytest.raises(ConflictError, match="it carries 1 roi"):
        services.item_delete(item=still, user=annotator)
    assert Slide.objects.filter(pk=still.pk).exists()


def test_a_slide_in_preparation_is_not_deleted(case: Case, receive: Any, annotator: User) -> None:
    item = receive(case, picture(), "a.png").item
    with pytest.raises(ConflictError, match="still being prepared"):
        services.item_delete(item=item, user=annotator)


def test_only_a_failed_item_is_tried_again(still: Slide, annotator: User) -> None:
    with pytest.raises(ConflictError, match="has not failed"):
        services.item_retry(item=still, user=annotator)
