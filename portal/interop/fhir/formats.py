"""A case as HL7 FHIR R4: DiagnosticReport and ImagingStudy in one Bundle.

Source: HL7 FHIR 4.0.1. Identifiers of DICOM are made of the portal's own ids (2.25 and the number
of the UUID, DICOM PS3.5 B.2): those of files were taken out on the way in.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django.urls import reverse

from ml.imaging.dicom.uids import instance_id, uid_of
from ml.types import JsonObject
from portal.archive.models import Canvas, CanvasKind, Case, Modality, Sex
from portal.archive.selectors.stains import stain_shown
from portal.interop.selectors import CodedTerm

MEDIA_TYPE = "application/fhir+json"
_DCM = "http://dicom.nema.org/resources/ontology/DCM"
_HL7 = "http://terminology.hl7.org/CodeSystem"
_SLIDE, _SCOPE = ("SM", "Slide Microscopy"), ("ES", "Endoscopy")
_MODALITY = {
    CanvasKind.SLIDE: _SLIDE,
    CanvasKind.STILL: ("XC", "External-camera Photography"),
    CanvasKind.VIDEO: _SCOPE,
    CanvasKind.MOSAIC: _SCOPE,
}
_CLASS = {
    CanvasKind.SLIDE: "1.2.840.10008.5.1.4.1.1.77.1.6",  # VL Whole Slide Microscopy Image
    CanvasKind.STILL: "1.2.840.10008.5.1.4.1.1.77.1.4",  # VL Photographic Image
    CanvasKind.VIDEO: "1.2.840.10008.5.1.4.1.1.77.1.1.1",  # Video Endoscopic Image
    CanvasKind.MOSAIC: "1.2.840.10008.5.1.4.1.1.77.1.1",  # VL Endoscopic Image
}
"""SOP classes of DICOM PS3.4 annex B.5."""
_GENDER = {Sex.FEMALE: "female", Sex.MALE: "male", Sex.OTHER: "other"}


def case_bundle(
    case: Case,
    canvases: Sequence[Canvas],
    base: str,
    *,
    counts: Mapping[uuid.UUID, int],
    codes: Mapping[str, CodedTerm],
    with_patient: bool,
) -> JsonObject:
    """A Bundle of the report, the study, where its images are, and the patient's pseudonym.

    Args:
        base: of addresses: scheme and host.
        counts: of the DICOM objects of each slide; what is not a slide is one.
        codes: of organ and diagnosis, from the vocabulary of the case's lab.
        with_patient: whether the reader may know the pseudonym, the clinical question and the
            notes: members of the case's lab.
    """
    patient = _patient(case) if with_patient and case.patient_key else None
    subject: JsonObject = {"display": "Pseudonymous patient"}
    if patient is not None:
        subject = {"reference": _urn(_derived_uuid(case, "patient"))}
    endpoint, study = _endpoint(case, base), _study(case, canvases, subject, counts, codes)
    if with_patient:
        study |= _clinical(case)
    report = _report(case, subject, codes, has_images=bool(canvases))
    entries = {"report": report}
    entries |= {"study": study, "endpoint": endpoint} if canvases else {}
    entries |= {"patient": patient} if patient is not None else {}
    return {
        "resourceType": "Bundle",
        "id": str(case.pk),
        "type": "collection",
        "timestamp": case.updated_at.isoformat(),
        "entry": [
            {
                "fullUrl": _urn(_derived_uuid(case, name)),
                "resource": {"id": str(_derived_uuid(case, name)), **resource},
            }
            for name, resource in entries.items()
        ],
    }


def _report(
    case: Case, subject: JsonObject, codes: Mapping[str, CodedTerm], *, has_images: bool
) -> JsonObject:
    """DiagnosticReport; ``preliminary``, because reports are signed in other systems."""
    resource: JsonObject = {
        "resourceType": "DiagnosticReport",
        "identifier": [_accession(case)],
        "status": "preliminary" if case.diagnosis else "registered",
        "code": {
            "coding": [
                {
                    "system": "http://loinc.org",
                    "code": "18748-4",
                    "display": "Diagnostic imaging study",
                }
            ],
            "text": case.procedure or "Diagnostic imaging study",
        },
        "subject": subject,
        "effectiveDateTime": case.created_at.isoformat(),
        "issued": case.updated_at.isoformat(),
    }
    if has_images:
        resource["imagingStudy"] = [{"reference": _urn(_derived_uuid(case, "study"))}]
    if case.diagnosis:
        resource["conclusion"] = case.diagnosis
    if diagnosis := codes.get("diagnosis"):
        resource["conclusionCode"] = [{"coding": [_coding(diagnosis)], "text": case.diagnosis}]
    return resource


def _study(
    case: Case,
    canvases: Sequence[Canvas],
    subject: JsonObject,
    counts: Mapping[uuid.UUID, int],
    codes: Mapping[str, CodedTerm],
) -> JsonObject:
    kinds = sorted({_dicom_modality(canvas) for canvas in canvases})
    resource: JsonObject = {
        "resourceType": "ImagingStudy",
        "identifier": [
            {"system": "urn:dicom:uid", "value": f"urn:oid:{uid_of(case.pk)}"},
            _accession(case),
        ],
        "status": "available",
        "modality": [_modality(*kind) for kind in kinds],
        "subject": subject,
        "started": case.created_at.isoformat(),
        "endpoint": [{"reference": _urn(_derived_uuid(case, "endpoint"))}],
        "numberOfSeries": len(canvases),
        "numberOfInstances": sum(counts.get(canvas.pk, 1) for canvas in canvases),
        "series": [
            _series(case, canvas, number, counts.get(canvas.pk, 1), codes)
            for number, canvas in enumerate(canvases, 1)
        ],
    }
    if case.procedure:
        resource["description"] = case.procedure
    return resource


def _clinical(case: Case) -> JsonObject:
    """Clinical question and notes, as the study's reason and note."""
    fields: JsonObject = {}
    if case.clinical_question:
        fields["reasonCode"] = [{"text": case.clinical_question}]
    if case.notes:
        fields["note"] = [{"text": case.notes}]
    return fields


