"""DICOM Microscopy Bulk Simple Annotations (Supplement 222), by highdicom."""

from __future__ import annotations

import io
import uuid
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ml.imaging.dicom.patient import LO_CHARACTERS, single_value
from ml.imaging.dicom.uids import derived_uid, instance_id, uid_of
from portal.annotations.formats.pieces import single_rings
from portal.annotations.formats.types import NO_LABEL, ExportChoices, Plane, Rois
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import Label
from portal.core.errors import InvalidInputError

_IDS = uuid.UUID("0d4f1c4e-7a5b-5f0e-9a55-9f0d1c6f8f10")  # namespace of generated UIDs
_GRAPHICS = {"point": "POINT", "line": "POLYLINE"}
_CHUNK = 2**20  # sent at once: few calls, little memory


class DicomAnnotations:
    """A group for each label and kind (polygon, point, polyline), in pixels of the image."""

    name, title = "dicom", "DICOM annotations"
    suffix, media_type = ".dcm", "application/dicom"
    for_video = False

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """Write a DICOM instance of annotations, which highdicom builds in memory.

        The annotations refer to the finest instance of the slide, as DICOMweb gives it.
        """
        if plane.is_video:
            raise InvalidInputError("DICOM annotations are for slides, not for videos.")
        try:
            import highdicom
        except ImportError:
            raise InvalidInputError(
                "DICOM needs the extra `dicom` (pip install tessera[dicom]) on the server.",
                code="extra-missing",
            ) from None
        groups: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
        for roi in rois():
            label = roi.label.name if isinstance(roi.label, Label) else NO_LABEL
            kind = mark_kind(roi.geometry)
            parts = mark_parts(roi.geometry) if kind else single_rings(roi.geometry)
            groups[label, _GRAPHICS.get(kind or "", "POLYGON")] += [
                np.array(part, np.float32) for part in parts
            ]
        if not groups:
            raise InvalidInputError("There are no regions to write.", code="no-rois")
        return _pieces(_instance(highdicom, plane, groups))


def _instance(highdicom: Any, plane: Plane, groups: dict[tuple[str, str], list[Any]]) -> Any:
    from highdicom import ann
    from pydicom.sr.codedict import codes

    annotation_groups = [
        ann.AnnotationGroup(
            number=number,
            uid=_uid(plane, f"group {label}" + ("" if graphic == "POLYGON" else f" {graphic}")),
            label=single_value(label, max_characters=LO_CHARACTERS) or NO_LABEL,
            annotated_property_category=codes.SCT.AnatomicalStructure,
            annotated_property_type=codes.DCM.SelectedRegion,
            graphic_type=ann.GraphicTypeValues[graphic],
            graphic_data=parts,
            algorithm_type=ann.AnnotationGroupGenerationTypeValues.MANUAL,
        )
        for number, ((label, graphic), parts) in enumerate(groups.items(), start=1)
    ]
    return ann.MicroscopyBulkSimpleAnnotations(
        source_images=[_source(plane)],
        annotation_coordinate_type=ann.AnnotationCoordinateTypeValues.SCOORD,
        annotation_groups=annotation_groups,
        series_instance_uid=_uid(plane, "annotations"),
        series_number=1,
        sop_instance_uid=highdicom.UID(),
        instance_number=1,
        manufacturer="Tessera",
        manufacturer_model_name="Tessera",
        software_versions="1",
        device_serial_number="1",
        content_description="Regions of interest",
    )


def _source(plane: Plane) -> Any:
    """The image that is annotated, as far as annotations refer to it."""
    from pydicom import Dataset
    from pydicom.uid import VLWholeSlideMicroscopyImageStorage

    image = Dataset()
    image.SOPClassUID = VLWholeSlideMicroscopyImageStorage
    image.SOPInstanceUID = uid_of(instance_id(plane.canvas_id, 1))
    image.StudyInstanceUID = uid_of(plane.case_id) if plane.case_id else _uid(plane, "study")
    image.SeriesInstanceUID = uid_of(plane.canvas_id)
    image.FrameOfReferenceUID = derived_uid(plane.canvas_id, "frame of reference")
    image.PositionReferenceIndicator = "SLIDE_CORNER"
    image.Modality = "SM"
    image.TotalPixelMatrixColumns, image.TotalPixelMatrixRows = plane.width_px, plane.height_px
    for name in ("PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber"):
        setattr(image, name, "")  # the patient's identity is not exported
    image.StudyID = image.StudyDate = image.StudyTime = image.ReferringPhysicianName = ""
    image.ContainerIdentifier = ""
    image.SpecimenDescriptionSequence = []
    return image


def _uid(plane: Plane, purpose: str) -> str:
    """DICOM UID derived from a UUID (PS3.5 B.2); the same for the same canvas."""
    return derived_uid(_IDS, f"{plane.canvas_id} {purpose}")


def _pieces(instance: Any) -> Iterator[bytes]:
    stream = io.BytesIO()
    instance.save_as(stream)
    stream.seek(0)
    while piece := stream.read(_CHUNK):
        yield piece
