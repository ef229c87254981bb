"""A case as FHIR R4, by the rules of fhir.resources."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from fhir.resources.R4B.bundle import Bundle
from fhir.resources.R4B.diagnosticreport import DiagnosticReport
from fhir.resources.R4B.imagingstudy import ImagingStudy
from pydicom.uid import UID

from ml.imaging.dicom.uids import MAX_INSTANCES
from portal.archive.models import Canvas, Case, Slide, VocabularyTerm
from portal.archive.models.shares import today
from portal.archive.services.sharing import share_accept, share_offer
from portal.interop.selectors import ICD_O
from portal.labs.models import Lab, Membership, Role, User
from tests.clients import client_of
from tests.portal.interop.conftest import Lab1


def _bundle(client: Client, held: Lab1) -> dict[str, Any]:
    path = f"/api/v1/cases/{held.world.case.pk}/fhir/"
    answer = client.get(path, headers={"Accept": "application/fhir+json"})
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/fhir+json"
    body: dict[str, Any] = answer.json()
    return body


def _of(bundle: dict[str, Any], kind: str) -> dict[str, Any]:
    (result,) = [e["resource"] for e in bundle["entry"] if e["resource"]["resourceType"] == kind]
    return dict(result)


def test_every_resource_is_valid_and_every_reference_is_in_the_bundle(held: Lab1) -> None:
    Case.objects.filter(pk=held.world.case.pk).update(
        diagnosis="Adenoma",
        procedure="Colonoscopy",
        clinical_question="Margins free?",
        notes="First\nSecond",
    )
    Slide.objects.filter(case=held.world.case).update(stain="PAS")
    bundle = _bundle(held.client(), held)
    Bundle.model_validate(bundle)
    DiagnosticReport.model_validate(_of(bundle, "DiagnosticReport"))
    study = ImagingStudy.model_validate(_of(bundle, "ImagingStudy"))
    assert [series.modality.code for series in study.series] == ["SM", "ES"]
    assert study.series[0].specimen[0].display == "Section stained with PAS"
    assert study.series[1].specimen is None
    assert study.reasonCode[0].text == "Margins free?"
    assert study.note[0].text == "First\nSecond"
    urls = {entry["fullUrl"] for entry in bundle["entry"]}
    named = set(re.findall(r'"reference": "([^"]+)"', json.dumps(bundle)))
    assert named and named <= urls
    for series in study.series:
        for uid in (series.uid, series.instance[0].uid):
            assert UID(uid).is_valid
    (result,) = held.client().get("/api/v1/dicomweb/studies").json()
    assert study.identifier[0].value == f"urn:oid:{result['0020000D']['Value'][0]}"
    levels = held.client().get("/api/v1/dicomweb/instances").json()
    reported = [level["00080018"]["Value"][0] for level in levels]
    assert [instance.uid for instance in study.series[0].instance] == reported
    report = _of(bundle, "DiagnosticReport")
    assert (report["status"], report["conclusion"]) == ("preliminary", "Adenoma")
    assert report["identifier"][0]["value"] == held.world.case.accession
    endpoint = re.sub("^http://[^/]+", "", _of(bundle, "Endpoint")["address"])
    assert held.client().get(endpoint).json()["type"] == "Manifest"


@pytest.mark.parametrize(
    "name", ["<script>", "\u202eA", "😀" * 30, "W" * 60, "a\x00b\x1b", "a\r\nb", " A ", "|#/?&"]
)
def test_a_hostile_name_leaves_the_bundle_valid(held: Lab1, name: str) -> None:
    case = Case.objects.filter(pk=held.world.case.pk)
    case.update(accession=name, diagnosis=name, procedure=name)
    Slide.objects.filter(case=held.world.case).update(name=name, stain=name[:40])
    Lab.objects.filter(pk=held.lab.pk).update(name=name)
    bundle = _bundle(held.client(), held)
    Bundle.model_validate(bundle)
    DiagnosticReport.model_validate(_of(bundle, "DiagnosticReport"))
    ImagingStudy.model_validate(_of(bundle, "ImagingStudy"))
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "".join(_texts(bundle)))


def test_codes_are_those_of_the_vocabulary_of_the_cases_lab(held: Lab1) -> None:
    case = Case.objects.filter(pk=held.world.case.pk)
    case.update(organ="Caecum", diagnosis="Sessile lesion")
    other = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    for field, term in (("organ", "caecum"), ("diagnosis", "sessile lesion")):
        VocabularyTerm.objects.create(lab=other, field=field, term=term, code="C99.9")
    uncoded = _bundle(held.client(), held)
    assert _of(uncoded, "ImagingStudy")["series"][0]["bodySite"] == {"display": "Caecum"}
    assert "conclusionCode" not in _of(uncoded, "DiagnosticReport")
    VocabularyTerm.objects.create(lab=held.lab, field="organ", term="caecum", code="C18.0")
    VocabularyTerm.objects.create(lab=held.lab, field="diagnosis", term="Caecum", code="8211/0")
    VocabularyTerm.objects.create(lab=held.lab, field="diagnosis", term="Sessile lesion", code="7")
    bundle = _bundle(held.client(), held)
    report = DiagnosticReport.model_validate(_of(bundle, "DiagnosticReport"))
    (diagnosis,) = report.conclusionCode[0].coding
    assert (diagnosis.code, diagnosis.display) == ("7", "Sessile lesion")
    assert diagnosis.system == f"urn:uuid:{held.lab.pk}"
    study = ImagingStudy.model_validate(_of(bundle, "ImagingStudy"))
    for series in study.series:
        assert (series.bodySite.code, series.bodySite.display) == ("C18.0", "caecum")
        assert series.bodySite.system == ICD_O
    case.update(diagnosis="Caecum")
    (coded,) = _of(_bundle(held.client(), held), "DiagnosticReport")["conclusionCode"]
    assert (coded["coding"][0]["code"], coded["coding"][0]["system"]) == ("8211/0", ICD_O)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _texts(part)]


def test_the_same_case_gives_the_same_bundle(held: Lab1) -> None:
    assert _bundle(held.client(), held) == _bundle(held.client(), held)


def test_a_case_without_anything_is_valid_too(held: Lab1) -> None:
    empty = Case.objects.create(lab=held.lab, accession="W-EMPTY")
    bundle = held.client().get(f"/api/v1/cases/{empty.pk}/fhir/").json()
    Bundle.model_validate(bundle)
    assert [e["resource"]["resourceType"] for e in bundle["entry"]] == ["DiagnosticReport"]
    assert bundle["entry"][0]["resource"]["status"] == "registered"


def test_a_still_has_the_modality_of_its_image(held: Lab1) -> None:
    stills = Canvas.objects.filter(case=held.world.case, kind="slide")
    for modality, code in (("endoscopy", "ES"), ("histology", "XC")):
        stills.update(kind="still", modality=modality)
        stills = Canvas.objects.filter(case=held.world.case, kind="still")
        study = ImagingStudy.model_validate(_of(_bundle(held.client(), held), "ImagingStudy"))
        assert study.series[0].modality.code == code


def test_a_guest_of_a_shared_case_does_not_get_the_pseudonym(held: Lab1) -> None:
    guest = User.objects.create_user("guest@elsewhere.example", "correct horse battery")
    lab = Lab.objects.create(name="Elsewhere", slug="elsewhere")
    Membership.objects.create(user=guest, lab=lab, role=Role.MANAGER)
    Case.objects.filter(pk=held.world.case.pk).update(patient_key="pseudonym-7")
    until = today() + timedelta(days=9)
    share = share_offer(case=held.world.case, with_lab="elsewhere", until=until, user=held.manager)
    share_accept(share=share, user=guest)
    client = client_of(guest)
    bundle = _bundle(client, held)
    Bundle.model_validate(bundle)
    assert "pseudonym-7" not in json.dumps(bundle)
    assert "pseudonym-7" in json.dumps(_bundle(held.client(), held))


def test_instances_are_as_many_as_dicomweb_lists_of_the_slides(held: Lab1) -> None:
    def counts() -> tuple[int, int]:
        study = _of(_bundle(held.client(), held), "ImagingStudy")
        slides = [frame for frame in study["series"] if frame["modality"]["code"] == "SM"]
        assert study["numberOfInstances"] == sum(
            frame["numberOfInstances"] for frame in study["series"]
        )
        assert all(len(slide["instance"]) == slide["numberOfInstances"] for slide in slides)
        listed = held.client().get("/api/v1/dicomweb/instances").json()
        return sum(slide["numberOfInstances"] for slide in slides), len(listed)

    canvas = held.world.canvas
    fhir, listed = counts()
    assert fhir == listed == len(canvas.levels)
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    assert counts() == (0, 0)  # of unknown pixel size it is no DICOM
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=1, mpp_y=1, levels=canvas.levels * 300)
    fhir, listed = counts()
    assert fhir == MAX_INSTANCES and listed == min(100, MAX_INSTANCES)