def _dicom_modality(canvas: Canvas) -> tuple[str, str]:
    """Code and meaning of DICOM CID 29."""
    kind = CanvasKind(canvas.kind)
    if kind == CanvasKind.STILL and canvas.modality == Modality.ENDOSCOPY:
        return _SCOPE
    return _MODALITY[kind]


def _series(
    case: Case, canvas: Canvas, number: int, count: int, codes: Mapping[str, CodedTerm]
) -> JsonObject:
    """Series of each canvas: a slide with its levels, as in DICOMweb, others with one instance."""
    kind = CanvasKind(canvas.kind)
    instances = [
        {
            "uid": uid_of(instance_id(canvas.pk, instance_number)),
            "sopClass": {"system": "urn:ietf:rfc:3986", "code": f"urn:oid:{_CLASS[kind]}"},
            "number": instance_number,
            "title": canvas.name,
        }
        for instance_number in range(1, count + 1)
    ]
    resource: JsonObject = {
        "uid": uid_of(canvas.pk),
        "number": number,
        "modality": _modality(*_dicom_modality(canvas)),
        "description": canvas.name,
        "numberOfInstances": count,
        "started": canvas.created_at.isoformat(),
        "instance": instances,
    }
    if case.organ:
        organ = codes.get("organ")
        resource["bodySite"] = _coding(organ) if organ else {"display": case.organ}
    if stain := stain_shown(canvas):
        resource["specimen"] = [{"display": f"Section stained with {stain}"}]
    return resource


def _endpoint(case: Case, base: str) -> JsonObject:
    """The images themselves, by IIIF."""
    return {
        "resourceType": "Endpoint",
        "status": "active",
        "connectionType": {"display": "IIIF Presentation API 3.0"},
        "payloadType": [{"text": "IIIF manifest"}],
        "payloadMimeType": ["application/ld+json"],
        "address": f"{base}{reverse('api:case-manifest', args=[case.pk])}",
    }


def _patient(case: Case) -> JsonObject:
    """Pseudonymous patient, without a name."""
    gender = _GENDER.get(Sex(case.sex), "unknown")
    key = {"use": "secondary", "value": case.patient_key}
    return {"resourceType": "Patient", "identifier": [key], "gender": gender}


def _accession(case: Case) -> JsonObject:
    kind = {"system": f"{_HL7}/v2-0203", "code": "ACSN", "display": "Accession ID"}
    return {"type": {"coding": [kind]}, "value": case.accession}


def _modality(code: str, display: str) -> dict[str, str]:
    return {"system": _DCM, "code": code, "display": display}


def _coding(term: CodedTerm) -> dict[str, str]:
    return {"system": term.system, "code": term.code, "display": term.term}


def _derived_uuid(case: Case, name: str) -> uuid.UUID:
    """The same id for the same case each time."""
    return uuid.uuid5(case.pk, name)


def _urn(resource_id: uuid.UUID) -> str:
    return f"urn:uuid:{resource_id}"
