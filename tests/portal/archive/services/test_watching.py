"""A watched folder: what is whole is received, once; the rest stays or is put aside."""

from __future__ import annotations

from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ml.imaging.formats import folders
from portal.archive.models import Case, Slide
from portal.archive.services import watching
from portal.archive.services.cases import case_delete
from portal.archive.services.watching import FolderWatch, WatchOutcome
from portal.archive.storage import files as storage
from portal.archive.tiles.reading import plane_of, tile_read
from portal.core.errors import ForbiddenError, StorageFullError
from portal.jobs.models import Job
from portal.labs.models import Lab, Membership, Role, User
from tests.ml.imaging import zarrs
from tests.ml.imaging.deidentification.support import write_dicom
from tests.ml.imaging.multi_file import SECRET, write_mrxs, write_vms
from tests.ml.imaging.zarrs import write_ngff
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "scanner"
    path.mkdir()
    return path


@pytest.fixture
def watch(folder: Path, lab: Lab, annotator: User) -> FolderWatch:
    return FolderWatch(folder, lab=lab, user=annotator, settle_s=10)


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def looked(watch: FolderWatch, *times: float) -> list[tuple[str, WatchOutcome]]:
    return [(str(taken.path), taken.outcome) for now in times for taken in watch.look(now)]


def test_a_file_is_received_once_it_stays_as_it_is(
    watch: FolderWatch, folder: Path, lab: Lab
) -> None:
    path = put(folder, "S-1/a.png", picture()[:100])
    assert looked(watch, 0, 9) == []
    path.write_bytes(picture())  # the scanner goes on
    assert looked(watch, 11, 20) == []
    assert looked(watch, 21) == [("S-1/a.png", WatchOutcome.RECEIVED)]
    slide = Slide.objects.get(case__lab=lab, case__accession="S-1")
    assert slide.name == "a.png" and not path.exists()
    assert (folder / ".received/S-1/a.png").read_bytes() == picture()
    assert looked(watch, 40) == []


def test_stills_of_a_case_are_received_in_the_order_of_their_numbers(
    watch: FolderWatch, folder: Path, lab: Lab
) -> None:
    names = ["frame_1.png", "frame_2.png", "frame_10.png"]
    for number, name in enumerate(names):
        put(folder, f"S-1/{name}", picture(100 + number))
    looked(watch, 0, 11)
    slides = Slide.objects.filter(case__lab=lab).order_by("created_at")
    assert [slide.name for slide in slides] == names


def test_identical_bytes_are_recognised(watch: FolderWatch, folder: Path) -> None:
    for now in (0, 20):
        put(folder, "S-1/a.png", picture())
        outcomes = looked(watch, now, now + 10)
    assert outcomes == [("S-1/a.png", WatchOutcome.KNOWN)]
    assert Slide.objects.count() == 1
    assert {p.name for p in (folder / ".received/S-1").iterdir()} == {"a.png", "a-2.png"}


def test_a_refused_file_is_moved_aside_with_the_reason(watch: FolderWatch, folder: Path) -> None:
    put(folder, "S-1/words.svs", b"no slide at all" * 50)
    assert looked(watch, 0, 10) == [("S-1/words.svs", WatchOutcome.REFUSED)]
    reason = (folder / ".refused/S-1/words.svs.reason.txt").read_text()
    assert len(reason) > 10 and (folder / ".refused/S-1/words.svs").exists()


def test_the_number_of_a_case_in_the_trash_is_a_new_case(
    watch: FolderWatch, folder: Path, case: Case, annotator: User
) -> None:
    case_delete(case=case, user=annotator)
    put(folder, f"{case.accession}/a.png", picture())
    assert looked(watch, 0, 10) == [(f"{case.accession}/a.png", WatchOutcome.RECEIVED)]
    assert Slide.objects.get().case_id != case.pk


def test_links_hidden_and_unfinished_files_are_left(
    watch: FolderWatch, folder: Path, tmp_path: Path
) -> None:
    secret = put(tmp_path, "elsewhere/secret.png", picture())
    put(folder, "S-1/a.png.part", picture())
    put(folder, "S-1/.a.png", picture())
    (folder / "S-1/link.png").symlink_to(secret)
    (folder / "S-2").symlink_to(secret.parent)
    put(folder, "stray.png", picture())
    assert looked(watch, 0, 10) == [] and watch.stray() == ["stray.png"]


