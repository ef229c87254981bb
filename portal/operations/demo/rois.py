"""ROIs of the demo, with labels that are measured or come with the data."""

from __future__ import annotations

import uuid

import numpy as np
from scipy.ndimage import uniform_filter

from ml.imaging.tissue.glass import glass_colour, tissue_mask
from ml.types import ArrayBool, ArrayF64, ImageU8
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Slide
from portal.archive.selectors.pixels import canvas_slide_open
from portal.operations.demo.material import DemoFile
from portal.operations.demo.people import Cast

ROIS_PER_SLIDE = 6  # enough for neighbours, few enough to embed in a minute
THUMBNAIL_PX = 512  # tissue is found on it; a larger one gains nothing
TRIES = 2_000  # random circles
TISSUE_GAP_PX = 25  # lumina and fat narrower than this count as tissue
TISSUE_SHARE = 0.98  # of a circle: practically all of it
Circle = tuple[float, float, float]
NAMESPACE = uuid.UUID("6f1d8a44-3f5e-4a55-9b0e-2f4f4c9a7e10")


def rois_draw(slide: Slide, piece: DemoFile, people: Cast) -> list[Roi]:
    """Draw the ROIs on the slide's canvas, or return those of an earlier run."""
    if not piece.regions or slide.canvas is None:
        return []
    drawn = []
    for name, geometry, label in _shapes(slide.canvas, piece):
        roi_id = uuid.uuid5(NAMESPACE, f"{slide.pk}/{name}")
        existing = Roi.objects.visible_to(people.pathologist).filter(pk=roi_id).first()
        drawn.append(
            existing
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


def _shapes(canvas: Canvas, piece: DemoFile) -> list[tuple[str, dict[str, object], str]]:
    if piece.regions == "image":
        width, height = canvas.width_px, canvas.height_px
        box = [[0, 0], [width, 0], [width, height], [0, height], [0, 0]]
        return [("Whole image", {"type": "Polygon", "coordinates": [box]}, piece.label)]
    return _dab_regions(canvas, seed=piece.accession)


def _dab_regions(canvas: Canvas, *, seed: str) -> list[tuple[str, dict[str, object], str]]:
    """Round outlines in the tissue, labelled by the amount of brown (DAB) stain inside.

    The darker half of them is "DAB rich", measured by colour deconvolution.
    """
    from skimage.color import rgb2hed

    with canvas_slide_open(canvas) as slide:
        thumbnail = slide.thumbnail(THUMBNAIL_PX)
    dab = rgb2hed(thumbnail)[..., 2]
    scale = canvas.width_px / thumbnail.shape[1]
    random = np.random.default_rng(uuid.uuid5(NAMESPACE, seed).int % 2**32)
    regions = [
        (_outline(circle, random) * scale, float(dab[_disc(thumbnail, circle)].mean()))
        for circle in _circles(thumbnail, random)
    ]
    rich = float(np.median([share for _, share in regions])) if regions else 0.0
    return [
        (f"Region {number}", _polygon(outline), "DAB rich" if share > rich else "DAB poor")
        for number, (outline, share) in enumerate(regions, start=1)
    ]


def _circles(thumbnail: ImageU8, random: np.random.Generator) -> list[Circle]:
    """Circles (x, y, radius) in pixels of the thumbnail: inside tissue, disjoint."""
    height, width = thumbnail.shape[:2]
    solid = tissue_mask(thumbnail, glass_colour(thumbnail))
    tissue = uniform_filter(solid.astype(float), TISSUE_GAP_PX) > 0.3  # with pale gaps filled
    circles: list[Circle] = []
    for _ in range(TRIES):
        radius = min(height, width) * random.uniform(0.055, 0.12)
        circle = (random.uniform(0, width), random.uniform(0, height), radius)
        is_apart = all(
            np.hypot(circle[0] - x, circle[1] - y) > 1.3 * (radius + r) for x, y, r in circles
        )
        if is_apart and tissue[_disc(thumbnail, circle)].mean() > TISSUE_SHARE:
            circles.append(circle)
        if len(circles) == ROIS_PER_SLIDE:
            break
    return circles


def _disc(image: ImageU8, circle: Circle) -> ArrayBool:
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    x, y, radius = circle
    inside: ArrayBool = (columns - x) ** 2 + (rows - y) ** 2 < radius**2
    return inside


def _outline(circle: Circle, random: np.random.Generator) -> ArrayF64:
    """Slightly uneven ring, like a hand-drawn one: (40, 2)."""
    x, y, radius = circle
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    uneven = radius * (1 + 0.08 * np.sin(2 * angle + random.uniform(0, 6)))
    return np.stack([x + uneven * np.cos(angle), y + uneven * np.sin(angle)], axis=1)


def _polygon(xy_l0: ArrayF64) -> dict[str, object]:
    ring = [[round(float(x), 2), round(float(y), 2)] for x, y in xy_l0]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
