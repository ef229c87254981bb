"""Files that the lab of an import, or another, has already."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.archive.models import Asset, Slide
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.core.storage_layout import root as storage_root
from portal.interop.rocrate.selectors.exports import import_folder
from portal.interop.rocrate.services.imports.cases import case_import
from portal.interop.rocrate.services.imports.files import staging_held
from portal.labs.models import Lab
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.conftest import Exported, all_prepared, case_back


def test_a_file_that_the_lab_has_is_not_placed_again(
    exported: Exported, other_portal: Lab1
) -> None:
    row = next(asset for asset in exported.rows["assets"] if asset["media_type"].endswith("slide"))
    path = storage_root() / "slide.tif"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(exported.files[f"originals/{row['sha256']}"])
    case = case_create(lab=other_portal.lab, user=other_portal.manager, accession="OWN")
    with path.open("rb") as file:
        item_receive(case=case, file=file, filename="slide.tif", user=other_portal.manager)
    assert case_back(other_portal, exported.path).originals == 1
    assert Asset.objects.filter(sha256=row["sha256"]).count() == 1
    all_prepared()


def test_a_file_that_another_lab_has_too_comes_in_under_another_id(
    exported: Exported, other_portal: Lab1
) -> None:
    row = next(asset for asset in exported.rows["assets"] if asset["media_type"].endswith("slide"))
    other = Lab.objects.create(name="Third", slug="third")
    values = {name: row[name] for name in ("id", "sha256", "size_bytes", "media_type")}
    Asset.objects.create(lab=other, **values)
    assert case_back(other_portal, exported.path).originals == 2
    mine = Asset.objects.get(lab=other_portal.lab, sha256=row["sha256"])
    assert str(mine.pk) != row["id"] and Slide.objects.get(asset=mine).case.lab == other_portal.lab
    all_prepared()


def test_two_crates_of_a_case_at_once_do_not_take_files_from_each_other(
    exported: Exported, other_portal: Lab1, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.zip"
    twin.write_bytes(exported.path.read_bytes())
    refused: list[str] = []

    def delete_file(_done: int, _total: int, phase: str) -> None:
        if phase == "Unpacking the files" and not refused:
            refused.append(phase)
            with pytest.raises(BlockingIOError):
                case_import(source=twin, lab=other_portal.lab, user=other_portal.manager)

    done = case_import(
        source=exported.path, lab=other_portal.lab, user=other_portal.manager, progress=delete_file
    )
    assert refused and done.is_new
    again = case_import(source=twin, lab=other_portal.lab, user=other_portal.manager)
    assert not again.is_new
    assert not import_folder(other_portal.lab.pk, done.case.pk).exists()


def test_only_the_holder_of_an_import_folder_deletes_it(tmp_path: Path) -> None:
    folder = tmp_path / "imports" / "case"
    first, second = staging_held(folder), staging_held(folder)
    with first:
        for _ in range(2):
            with pytest.raises(BlockingIOError, match="another process"), staging_held(folder):
                pass
        folder.rmdir()  # done with it; and the next one begins before this one is gone
        second.__enter__()
    with pytest.raises(BlockingIOError), staging_held(folder):
        pass
    second.__exit__(None, None, None)
    assert not folder.exists()


def test_existing_originals_are_looked_up_once(exported: Exported, other_portal: Lab1) -> None:
    with CaptureQueriesContext(connection) as requested:
        case_import(source=exported.path, lab=other_portal.lab, user=other_portal.manager)
    begin_upload = next(
        n for n, item in enumerate(requested) if 'INSERT INTO "archive_case"' in item["sql"]
    )
    where = 'FROM "archive_asset" WHERE "archive_asset"."id" '
    statements = [item["sql"] for item in requested.captured_queries[begin_upload:]]
    looks = [sql for sql in statements if sql.startswith("SELECT") and where in sql]
    assert len(looks) == 1 and Asset.objects.count() == 2


def test_a_crate_that_was_unpacked_and_zipped_again_with_its_folder_is_read(
    exported: Exported, other_portal: Lab1, tmp_path: Path
) -> None:
    again = tmp_path / "again.zip"
    with zipfile.ZipFile(exported.path) as source, zipfile.ZipFile(again, "w") as target:
        for name in source.namelist():
            target.writestr("case W-1\\" + name.replace("/", "\\"), source.read(name))
        target.writestr("__MACOSX/case W-1/._ro-crate-metadata.json", b"x")
        target.writestr("case W-1/.DS_Store", b"x")
    assert case_import(source=again, lab=other_portal.lab, user=other_portal.manager).is_new
    all_prepared()
