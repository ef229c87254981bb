"""Clients of others over real HTTP: dicomweb-client, wsidicom, and the requests that Slim makes."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import highdicom
import numpy as np
import pytest
import requests
from highdicom._standard_utils import (
    check_required_attributes,
    get_iod_module_map,
    get_module_attribute_map,
)
from PIL import Image
from pydicom import dcmread
from pydicom.dataset import Dataset
from wsidicom import WsiDicom, WsiDicomWebClient

from portal.archive.models import Canvas, Slide
from tests.portal.interop.dicomweb.conftest import Site, aperio, pixels, pyramid, uids, zipped

JPEG = "1.2.840.10008.1.2.4.50"
PLAIN = "1.2.840.10008.1.2.1"
MODULES = [
    module["key"]
    for module in get_iod_module_map()["vl-whole-slide-microscopy-image"]
    if module["usage"] == "M" and module["key"] in get_module_attribute_map()
]
"""Attributes that the standard requires of a whole-slide image, from highdicom."""


@pytest.fixture(params=[pyramid, aperio], ids=["pyramid", "aperio"])
def canvas(request: pytest.FixtureRequest, site: Site) -> Canvas:
    case = site.case("D-1", patient_key="pseudonym-1", sex="female", procedure="Excision")
    return site.slide(case, request.param(site.folder))


def _tile(site: Site, canvas: Canvas, level: int, column: int, row: int) -> np.ndarray:
    """Pixels of a tile from the tile server."""
    z = len(canvas.levels) - 1 - level
    address = f"{site.url}/api/v1/canvases/{canvas.pk}/tiles/{z}/{column}/{row}.jpg"
    answer = site.session().get(address)
    return np.asarray(Image.open(io.BytesIO(answer.content)).convert("RGB"))


def test_dicomweb_client_finds_and_reads_a_slide(site: Site, canvas: Canvas) -> None:
    client, (study, series) = site.client(), uids(canvas)
    (result,) = client.search_for_studies(search_filters={"PatientID": "pseudonym-1"})
    assert result["0020000D"]["Value"] == [study]
    assert result["00100020"]["Value"] == ["pseudonym-1"]
    (item,) = client.search_for_series(study)
    assert item["0020000E"]["Value"] == [series]
    instances = client.search_for_instances(study, series)
    assert len(instances) == len(canvas.levels)
    for level, row in enumerate(instances):
        uid = row["00080018"]["Value"][0]
        reported = Dataset.from_json(client.retrieve_instance_metadata(study, series, uid))
        grid = canvas.levels[level]
        assert reported.TotalPixelMatrixColumns == grid["width_px"]
        assert (reported.Columns, reported.Rows) == (grid["tile_width_px"], grid["tile_height_px"])
        assert "PerFrameFunctionalGroupsSequence" not in reported
        columns = -(-grid["width_px"] // grid["tile_width_px"])
        last = reported.NumberOfFrames
        frames = client.retrieve_instance_frames(
            study, series, uid, [1, last], media_types=(("image/jpeg", JPEG),)
        )
        for number, frame in zip((1, last), frames, strict=True):
            row_at, column = divmod(number - 1, columns)
            seen = np.asarray(Image.open(io.BytesIO(frame)).convert("RGB"))
            assert np.array_equal(seen, _tile(site, canvas, level, column, row_at))


def test_a_complete_object_is_valid_and_every_reader_opens_it(
    site: Site, canvas: Canvas, tmp_path: Path
) -> None:
    client, (study, series) = site.client(), uids(canvas)
    objects = client.retrieve_series(study, series)
    assert len(objects) == len(canvas.levels)
    folder = tmp_path / "series"
    folder.mkdir()
    for number, item in enumerate(objects):
        assert item.ExtendedOffsetTable if canvas.levels[number]["stored"] else True
        for module in MODULES:
            is_of_frames = module.endswith("functional-groups")  # it takes every macro for required
            check_required_attributes(item, module, recursive=not is_of_frames)
        assert item.file_meta.TransferSyntaxUID == JPEG
        tile = highdicom.Image.from_dataset(item).get_frame(1)
        assert np.abs(tile.astype(int) - _tile(site, canvas, number, 0, 0)).max() <= 3
        item.save_as(folder / f"{number}.dcm")
    with WsiDicom.open(folder) as slide:
        assert (slide.size.width, slide.size.height) == (canvas.width_px, canvas.height_px)
        assert (slide.mpp.width, slide.mpp.height) == pytest.approx((0.5, 0.5))
        assert len(slide.pyramids[0]) == _same_tiles(canvas)
        seen = np.asarray(slide.read_region((100, 60), 0, (300, 200)).convert("RGB"))
        wanted = pixels(canvas.width_px, canvas.height_px)[60:260, 100:400]
        assert np.abs(seen.astype(int) - wanted).mean() < 8


def _same_tiles(canvas: Canvas) -> int:
    """wsidicom takes the levels whose tiles are as large as those of the finest."""
    sides = [(level["tile_width_px"], level["tile_height_px"]) for level in canvas.levels]
    return sides.count(sides[0])


def test_wsidicom_reads_it_over_the_web(site: Site, canvas: Canvas) -> None:
    study, series = uids(canvas)
    web = WsiDicomWebClient(site.client())
    with WsiDicom.open_web(web, study, [series]) as slide:
        assert len(slide.pyramids[0]) == _same_tiles(canvas)
        tile = np.asarray(slide.read_tile(0, (1, 1)).convert("RGB"))
    assert np.abs(tile.astype(int) - _tile(site, canvas, 0, 1, 1)).max() <= 3


@pytest.mark.slow
def test_requests_of_slim_are_answered(site: Site, canvas: Canvas) -> None:
    """Requests of Slim: the list of studies, one study, and the frames of its pyramid."""
    requested, root = site.session(), f"{site.url}/api/v1/dicomweb"
    requested.headers["Accept"] = "application/dicom+json, application/json"
    page = {"ModalitiesInStudy": "SM", "limit": "10", "offset": "0"}
    (study,) = requested.get(f"{root}/studies", params=page).json()
    uid = study["0020000D"]["Value"][0]
    (series,) = requested.get(f"{root}/studies/{uid}/series", params={"Modality": "SM"}).json()
    address = f"{root}/studies/{uid}/series/{series['0020000E']['Value'][0]}"
    assert requested.get(f"{address}/instances").json()
    metadata = requested.get(f"{address}/metadata").json()
    assert [entry["00080008"]["Value"][2] for entry in metadata] == ["VOLUME"] * len(canvas.levels)
    for entry in metadata:
        profile = entry["00480105"]["Value"][0]["00282000"]["BulkDataURI"]
        bulk = requested.get(
            profile, headers={"Accept": 'multipart/related; type="application/octet-stream"'}
        )
        assert b"acsp" in _parts(bulk)[0][:200]
        here = f"{address}/instances/{entry['00080018']['Value'][0]}"
        for kind in (
            'multipart/related; type="application/octet-stream"; transfer-syntax=*',
            f'multipart/related; type="image/jpeg"; transfer-syntax={JPEG}',
            'multipart/related; type="image/jls", multipart/related; type="image/jpeg"',
        ):
            answer = requested.get(f"{here}/frames/1", headers={"Accept": kind})
            (frame,) = _parts(answer)
            assert frame[:3] == b"\xff\xd8\xff"
        plain = f'multipart/related; type="application/octet-stream"; transfer-syntax={PLAIN}'
        (raw,) = _parts(requested.get(f"{here}/frames/1", headers={"Accept": plain}))
        seen = np.frombuffer(raw, np.uint8).reshape(entry["00280010"]["Value"][0], -1, 3)
        drawn = requested.get(f"{here}/frames/1/rendered", headers={"Accept": "image/png"})
        assert np.array_equal(seen, np.asarray(Image.open(io.BytesIO(drawn.content))))
        picture = requested.get(f"{here}/rendered", headers={"Accept": "image/jpeg"})
        assert Image.open(io.BytesIO(picture.content)).width == entry["00480006"]["Value"][0]
        refused = requested.get(f"{here}/frames/1", headers={"Accept": "image/jls"})
        assert refused.status_code == 406


def _parts(answer: requests.Response) -> list[bytes]:
    assert answer.status_code == 200, answer.text[:300]
    match = re.search("boundary=([0-9a-f]+)", answer.headers["Content-Type"])
    assert match is not None
    pieces = answer.content.split(f"--{match[1]}".encode())
    return [piece.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for piece in pieces[1:-1]]


@pytest.fixture
def own(site: Site, tmp_path: Path) -> tuple[Canvas, Path]:
    """A slide that came as DICOM: a series written by wsidicom, which named a patient."""
    source = site.slide(site.case("D-0"), pyramid(site.folder))
    Slide.objects.filter(canvas=source).update(stain="H&E")
    web = WsiDicomWebClient(site.client())
    study, series = uids(source)
    written = tmp_path / "written"
    written.mkdir()
    with WsiDicom.open_web(web, study, [series]) as slide:
        slide.save(written)
    for path in written.glob("*.dcm"):
        data = dcmread(path)
        data.PatientName, data.PatientID = "Doe^Jane", "DoeJane"
        data.save_as(path)
    canvas = site.slide(site.case("D-2", patient_key="p-2"), zipped(written, tmp_path / "s.zip"))
    return canvas, written


def test_a_slide_from_dicom_is_served_as_its_original_objects(
    site: Site, own: tuple[Canvas, Path], tmp_path: Path
) -> None:
    canvas, written = own
    client, (study, series) = site.client(), uids(canvas)
    assert (canvas.slide.vendor, canvas.slide.stain) == ("dicom", "H&E")
    before = {
        int(item.TotalPixelMatrixColumns): item
        for item in (dcmread(path) for path in written.glob("*.dcm"))
    }
    objects = client.retrieve_series(study, series)
    assert len(objects) == len(before)
    (row,) = client.search_for_series(study)
    assert row["00201209"]["Value"] == [len(before)]
    folder = tmp_path / "again"
    folder.mkdir()
    for number, item in enumerate(objects):
        same: Any = before[item.TotalPixelMatrixColumns]
        assert item.PixelData == same.PixelData
        assert (item.PatientID, str(item.PatientName)) == ("p-2", "")
        assert (item.StudyInstanceUID, item.SeriesInstanceUID) == (study, series)
        assert item.SOPInstanceUID != same.SOPInstanceUID
        assert "DoeJane" not in str(item)
        (frame,) = client.retrieve_instance_frames(
            study, series, item.SOPInstanceUID, [1], media_types=(("image/jpeg", JPEG),)
        )
        assert frame in item.PixelData
        item.save_as(folder / f"{number}.dcm")
    with WsiDicom.open(folder) as slide:
        assert (slide.size.width, slide.size.height) == (canvas.width_px, canvas.height_px)
    (tile,) = client.retrieve_instance_frames(
        study, series, objects[0].SOPInstanceUID, [1], media_types=(("image/jpeg", JPEG),)
    )
    seen = np.asarray(Image.open(io.BytesIO(tile)).convert("RGB")).astype(int)
    assert np.abs(seen - _tile(site, canvas, 0, 0, 0)[: seen.shape[0], : seen.shape[1]]).mean() < 2
    dataset = Dataset.from_json(
        client.retrieve_instance_metadata(study, series, objects[0].SOPInstanceUID)
    )
    assert "PerFrameFunctionalGroupsSequence" not in dataset