def test_without_room_a_file_stays_and_comes_later(
    watch: FolderWatch, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(folder, "S-1/a.png", picture())
    with monkeypatch.context() as patch:

        def full(**_: Any) -> None:
            raise StorageFullError("Storage is full.")

        patch.setattr(watching, "item_receive", full)
        assert looked(watch, 0, 10) == [("S-1/a.png", WatchOutcome.LATER)]
    assert path.exists() and looked(watch, 15) == [("S-1/a.png", WatchOutcome.RECEIVED)]


def test_a_file_removed_during_the_scan_stops_nothing(watch: FolderWatch, folder: Path) -> None:
    for name in ("S-1/a.png", "S-1/b.png"):
        put(folder, name, picture())
    assert looked(watch, 0) == []
    taking = watch.look(10)
    assert next(taking).outcome is WatchOutcome.RECEIVED
    (folder / "S-1/b.png").unlink()
    assert [upload.outcome for upload in taking] == [WatchOutcome.LATER]
    assert looked(watch, 20) == []


def test_a_file_renamed_during_the_scan_stops_nothing(
    watch: FolderWatch, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = put(folder, "S-1/series/0001.dcm.part", b"DICM")
    put(folder, "S-2/a.png", picture())
    read = folders.read_head

    def renamed(path: Path) -> bytes:
        if part.exists():
            part.rename(part.with_suffix(""))
        return read(path)

    monkeypatch.setattr(folders, "read_head", renamed)
    assert looked(watch, 0, 10) == [("S-2/a.png", WatchOutcome.RECEIVED)]
    assert part.with_suffix("").exists()


def test_a_missing_write_permission_ends_the_watch_without_moves(
    watch: FolderWatch, folder: Path, annotator: User
) -> None:
    Membership.objects.filter(user=annotator).update(role=Role.VIEWER)
    path = put(folder, "S-1/a.png", picture())
    with pytest.raises(ForbiddenError):
        looked(watch, 0, 10)
    assert path.exists()


def test_the_command_imports_present_files_and_names_errors(
    folder: Path, lab: Lab, annotator: User
) -> None:
    put(folder, "S-1/a.png", picture())
    put(folder, "S-1/b.svs", b"nothing")
    put(folder, "stray.png", picture())
    out, err = StringIO(), StringIO()
    requested = [
        "archive_watch",
        str(folder),
        "--once",
        "--lab",
        lab.slug,
        "--person",
        annotator.email,
    ]
    call_command(*requested, stdout=out, stderr=err)
    assert out.getvalue() == "S-1/a.png: received\n"
    assert "S-1/b.svs: refused: " in err.getvalue() and "stray.png is not in" in err.getvalue()
    for wrong, result in (
        ({1: str(folder / "none")}, "no such folder"),
        ({4: "nobody"}, f"Labs: .*{lab.slug}"),
        ({6: "x@y.example"}, "No member or service account"),
    ):
        words = [wrong.get(number, word) for number, word in enumerate(requested)]
        with pytest.raises(CommandError, match=result):
            call_command(*words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "main", "vendor"),
    [
        (write_mrxs, "slide.mrxs", "mirax"),
        (partial(write_mrxs, named=True), "glass 1/slide.mrxs", "mirax"),
        (partial(write_vms, named=True), "glass 1/slide.vms", "hamamatsu"),
    ],
)
def test_a_slide_of_several_files_becomes_one_item_without_names(
    watch: FolderWatch, folder: Path, lab: Lab, write: Any, main: str, vendor: str
) -> None:
    written = write((folder / "S-1" / main).parent)
    files = sum(path.is_file() for path in (folder / "S-1").rglob("*"))
    assert looked(watch, 0, 9, 10) == [(f"S-1/{main}", WatchOutcome.RECEIVED)]
    slide = Slide.objects.get()
    assert slide.name == "slide.zip"
    job = run_job(Job.objects.get(kind="slide_ingest"))
    assert job.state == "succeeded", job.error_message
    slide.refresh_from_db()
    assert (slide.state, slide.vendor) == ("ready", vendor)
    assert slide.canvas is not None and slide.canvas.width_px == 512
    assert tile_read(plane_of(slide.canvas), 0, 0, 0)[:2] == b"\xff\xd8"
    if "glass" in main:
        assert "macro image" in slide.asset.removed
        assert SECRET.encode() not in storage.asset_path(lab.pk, slide.asset.sha256).read_bytes()
    moved = folder / ".received" / "S-1"
    assert (moved / main).exists() and not written.exists()
    assert sum(path.is_file() for path in moved.rglob("*")) == files
    assert list((folder / "S-1").iterdir()) == []
    write((folder / "S-1" / main).parent)
    assert looked(watch, 20, 30) == [(f"S-1/{main}", WatchOutcome.KNOWN)]
    assert (folder / ".received/S-1-2" / main).exists()


def test_an_incomplete_set_stays_until_the_file_comes_that_is_named(
    watch: FolderWatch, folder: Path
) -> None:
    write_mrxs(folder / "S-1")
    (folder / "S-1/slide/Data0000.dat").rename(folder / "late")
    assert looked(watch, 0, 10) == [("S-1/slide.mrxs", WatchOutcome.LATER)]
    (taken,) = watch.look(11)
    assert "slide/Data0000.dat is missing" in taken.reason
    (folder / "late").rename(folder / "S-1/slide/Data0000.dat")
    assert looked(watch, 12, 22) == [("S-1/slide.mrxs", WatchOutcome.RECEIVED)]


def test_a_dicom_series_in_a_folder_is_one_item(watch: FolderWatch, folder: Path) -> None:
    for number in (1, 2):
        (folder / f"S-1/series {number}").mkdir(parents=True)
        for level in range(number):
            write_dicom(folder / f"S-1/series {number}/{level}.dcm")
    outcomes = looked(watch, 0, 10)
    assert [path for path, _ in outcomes] == ["S-1/series 1", "S-1/series 2"]
    assert set(Slide.objects.values_list("name", flat=True)) == {
        "series 1.zip",
        "series 2.zip",
    }
    assert list((folder / "S-1").iterdir()) == []


def test_an_ome_zarr_is_one_item_and_leaves_no_name(
    watch: FolderWatch, folder: Path, quick: None
) -> None:
    write_ngff(folder / "S-1" / f"{zarrs.SECRET}.zarr")
    name = f"S-1/{zarrs.SECRET}.zarr"
    assert looked(watch, 0, 10) == [(name, WatchOutcome.RECEIVED)]
    assert list((folder / "S-1").iterdir()) == []
    assert (folder / ".received" / name / ".zattrs").is_file()
    run_job(Job.objects.get())
    slide = Slide.objects.select_related("canvas", "asset").get()
    assert (slide.state, slide.vendor) == ("ready", "ome-zarr"), slide.error_message
    assert slide.canvas.mpp == pytest.approx(0.25)
    assert "names of files" in slide.asset.removed
    assert tile_read(plane_of(slide.canvas), 0, 0, 0)[:2] == b"\xff\xd8"
    stored = storage.asset_path(slide.lab_id, slide.asset.sha256).read_bytes()
    assert zarrs.SECRET.encode() not in stored


@pytest.mark.slow
def test_a_set_with_paths_outside_its_folder_imports_nothing(
    watch: FolderWatch, folder: Path
) -> None:
    put(folder, "S-2/b/secret.jpg", picture())
    write_vms(folder / "S-1/a", image="../../S-2/b/secret.jpg")
    assert looked(watch, 0, 10) == [("S-1/a/slide.vms", WatchOutcome.RECEIVED)]
    job = run_job(Job.objects.get(kind="slide_ingest"))
    assert job.state == "failed" and "outside its own folder" in job.error_message
    assert (folder / "S-2/b/secret.jpg").exists()


def test_a_series_of_which_an_object_is_still_written_waits_for_it(
    watch: FolderWatch, folder: Path
) -> None:
    series = folder / "S-1" / "1.2.840.7"
    series.mkdir(parents=True)
    write_dicom(series / "0.dcm")
    write_dicom(series / "1.dcm").rename(series / "1.dcm.part")
    assert looked(watch, 0, 10, 60) == []
    (series / "1.dcm.part").rename(series / "1.dcm")
    assert looked(watch, 61, 71) == [("S-1/1.2.840.7", WatchOutcome.RECEIVED)]
    assert Slide.objects.get().name == "1.2.840.7.zip"


def test_a_file_of_a_set_that_gets_its_name_last_completes_it(
    watch: FolderWatch, folder: Path
) -> None:
    """Neither its size nor its time changes by that."""
    inner = write_mrxs(folder / "S-1").with_suffix("")
    (inner / "Data0000.dat").rename(inner / "Data0000.dat_")
    assert looked(watch, 0, 10) == [("S-1/slide.mrxs", WatchOutcome.LATER)]
    (inner / "Data0000.dat_").rename(inner / "Data0000.dat")
    assert looked(watch, 12, 22) == [("S-1/slide.mrxs", WatchOutcome.RECEIVED)]


def test_an_index_with_an_impossible_file_name_stops_nothing(
    watch: FolderWatch, folder: Path
) -> None:
    index = f"[Virtual Microscope Specimen]\nMapFile={'a' * 300}\n"
    put(folder, "S-1/odd.vms", index.encode())
    put(folder, "S-1/a.png", picture())
    assert looked(watch, 0, 10) == [
        ("S-1/odd.vms", WatchOutcome.LATER),
        ("S-1/a.png", WatchOutcome.RECEIVED),
    ]
