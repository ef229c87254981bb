"""QIDO-RS: what a search asks and finds; whose it is."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from pydicom import dcmread
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag

from ml.imaging.dicom.uids import instance_id, uid_of
from portal.archive.models import Asset, Canvas, Case, Slide
from portal.archive.models.shares import today
from portal.archive.services.sharing import share_accept, share_offer
from portal.archive.storage import files as storage
from portal.core.storage_layout import root as storage_root
from portal.interop.dicomweb.selectors import objects, studies
from portal.labs.models import Lab, Membership, Role, User
from tests.clients import client_of
from tests.ml.imaging.deidentification.support import write_dicom
from tests.portal.interop.conftest import Lab1

ROOT = "/api/v1/dicomweb"
SLIDES = "1.2.840.10008.5.1.4.1.1.77.1.6"


def _found(held: Lab1, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = held.client().get(f"{ROOT}/{path}", query)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/dicom+json"
    rows: list[dict[str, Any]] = answer.json()
    return rows


def _study(held: Lab1) -> str:
    return f"studies/{uid_of(held.world.case.pk)}"


@pytest.fixture
def prepared(held: Lab1) -> Lab1:
    Case.objects.filter(pk=held.world.case.pk).update(
        patient_key="pseudonym-7", sex="male", procedure="Biopsy", accession="W-1"
    )
    return held


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 1),
        ({"ModalitiesInStudy": "SM", "limit": "10", "offset": "0"}, 1),
        ({"offset": "1"}, 0),
        ({"ModalitiesInStudy": "CT"}, 0),
        ({"PatientID": "pseudonym-7"}, 1),
        ({"00100020": "pseudonym-7"}, 1),
        ({"PatientID": "pseudonym*"}, 1),
        ({"PatientID": "pseudonym-?"}, 1),
        ({"PatientID": "pseudonym"}, 0),
        ({"PatientID": "pseudonym.7"}, 0),
        ({"PatientName": "Doe*"}, 0),
        ({"PatientName": "*"}, 1),
        ({"PatientSex": "M"}, 1),
        ({"PatientSex": "F"}, 0),
        ({"AccessionNumber": "W-1"}, 1),
        ({"StudyDescription": "*ops*"}, 1),
        ({"StudyInstanceUID": "1.2.3"}, 0),
        ({"StudyDate": "19000101-19991231"}, 0),
        ({"StudyDate": "20000101-"}, 1),
        ({"StudyDate": "20000101-99991231"}, 1),
    ],
)
def test_studies_are_found_by_their_attributes(prepared: Lab1, query: Any, count: int) -> None:
    assert len(_found(prepared, "studies", **query)) == count


def test_a_study_has_the_attributes_of_the_standard(prepared: Lab1) -> None:
    (study,) = _found(prepared, "studies", StudyInstanceUID=uid_of(prepared.world.case.pk))
    values = {tag: row.get("Value") for tag, row in study.items()}
    assert values["00080061"] == ["SM"] and values["00201206"] == [1]
    assert values["00201208"] == [len(prepared.world.canvas.levels)]
    assert values["00100040"] == ["M"] and values["00081030"] == ["Biopsy"]
    assert values["00080050"] == ["W-1"]
    (series,) = _found(prepared, f"{_study(prepared)}/series", Modality="SM")
    assert series["0020000E"]["Value"] == [uid_of(prepared.world.canvas.pk)]
    assert "video" not in str(_found(prepared, f"{_study(prepared)}/instances"))


def test_an_accession_too_long_for_dicom_is_in_the_description(prepared: Lab1) -> None:
    Case.objects.filter(pk=prepared.world.case.pk).update(accession="HISTOLOGY-2026-000017")
    (study,) = _found(prepared, "studies")
    assert "Value" not in study["00080050"]
    assert study["00081030"]["Value"] == ["HISTOLOGY-2026-000017 Biopsy"]


@pytest.mark.parametrize("path", ["instances", "study", "series"])
def test_instances_are_found_by_uid_number_and_page(prepared: Lab1, path: str) -> None:
    canvas = prepared.world.canvas
    where = {
        "instances": "instances",
        "study": f"{_study(prepared)}/instances",
        "series": f"{_study(prepared)}/series/{uid_of(canvas.pk)}/instances",
    }[path]
    rows = _found(prepared, where)
    assert [row["00200013"]["Value"][0] for row in rows] == [
        number for number, _ in enumerate(canvas.levels, 1)
    ]
    uid = uid_of(instance_id(canvas.pk, 1))
    for query in ({"SOPInstanceUID": uid}, {"InstanceNumber": "1"}, {"limit": "1"}):
        (item,) = _found(prepared, where, **query, SOPClassUID=SLIDES)
        assert item["00080018"]["Value"] == [uid]
        assert item["00080056"]["Value"] == ["ONLINE"]
    assert _found(prepared, where, offset=str(len(rows))) == []
    assert _found(prepared, where, SOPInstanceUID=uid_of(uuid.uuid4())) == []
    (item,) = _found(prepared, where, limit="1", includefield="PhotometricInterpretation,00480001")
    assert item["00280004"]["Value"] == ["RGB"]
    assert item["00480001"]["Value"][0] > 0
    (instances,) = _found(prepared, where, limit="1", includefield="all")
    assert "52009229" in instances and "52009230" not in instances


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"InstitutionName": "x"}, "InstitutionName cannot be searched"),
        ({"limit": "5000"}, "limit: expected a number up to 1,000"),
        ({"limit": f"{5000:014}"}, "limit: expected a number up to 1,000"),
        ({"offset": "-1"}, "offset"),
        ({"PatientID": "a\0b"}, "characters that are not allowed"),
        ({"StudyDate": "yesterday"}, "StudyDate: expected a date such as 20260131"),
        ({"PatientID": "*a*b*c*d*e*"}, "at most 4 *"),
    ],
)
def test_unsupported_search_keys_are_reported(prepared: Lab1, query: Any, expected: str) -> None:
    answer = prepared.client().get(f"{ROOT}/studies", query)
    assert answer.status_code == 400
    assert expected in answer.json()["detail"]


def test_fuzzy_matching_is_refused_aloud(prepared: Lab1) -> None:
    answer = prepared.client().get(f"{ROOT}/studies", {"fuzzymatching": "true"})
    assert answer["Warning"].startswith("299 ")


def test_another_lab_gets_no_results_and_a_guest_no_patient(prepared: Lab1) -> None:
    guest = User.objects.create_user("guest@elsewhere.example", "correct horse battery")
    lab = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    Membership.objects.create(user=guest, lab=lab, role=Role.MANAGER)
    client = client_of(guest)
    study = f"{ROOT}/{_study(prepared)}"
    series = f"{study}/series/{uid_of(prepared.world.canvas.pk)}"
    instance = f"{series}/instances/{uid_of(instance_id(prepared.world.canvas.pk, 1))}"
    named = [f"{study}/series", f"{series}/metadata", instance, f"{instance}/frames/1"]
    for path in named:
        assert client.get(path).status_code == 404
    for path in ("studies", "series", "instances"):
        assert client.get(f"{ROOT}/{path}").json() == []
    until = today() + timedelta(days=9)
    share = share_offer(
        case=prepared.world.case, with_lab="elsewhere", until=until, user=prepared.manager
    )
    share_accept(share=share, user=guest)
    for path in named:
        answer = client.get(path)
        assert answer.status_code == 200
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert b"pseudonym-7" not in body
    assert client.get(f"{ROOT}/studies").json() == []  # a list is of one's own
    uid = uid_of(prepared.world.case.pk)
    params: dict[str, str] = {"StudyInstanceUID": uid}
    assert len(client.get(f"{ROOT}/studies", params).json()) == 1
    params["PatientID"] = "pseudonym-7"  # nor can it be guessed
    assert client.get(f"{ROOT}/studies", params).json() == []


def test_a_slide_of_unknown_pixel_size_is_not_listed(prepared: Lab1) -> None:
    Canvas.objects.filter(pk=prepared.world.canvas.pk).update(mpp_x=None, mpp_y=None)
    assert _found(prepared, "studies") == []
    assert prepared.client().get(f"{ROOT}/{_study(prepared)}/metadata").status_code == 404


def test_a_slide_with_a_missing_file_hides_no_other(prepared: Lab1) -> None:
    canvas = prepared.world.canvas
    Slide.objects.filter(canvas=canvas).update(vendor="dicom")
    missing_path = f"derived/{uuid.uuid4()}"
    Canvas.objects.filter(pk=canvas.pk).update(pixels_path=f"{missing_path}/1.dcm", mpp_x=None)
    (study,) = _found(prepared, "studies")
    assert study["00201208"]["Value"] == [0]
    assert _found(prepared, "instances") == []
    path = f"{ROOT}/{_study(prepared)}/metadata"
    assert prepared.client().get(path).status_code == 503
    (storage_root() / missing_path).mkdir(parents=True)  # and is found as soon as it is back
    assert prepared.client().get(path).status_code == 404  # no object in it


def test_a_damaged_value_is_left_out(prepared: Lab1, monkeypatch: pytest.MonkeyPatch) -> None:
    level_of = objects.encoding.level_of
    tag = Tag("VolumeLocalizationTechnique")

    def damaged(*arguments: Any) -> Any:
        data = level_of(*arguments)
        data[tag] = RawDataElement(tag, "FL", 3, b"abc", 0, False, True)
        return data

    monkeypatch.setattr(objects.encoding, "level_of", damaged)
    (item,) = _found(prepared, "instances", limit="1", includefield="all")
    assert f"{tag:08X}" not in item and "00480001" in item


def test_a_study_with_too_many_tiles_to_encode_is_refused(
    prepared: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    canvas = prepared.world.canvas
    assert len(canvas.levels) > 1
    monkeypatch.setattr(objects.LevelObject, "coded_count", 4000)
    refused = prepared.client().get(f"{ROOT}/{_study(prepared)}")
    assert (refused.status_code, refused.json()["code"]) == (400, "too-costly")
    series = f"{ROOT}/{_study(prepared)}/series/{uid_of(canvas.pk)}"
    item = prepared.client().get(f"{series}/instances/{uid_of(instance_id(canvas.pk, 1))}")
    assert item.status_code == 200 and b"".join(item.streaming_content)


def test_invalid_frame_lists_are_refused(prepared: Lab1) -> None:
    canvas = prepared.world.canvas
    instance = (
        f"{ROOT}/{_study(prepared)}/series/{uid_of(canvas.pk)}"
        f"/instances/{uid_of(instance_id(canvas.pk, 1))}"
    )
    for frames, status in (("0", 404), ("9999", 404), ("a", 400), ("1," * 300 + "1", 400)):
        assert prepared.client().get(f"{instance}/frames/{frames}").status_code == status
    kind = {"Accept": "image/jpeg"}
    single = prepared.client().get(f"{instance}/frames/2", headers=kind)
    assert single["Content-Type"] == "image/jpeg"
    assert prepared.client().get(f"{instance}/frames/1,2", headers=kind).status_code == 406
    again = prepared.client().get(
        f"{instance}/frames/2", headers=kind | {"If-None-Match": single["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    xml = {"Accept": 'multipart/related; type="application/dicom+xml"'}
    assert prepared.client().get(f"{instance}/metadata", headers=xml).status_code == 406
    deflated = {"Accept": "application/dicom; transfer-syntax=1.2.840.10008.1.2.1.99"}
    assert prepared.client().get(instance, headers=deflated).status_code == 406
    file = prepared.client().get(instance, headers={"Accept": "application/dicom"})
    assert b"".join(file.streaming_content)[128:132] == b"DICM"
    preflight = {"Origin": "https://slim.example", "Access-Control-Request-Method": "GET"}
    client = Client().options(f"{instance}/frames/1", headers=preflight)
    assert "Accept" in client["Access-Control-Allow-Headers"].split(", ")


def test_a_search_of_more_slides_needs_no_more_queries(
    prepared: Lab1, django_assert_max_num_queries: Any
) -> None:
    canvas = prepared.world.canvas
    with django_assert_max_num_queries(11):  # token, membership, rows, the audit log's five
        assert len(_found(prepared, f"{_study(prepared)}/instances")) == len(canvas.levels)


def test_objects_outside_the_page_are_counted_without_reading(
    prepared: Lab1, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepared.world.canvas
    slide = Slide.objects.get(canvas=first)
    for number in range(30):
        asset = Asset.objects.create(lab=prepared.lab, sha256=f"{number:064}", size_bytes=1)
        canvas = Canvas.objects.get(pk=first.pk)
        canvas.pk = uuid.uuid4()
        canvas.save(force_insert=True)
        Slide.objects.create(
            lab=prepared.lab,
            case=slide.case,
            asset=asset,
            canvas=canvas,
            state=slide.state,
            name="a",
        )
    each = len(first.levels)
    instances = _found(prepared, "instances", limit="1000")
    assert len(instances) == 31 * each
    read: list[uuid.UUID] = []
    objects_of = studies.objects_of
    monkeypatch.setattr(
        studies, "objects_of", lambda item: read.append(item.pk) or objects_of(item)
    )
    for offset in (1, 7 * each, 7 * each + 1, 31 * each - 1):
        read.clear()
        assert _found(prepared, "instances", offset=str(offset), limit="1") == [instances[offset]]
        assert len(read) == 1
    read.clear()
    assert _found(prepared, "instances", offset="10000000") == [] and read == []
    Slide.objects.update(vendor=studies.VENDOR)
    requests = []
    for _ in range(2):  # what came as DICOM is looked at once
        with CaptureQueriesContext(connection) as queries:
            assert _found(prepared, "instances", offset="10000000") == []
        requests.append(len(queries))
    Slide.objects.exclude(canvas=first).delete()
    with CaptureQueriesContext(connection) as queries:
        assert _found(prepared, "instances", offset="10000000") == []
    assert len(queries) == requests[-1] <= requests[0]


def test_only_retrievable_objects_of_imported_dicom_are_counted(
    prepared: Lab1, tmp_path: Path
) -> None:
    canvas = prepared.world.canvas
    with override_settings(TESSERA_STORAGE=tmp_path):
        folder = storage.resolve(canvas.pixels_path).parent
        folder.mkdir(parents=True)
        for name, kind in (("a", "VOLUME"), ("b", "LABEL"), ("c", "OVERVIEW"), ("d", "VOLUME")):
            data = dcmread(write_dicom(folder / f"{name}.dcm", image_type=kind))
            data.PatientIdentityRemoved = "NO" if name == "d" else "YES"
            data.save_as(folder / f"{name}.dcm")
        Slide.objects.filter(canvas=canvas).update(vendor=studies.VENDOR)
        Canvas.objects.filter(pk=canvas.pk).update(content_hash="of this test")
        (study,) = _found(prepared, "studies")
        (series,) = _found(prepared, "series")
        listed = _found(prepared, "instances")
        fhir = prepared.client().get(f"/api/v1/cases/{prepared.world.case.pk}/fhir/").json()
        assert len(listed) == 1
        assert study["00201208"]["Value"] == series["00201209"]["Value"] == [1]
        assert [
            item["uid"]
            for entry in fhir["entry"]
            for row in entry["resource"].get("series", ())
            if row["modality"]["code"] == "SM"
            for item in row["instance"]
        ] == [listed[0]["00080018"]["Value"][0]]


def test_annotations_as_dicom_are_of_the_instance_that_dicomweb_gives(prepared: Lab1) -> None:
    path = f"/api/v1/canvases/{prepared.world.canvas.pk}/roi-file/"
    answer = prepared.client().get(path, {"format": "dicom"})
    assert answer.status_code == 200
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    written = dcmread(io.BytesIO(body))
    (item,) = _found(prepared, "instances", limit="1")
    (image,) = written.ReferencedImageSequence
    assert image.ReferencedSOPInstanceUID == item["00080018"]["Value"][0]
    assert written.StudyInstanceUID == item["0020000D"]["Value"][0]
