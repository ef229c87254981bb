"""``/api/v1/dicomweb/``: QIDO-RS, the search for studies, series and instances."""

from __future__ import annotations

import uuid

from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ml.imaging.dicom.patient import add_all
from ml.types import JsonObject
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.interop.dicomweb.api.addresses import address_of
from portal.interop.dicomweb.formats import json_model
from portal.interop.dicomweb.formats.media_types import JSON
from portal.interop.dicomweb.formats.query import MAX_LIMIT, SEARCHED, DicomQuery, parse_query
from portal.interop.dicomweb.selectors.objects import SlideObject, object_count, object_uid
from portal.interop.dicomweb.selectors.studies import (
    Series,
    dicom_instances,
    dicom_series,
    dicom_studies,
)
from portal.interop.http import StandardApi
from portal.labs.requests import user_of

CASE = OpenApiParameter(
    "case_id",
    str,
    OpenApiParameter.PATH,
    description="UID of the study: 2.25 and the number of the case",
)
CANVAS = OpenApiParameter(
    "canvas_id",
    str,
    OpenApiParameter.PATH,
    description="UID of the series: 2.25 and the number of the canvas",
)
FOUND = {
    (200, JSON): {"type": "array", "items": {"type": "object"}}
}  # a data set each, as DICOM JSON
_QUERY = [
    *(
        OpenApiParameter(word, str, description="Query parameter of QIDO-RS")
        for word in ("StudyInstanceUID", "PatientID", "AccessionNumber", "ModalitiesInStudy")
    ),
    OpenApiParameter(
        "includefield",
        str,
        description=f"`all`, or keywords. A search can use {', '.join(SEARCHED)}",
    ),
    OpenApiParameter("limit", int, description=f"Up to {MAX_LIMIT:,}; 100 by default"),
    OpenApiParameter("offset", int, description="How many to skip"),
]
_LITERAL = (
    '299 tessera "The fuzzymatching parameter is not supported.'
    ' Only literal matching has been performed."'
)


class _SearchApi(StandardApi):
    """Answers a list of data sets."""

    def _answer(self, request: Request, rows: list[JsonObject]) -> Response:
        is_fuzzy = request.query_params.get("fuzzymatching", "").lower() == "true"
        headers = {"Warning": _LITERAL} if is_fuzzy else {}
        return Response(rows, content_type=JSON, headers=headers)


@audited(GET=AuditRule("case.listed"))
class StudySearchApi(_SearchApi):
    """Cases."""

    @extend_schema(
        operation_id="dicom_studies",
        summary="DICOMweb: search for studies",
        parameters=_QUERY,
        responses=FOUND,
    )
    def get(self, request: Request) -> Response:
        """Cases of the user's labs with slides of known pixel size or from DICOM, newest first."""
        rows = []
        for study in dicom_studies(user_of(request), _query_of(request)):
            attributes = study.series[0].attributes
            rows.append(
                json_model.study_json(
                    attributes,
                    series=len(study.series),
                    instances=study.instance_count(),
                    address=address_of(request, attributes.study_uid),
                )
            )
        return self._answer(request, rows)


class _SeriesSearchApi(_SearchApi):
    def _search_response(self, request: Request, case_id: uuid.UUID | None = None) -> Response:
        user, query = user_of(request), _query_of(request)
        rows = [
            json_model.series_json(
                series.attributes,
                instances=object_count(series.canvas),
                address=address_of(
                    request, series.attributes.study_uid, series.attributes.series_uid
                ),
            )
            for series in dicom_series(user, query, case_id=case_id)
        ]
        return self._answer(request, rows)


@audited(GET=AuditRule("item.listed"))
class SeriesSearchApi(_SeriesSearchApi):
    """Slides."""

    @extend_schema(
        operation_id="dicom_series",
        summary="DICOMweb: search for series",
        parameters=_QUERY,
        responses=FOUND,
    )
    def get(self, request: Request) -> Response:
        """Slides of the user's labs."""
        return self._search_response(request)


@audited(GET=AuditRule("case.viewed", "case", "case_id", every_s=MINUTE_S))
class StudySeriesSearchApi(_SeriesSearchApi):
    """Slides of a case."""

    @extend_schema(
        operation_id="dicom_study_series",
        summary="DICOMweb: the series of a study",
        parameters=[CASE, *_QUERY],
        responses=FOUND,
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        """Slides of a case, also of a shared one."""
        return self._search_response(request, case_id)


class _InstanceSearchApi(_SearchApi):
    def _search_response(
        self,
        request: Request,
        case_id: uuid.UUID | None = None,
        canvas_id: uuid.UUID | None = None,
    ) -> Response:
        query = _query_of(request)
        rows = [
            _instance(request, series, instance, query)
            for series, instance in dicom_instances(
                user_of(request), query, case_id=case_id, canvas_id=canvas_id
            )
        ]
        return self._answer(request, rows)


@audited(GET=AuditRule("item.listed"))
class InstanceSearchApi(_InstanceSearchApi):
    """Levels."""

    @extend_schema(
        operation_id="dicom_instances",
        summary="DICOMweb: search for instances",
        parameters=_QUERY,
        responses=FOUND,
    )
    def get(self, request: Request) -> Response:
        """Levels of the slides of the user's labs."""
        return self._search_response(request)


@audited(GET=AuditRule("case.viewed", "case", "case_id", every_s=MINUTE_S))
class StudyInstanceSearchApi(_InstanceSearchApi):
    """Levels of a case's slides."""

    @extend_schema(
        operation_id="dicom_study_instances",
        summary="DICOMweb: the instances of a study",
        parameters=[CASE, *_QUERY],
        responses=FOUND,
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        """Levels of all slides of a case."""
        return self._search_response(request, case_id)


@audited(GET=AuditRule("canvas.opened", "canvas", "canvas_id", every_s=MINUTE_S))
class SeriesInstanceSearchApi(_InstanceSearchApi):
    """Levels of a slide."""

    @extend_schema(
        operation_id="dicom_series_instances",
        summary="DICOMweb: the instances of a series",
        parameters=[CASE, CANVAS, *_QUERY],
        responses=FOUND,
    )
    def get(self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID) -> Response:
        """Levels of a slide, the finest first."""
        return self._search_response(request, case_id, canvas_id)


def _query_of(request: Request) -> DicomQuery:
    http_request: HttpRequest = request._request
    return parse_query(http_request.GET)


def _instance(
    request: Request, series: Series, instance: SlideObject, query: DicomQuery
) -> JsonObject:
    from pydicom.datadict import keyword_for_tag

    attributes, uid = series.attributes, object_uid(series.canvas, instance)
    brief = instance.brief()
    if query.fields is None or query.fields:
        dataset = instance.data()
        add_all(dataset, attributes, uid)
        for tag in dataset.keys():  # noqa: SIM118 - each as it is stored: it may be damaged
            if query.fields is None or keyword_for_tag(tag) in query.fields:
                brief[tag] = dataset.get_item(tag)
    return json_model.instance_json(
        brief,
        attributes,
        uid=uid,
        syntax=instance.syntax,
        address=address_of(request, attributes.study_uid, attributes.series_uid, uid),
    )
