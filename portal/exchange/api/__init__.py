"""REST for the standards of other systems."""

from __future__ import annotations

from django.urls import path, register_converter

from portal.exchange.api import dicom_frames, dicom_retrieve, dicom_search
from portal.exchange.api.dicom_addresses import UidConverter
from portal.exchange.api.events import EventsApi
from portal.exchange.api.export import CaseExportApi
from portal.exchange.api.fhir import CaseFhirApi
from portal.exchange.api.images import CanvasImageApi, CanvasImageBaseApi, CanvasImageInfoApi
from portal.exchange.api.imports import CaseImportApi
from portal.exchange.api.presentation import (
    CanvasAnnotationsApi,
    CanvasManifestApi,
    CaseManifestApi,
)

register_converter(UidConverter, "dicom_uid")
_STUDY = "dicomweb/studies/<dicom_uid:case_id>"
_SERIES = f"{_STUDY}/series/<dicom_uid:canvas_id>"
_INSTANCE = f"{_SERIES}/instances/<dicom_uid:instance_id>"
_DICOM = [
    ("dicomweb/studies", dicom_search.StudySearchApi, "dicom-studies"),
    ("dicomweb/series", dicom_search.SeriesSearchApi, "dicom-series"),
    ("dicomweb/instances", dicom_search.InstanceSearchApi, "dicom-instances"),
    (f"{_STUDY}/series", dicom_search.StudySeriesSearchApi, "dicom-study-series"),
    (f"{_STUDY}/instances", dicom_search.StudyInstanceSearchApi, "dicom-study-instances"),
    (f"{_SERIES}/instances", dicom_search.SeriesInstanceSearchApi, "dicom-series-instances"),
    (f"{_STUDY}/metadata", dicom_retrieve.StudyMetadataApi, "dicom-study-metadata"),
    (f"{_SERIES}/metadata", dicom_retrieve.SeriesMetadataApi, "dicom-series-metadata"),
    (f"{_INSTANCE}/metadata", dicom_retrieve.InstanceMetadataApi, "dicom-instance-metadata"),
    (_STUDY, dicom_retrieve.DicomStudyApi, "dicom-study"),
    (_SERIES, dicom_retrieve.SeriesApi, "dicom-one-series"),
    (_INSTANCE, dicom_retrieve.InstanceApi, "dicom-instance"),
    (f"{_INSTANCE}/bulkdata/<str:digest>", dicom_retrieve.BulkApi, "dicom-bulk-data"),
    (f"{_INSTANCE}/frames/<str:frames>", dicom_frames.FramesApi, "dicom-frames"),
    (
        f"{_INSTANCE}/frames/<int:frame>/rendered",
        dicom_frames.FrameRenderedApi,
        "dicom-frame-rendered",
    ),
    (f"{_INSTANCE}/rendered", dicom_frames.InstanceRenderedApi, "dicom-instance-rendered"),
]
_PARTS = "<str:region>/<str:size>/<str:rotation>/<str:quality>.<str:extension>"
urlpatterns = [
    *(path(address, view.as_view(), name=name) for address, view, name in _DICOM),
    path("events/", EventsApi.as_view(), name="events"),
    path("iiif/<uuid:id>", CanvasImageBaseApi.as_view(), name="canvas-image-base"),
    path("iiif/<uuid:id>/info.json", CanvasImageInfoApi.as_view(), name="canvas-image-info"),
    path(f"iiif/<uuid:id>/{_PARTS}", CanvasImageApi.as_view(), name="canvas-image"),
    path("canvases/<uuid:id>/manifest/", CanvasManifestApi.as_view(), name="canvas-manifest"),
    path(
        "canvases/<uuid:id>/annotations/",
        CanvasAnnotationsApi.as_view(),
        name="canvas-annotations",
    ),
    path("cases/<uuid:id>/export/", CaseExportApi.as_view(), name="case-export"),
    path("uploads/<uuid:id>/import/", CaseImportApi.as_view(), name="upload-import"),
    path("cases/<uuid:id>/fhir/", CaseFhirApi.as_view(), name="case-fhir"),
    path("cases/<uuid:id>/manifest/", CaseManifestApi.as_view(), name="case-manifest"),
]
