"""What the audit log notes of DICOMweb, see ``watched``."""

from __future__ import annotations

from collections.abc import Mapping

from portal.config.auditing.watch import HOUR_S, MINUTE_S, Watch

_CASE = Watch("case.viewed", "case", "case_id", every_s=MINUTE_S)
_SLIDE = Watch("canvas.opened", "canvas", "canvas_id", every_s=MINUTE_S)
_PIXELS = Watch("canvas.read", "canvas", "canvas_id", every_s=HOUR_S)
_FILES = Watch("canvas.exported", "canvas", "canvas_id")

DICOM: Mapping[str, Mapping[str, Watch]] = {
    "api:dicom-bulk-data": {"GET": _PIXELS},
    "api:dicom-frame-rendered": {"GET": _PIXELS},
    "api:dicom-frames": {"GET": _PIXELS},
    "api:dicom-instance": {"GET": _FILES},
    "api:dicom-instance-metadata": {"GET": _SLIDE},
    "api:dicom-instance-rendered": {"GET": _PIXELS},
    "api:dicom-instances": {"GET": Watch("item.listed")},
    "api:dicom-one-series": {"GET": _FILES},
    "api:dicom-series": {"GET": Watch("item.listed")},
    "api:dicom-series-instances": {"GET": _SLIDE},
    "api:dicom-series-metadata": {"GET": _SLIDE},
    "api:dicom-studies": {"GET": Watch("case.listed")},
    "api:dicom-study": {"GET": Watch("canvas.exported", "case", "case_id")},
    "api:dicom-study-instances": {"GET": _CASE},
    "api:dicom-study-metadata": {"GET": _CASE},
    "api:dicom-study-series": {"GET": _CASE},
}
