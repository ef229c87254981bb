"""ROIs of the demo. Their labels are measured or come with the data; none is made up."""

from __future__ import annotations

import uuid

import numpy as np
from skimage.color import rgb2hed

from ml.imaging.slides import open_slide
from portal.annotations.models import Roi
from portal.annotations.services import roi_create
from portal.archive.models import Canvas, Slide
from portal.archive.storage import resolve
from portal.config.demo.material import Material
from portal.config.demo.people import Cast

ROIS_PER_SLIDE = 6
THUMBNAIL_PX = 512
NAMESPACE = uuid.UUID("6f1d8a44-3f5e-4a55-9b0e-2f4f4c9a7e10")


def marks_draw(slide: Slide, piece: Material, people: Cast) -> list[Roi]:
    """Draw the piece's ROIs on the slide's canvas; drawn once, found afterwards."""
    if not piece.marks or slide.canvas is None:
        return []
    drawn = []
    for name, geometry, label in _shapes(slide.canvas, piece):
        roi_id = uuid.uuid5(NAMESPACE, f"{slide.pk}/{name}")
        known = Roi.objects.visible_to(people.pathologist).filter(pk=roi_id).first()
        drawn.append(
            known
            or roi_create(
                canvas=slide.canvas,
                user=people.pathologist,
                geometry=geometry,
                label=people.labels[label],
                name=name,
                roi_id=roi_id,
            ).roi
        )
    return drawn


def _shapes(canvas: Canvas, piece: Material) -> list[tuple[str, dict[str, object], str]]:
    if piece.marks == "whole":
        width, height = canvas.width_px, canvas.height_px
        box = [[0, 0], [width, 0], [width, height], [0, height], [0, 0]]
        return [("Whole image", {"type": "Polygon", "coordinates": [box]}, piece.label)]
    return _dab_regions(canvas, seed=piece.accession)


def _dab_regions(canvas: Canvas, *, seed: str) -> list[tuple[str, dict[str, object], str]]:
    """Round outlines over the slide, labelled by how much brown (DAB) stain is inside.

    The darker half of the candidates is "DAB rich": measured by colour deconvolution.
    """
    with open_slide(resolve(canvas.pixels_path)) as slide:
        thumbnail = slide.thumbnail(THUMBNAIL_PX)
    dab = rgb2hed(thumbnail)[..., 2]
    scale = canvas.width_px / thumbnail.shape[1]
    random = np.random.default_rng(abs(int(uuid.uuid5(NAMESPACE, seed))) % 2**32)
    radius = 0.11 * min(thumbnail.shape[:2])
    outlines, shares = [], []
    for _ in range(ROIS_PER_SLIDE):
        middle = random.uniform(radius * 1.3, np.array(thumbnail.shape[1::-1]) - radius * 1.3)
        size = radius * random.uniform(0.6, 1.2)
        angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        wobble = 1 + 0.12 * np.sin(3 * angle + random.uniform(0, 6))
        outline = middle + size * wobble[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        rows, columns = np.mgrid[: thumbnail.shape[0], : thumbnail.shape[1]]
        inside = (columns - middle[0]) ** 2 + (rows - middle[1]) ** 2 < size**2
        outlines.append(outline * scale)
        shares.append(float(dab[inside].mean()))
    rich = float(np.median(shares))
    return [
        (f"Region {number}", _polygon(outline), "DAB rich" if share > rich else "DAB poor")
        for number, (outline, share) in enumerate(zip(outlines, shares, strict=True), start=1)
    ]


def _polygon(xy_l0: np.ndarray) -> dict[str, object]:
    ring = [[round(float(x), 2), round(float(y), 2)] for x, y in xy_l0]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
