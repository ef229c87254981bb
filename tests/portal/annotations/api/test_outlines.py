"""``POST /canvases/{id}/outline/``: an outline around a click, and who may ask for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from rest_framework.test import APIClient
from shapely import Point
from shapely.geometry import shape

from ml.errors import BadInputError
from ml.imaging.slides.pyramids import write_pyramid
from ml.segmentation.propose import OutlineConfig
from portal.annotations.models import Roi
from portal.annotations.selectors import outlines
from portal.archive.models import Canvas
from portal.archive.storage import files as archive_storage
from portal.labs.models import User

ApiAs = Callable[[User], APIClient]
CENTRE, RADIUS_PX = (420, 380), 110


@pytest.fixture
def drawn(canvas: Canvas, storage: Path) -> Canvas:
    """The canvas with pixels: one gland in pink tissue, and glass at the right."""
    image = np.full((800, 1000, 3), (226, 178, 205), np.uint8)
    cv2.circle(image, CENTRE, RADIUS_PX, (96, 58, 140), -1)
    cv2.circle(image, CENTRE, RADIUS_PX - 24, (243, 240, 242), -1)
    image[:, 700:] = 243
    folder = archive_storage.derived_folder(canvas.pk)
    folder.mkdir(parents=True)
    write_pyramid(image, folder / "slide.tif", mpp=0.5)
    canvas.pixels_path = archive_storage.relative(folder / "slide.tif")
    canvas.save()
    return canvas


def request_outline(api: APIClient, canvas: Canvas, **more: Any) -> Any:
    body = {"x": 430, "y": 390, "window": [-50, -50, 1200, 900]} | more
    return api.post(f"/api/v1/canvases/{canvas.pk}/outline/", body, format="json")


def test_the_gland_under_the_click_is_outlined_in_level_0_pixels(
    drawn: Canvas, annotator: User, api_as: ApiAs
) -> None:
    for window in ([-50, -50, 1200, 900], [150, 130, 690, 640]):
        answer = request_outline(api_as(annotator), drawn, window=window)
        assert answer.status_code == 200, answer.content
        body = answer.json()
        likely = shape(body["geometries"][body["likely"]])
        truth = Point(CENTRE).buffer(RADIUS_PX)
        assert likely.intersection(truth).area / likely.union(truth).area > 0.9
    assert not Roi.objects.exists()  # nothing is drawn before it is accepted


def test_without_an_outline_the_answer_has_a_reason(
    drawn: Canvas, annotator: User, api_as: ApiAs
) -> None:
    api = api_as(annotator)
    glass = request_outline(api, drawn, x=850, y=400, window=[720, 300, 980, 500])
    assert (glass.status_code, glass.json()["code"]) == (400, "no-tissue")
    assert glass.json()["detail"] == "There is no tissue here."
    Canvas.objects.filter(pk=drawn.pk).update(modality="endoscopy")
    flat = request_outline(api, drawn, x=850, y=400, window=[720, 300, 980, 500])
    assert (flat.status_code, flat.json()["code"]) == (400, "no-outline")
    outside = request_outline(api, drawn, x=1100)
    assert outside.status_code == 400
    assert "outside" in outside.json()["detail"]
    assert request_outline(api, drawn, x=1e12).status_code == 400
    assert request_outline(api, drawn, window=[1, 2, 3]).status_code == 400
    assert request_outline(api, drawn, frame={"index": 0}).status_code == 400  # a slide has none


@pytest.mark.parametrize(
    ("modality", "signal"),
    [("histology", "haematoxylin"), ("endoscopy", "lightness")],
)
def test_tissue_is_looked_at_by_its_stain_and_all_else_by_lightness(
    drawn: Canvas,
    annotator: User,
    api_as: ApiAs,
    monkeypatch: pytest.MonkeyPatch,
    modality: str,
    signal: str,
) -> None:
    requests = []

    def propose(*_: Any, config: OutlineConfig) -> Any:
        requests.append(config.signal)
        raise BadInputError("enough")

    monkeypatch.setattr(outlines, "propose_outline", propose)
    Canvas.objects.filter(pk=drawn.pk).update(modality=modality)
    assert request_outline(api_as(annotator), drawn).status_code == 400
    assert requests == [signal]
