"""``/api/v1/dicomweb/``: WADO-RS, frames and pictures."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotAcceptable
from rest_framework.request import Request

from ml.errors import MlError
from ml.imaging.dicom.transfer_syntax import DECODED, OCTETS, decoded, drawn, picture, plain_pixels
from portal.archive.tiles.regions import Box, region_read
from portal.core.errors import InvalidInputError, NotFoundError, UnavailableError
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.core.http.files import bytes_response
from portal.interop.dicomweb.api.retrieve import IDS, accepts, frames_address
from portal.interop.dicomweb.formats.media_types import (
    AnswerPart,
    FrameCoding,
    boundary,
    frame_coding,
    in_parts,
    parse_accept,
    parts_type,
    picture_kind,
)
from portal.interop.dicomweb.selectors.objects import SlideObject
from portal.interop.dicomweb.selectors.studies import Series, dicom_object
from portal.interop.http import CACHE_CONTROL, StandardApi
from portal.interop.iiif.formats.image_requests import largest
from portal.labs.requests import user_of

MAX_FRAMES_PER_REQUEST = 256
MAX_PIXEL_BYTES = 64 * 2**20  # of their pixels: they are put together in memory
_NUMBER_LETTERS = 8  # more frames than any slide has
_PICTURES = {
    (200, "image/jpeg"): OpenApiTypes.BINARY,
    (200, "image/png"): OpenApiTypes.BINARY,
}


@audited(GET=AuditRule("canvas.read", "canvas", "canvas_id", every_s=HOUR_S))
class FramesApi(StandardApi):
    """Tiles."""

    @extend_schema(
        operation_id="dicom_frames",
        summary="DICOMweb: frames of an instance",
        parameters=[
            *IDS,
            OpenApiParameter(
                "frames", str, OpenApiParameter.PATH, description="`1,2,3`, from 1", default="1"
            ),
        ],
        responses={(200, "multipart/related"): OpenApiTypes.BINARY},
    )
    def get(
        self,
        request: Request,
        case_id: uuid.UUID,
        canvas_id: uuid.UUID,
        instance_id: uuid.UUID,
        frames: str,
    ) -> HttpResponse:
        """Frames as stored for `image/jpeg` (or their own type), `*/*`, or octets of any transfer
        syntax; decoded pixels for `application/octet-stream` of explicit VR.
        """
        series, instance = dicom_object(user_of(request), case_id, canvas_id, instance_id)
        numbers = _numbers(frames, instance)
        coding = frame_coding(parse_accept(accepts(request)), instance.syntax)
        if coding is None or (not coding.in_parts and len(numbers) > 1):
            raise NotAcceptable(
                f"Frames are returned as they are stored ({instance.syntax}), as multipart."
            )
        etag = _etag(series, instance, frames, coding)
        line = boundary(etag)
        media_type = (
            coding.media_type if not coding.in_parts else parts_type(coding.media_type, line)
        )

        def body() -> bytes:
            data = [_frame(instance, number, coding) for number in numbers]
            if not coding.in_parts:
                return data[0]
            parts = [
                AnswerPart(
                    f"{coding.media_type}; transfer-syntax={coding.syntax}",
                    frames_address(request, series, instance, number),
                    [frame],
                )
                for number, frame in zip(numbers, data, strict=True)
            ]
            return b"".join(in_parts(parts, line))

        response = bytes_response(
            request._request, body, etag=etag, media_type=media_type, cache=CACHE_CONTROL
        )
        response["Vary"] = "Accept"
        return response


@audited(GET=AuditRule("canvas.read", "canvas", "canvas_id", every_s=HOUR_S))
class FrameRenderedApi(StandardApi):
    """A tile for a browser."""

    @extend_schema(
        operation_id="dicom_frame_rendered",
        summary="DICOMweb: a frame as a picture",
        parameters=[*IDS, OpenApiParameter("frame", int, OpenApiParameter.PATH)],
        responses=_PICTURES,
    )
    def get(
        self,
        request: Request,
        case_id: uuid.UUID,
        canvas_id: uuid.UUID,
        instance_id: uuid.UUID,
        frame: int,
    ) -> HttpResponse:
        """A frame as JPEG or PNG. A stored JPEG is not recompressed; colours are not converted."""
        series, instance = dicom_object(user_of(request), case_id, canvas_id, instance_id)
        (number,) = _numbers(str(frame), instance)
        kind = _picture_kind(request)
        data = _render_frame(instance, number, as_png=kind == "image/png")
        return _picture(
            request, data, f"{series.canvas.picture_tag}-{instance.number}-{number}", kind
        )


@audited(GET=AuditRule("canvas.read", "canvas", "canvas_id", every_s=HOUR_S))
class InstanceRenderedApi(StandardApi):
    """A level for a browser."""

    @extend_schema(
        operation_id="dicom_instance_rendered",
        summary="DICOMweb: an instance as a picture",
        parameters=IDS,
        responses=_PICTURES,
    )
    def get(
        self, request: Request, case_id: uuid.UUID, canvas_id: uuid.UUID, instance_id: uuid.UUID
    ) -> HttpResponse:
        """The whole slide at the size of this level, at most 2,048 px wide or high."""
        series, instance = dicom_object(user_of(request), case_id, canvas_id, instance_id)
        kind, canvas, brief = _picture_kind(request), series.canvas, instance.brief()
        size = (int(brief.TotalPixelMatrixColumns), int(brief.TotalPixelMatrixRows))
        width, height = largest(*size)
        out = (min(width, canvas.width_px), min(height, canvas.height_px))
        region = region_read(canvas, Box(0, 0, canvas.width_px, canvas.height_px), out)
        data = drawn(region.pixels(), as_png=kind == "image/png")
        return _picture(request, data, f"{canvas.picture_tag}-{instance.number}-0", kind)


def _numbers(text: str, instance: SlideObject) -> list[int]:
    """Frames of a request, from 1."""
    words = text.split(",")
    if len(words) > MAX_FRAMES_PER_REQUEST:
        raise InvalidInputError(f"frames: at most {MAX_FRAMES_PER_REQUEST} at once.")
    if not all(w.isascii() and w.isdecimal() and len(w) <= _NUMBER_LETTERS for w in words):
        raise InvalidInputError("frames: numbers from 1, separated by commas.")
    numbers = [int(word) for word in words]
    for number in numbers:
        if not 1 <= number <= instance.frame_count:
            raise NotFoundError(
                f"There is no frame {number}; this instance has {instance.frame_count:,}."
            )
    brief = instance.brief()
    samples = 3 * int(brief.Rows) * int(brief.Columns) * max(1, int(brief.BitsAllocated) // 8)
    if samples * len(numbers) > max(MAX_PIXEL_BYTES, samples):
        raise InvalidInputError(
            f"frames: up to {MAX_PIXEL_BYTES // samples} of these frames at once."
        )
    return numbers


def _frame(instance: SlideObject, number: int, coding: FrameCoding) -> bytes:
    data = instance.frame(number - 1)
    if not coding.is_decoded:
        return data
    try:
        return decoded(data, size=_size(instance), is_rgb=_is_rgb(instance))
    except MlError as error:
        raise UnavailableError("This frame cannot be decoded.") from error


def _render_frame(instance: SlideObject, number: int, *, as_png: bool) -> bytes:
    data, dataset = instance.frame(number - 1), instance.data()
    try:
        if instance.syntax in DECODED:
            return picture(data, size=_size(instance), is_rgb=_is_rgb(instance), as_png=as_png)
        pixels = plain_pixels(
            data, int(dataset.Rows), int(dataset.Columns), int(dataset.SamplesPerPixel)
        )
        return drawn(pixels, as_png=as_png)
    except MlError as error:
        raise NotAcceptable(f"Frames of {instance.syntax} cannot be rendered: {error}.") from error


def _size(instance: SlideObject) -> tuple[int, int]:
    brief = instance.brief()
    return int(brief.Columns), int(brief.Rows)


def _is_rgb(instance: SlideObject) -> bool:
    return str(instance.data().PhotometricInterpretation) == "RGB"


def _picture_kind(request: Request) -> str:
    kind = picture_kind(parse_accept(accepts(request)))
    if kind is None:
        raise NotAcceptable("Pictures are returned as image/jpeg or image/png.")
    return kind


def _picture(request: Request, data: bytes, name: str, kind: str) -> HttpResponse:
    etag = f'"r-{name}-{kind.rpartition("/")[2]}"'
    response = bytes_response(
        request._request, data, etag=etag, media_type=kind, cache=CACHE_CONTROL
    )
    response["Vary"] = "Accept"
    return response


def _etag(series: Series, instance: SlideObject, frames: str, coding: FrameCoding) -> str:
    """ETag of a frames response; ``frames`` holds digits and commas."""
    numbers = frames.replace(",", ".")
    coding_tag = f"{coding.syntax}-{coding.media_type == OCTETS:d}{coding.in_parts:d}"
    return f'"f-{series.canvas.picture_tag}-{instance.number}-{numbers}-{coding_tag}"'
