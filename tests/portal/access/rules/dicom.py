"""DICOMweb: searches are of one's own labs, what is named may be shared."""

from __future__ import annotations

from collections.abc import Mapping

from tests.portal.access.rules.kinds import Rule, rest

_NAMED = (
    *("dicom-frame-rendered", "dicom-frames", "dicom-instance", "dicom-instance-metadata"),
    *("dicom-instance-rendered", "dicom-one-series", "dicom-series-instances"),
    *("dicom-series-metadata", "dicom-study", "dicom-study-instances", "dicom-study-metadata"),
    "dicom-study-series",
)
DICOM_READS = {f"api:{name}" for name in _NAMED}

DICOM: Mapping[str, Mapping[str, Rule]] = {
    "api:dicom-studies": {"GET": rest(elsewhere=200)},
    "api:dicom-series": {"GET": rest(elsewhere=200)},
    "api:dicom-instances": {"GET": rest(elsewhere=200)},
    "api:dicom-bulk-data": {"GET": rest(404)},  # no value of that digest
    **{name: {"GET": rest()} for name in DICOM_READS},
}
