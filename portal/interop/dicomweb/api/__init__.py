"""Addresses of ``/api/v1/dicomweb/``."""

from __future__ import annotations

from django.urls import path, register_converter

from portal.interop.dicomweb.api import frames, retrieve, search
from portal.interop.dicomweb.api.addresses import UidConverter

register_converter(UidConverter, "dicom_uid")
_STUDY = "dicomweb/studies/<dicom_uid:case_id>"
_SERIES = f"{_STUDY}/series/<dicom_uid:canvas_id>"
_INSTANCE = f"{_SERIES}/instances/<dicom_uid:instance_id>"
_VIEWS = [
    ("dicomweb/studies", search.StudySearchApi, "dicom-studies"),
    ("dicomweb/series", search.SeriesSearchApi, "dicom-series"),
    ("dicomweb/instances", search.InstanceSearchApi, "dicom-instances"),
    (f"{_STUDY}/series", search.StudySeriesSearchApi, "dicom-study-series"),
    (f"{_STUDY}/instances", search.StudyInstanceSearchApi, "dicom-study-instances"),
    (f"{_SERIES}/instances", search.SeriesInstanceSearchApi, "dicom-series-instances"),
    (f"{_STUDY}/metadata", retrieve.StudyMetadataApi, "dicom-study-metadata"),
    (f"{_SERIES}/metadata", retrieve.SeriesMetadataApi, "dicom-series-metadata"),
    (f"{_INSTANCE}/metadata", retrieve.InstanceMetadataApi, "dicom-instance-metadata"),
    (_STUDY, retrieve.DicomStudyApi, "dicom-study"),
    (_SERIES, retrieve.SeriesApi, "dicom-one-series"),
    (_INSTANCE, retrieve.InstanceApi, "dicom-instance"),
    (f"{_INSTANCE}/bulkdata/<str:digest>", retrieve.BulkApi, "dicom-bulk-data"),
    (f"{_INSTANCE}/frames/<str:frames>", frames.FramesApi, "dicom-frames"),
    (f"{_INSTANCE}/frames/<int:frame>/rendered", frames.FrameRenderedApi, "dicom-frame-rendered"),
    (f"{_INSTANCE}/rendered", frames.InstanceRenderedApi, "dicom-instance-rendered"),
]
urlpatterns = [path(address, view.as_view(), name=name) for address, view, name in _VIEWS]
