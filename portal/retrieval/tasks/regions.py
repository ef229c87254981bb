"""Pixels of regions to vectors; what reaches torch does so inside functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from typing import TYPE_CHECKING

from django.conf import settings
from shapely.geometry import shape

from ml.errors import BadInputError, MlError
from ml.types import ImageU8, Progress
from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder, EncoderKind
from portal.retrieval.services import EncoderFacts

if TYPE_CHECKING:
    from ml.imaging.slides import SlideImage
    from ml.roi import Embedded, RegionEncoder
    from ml.roi.stain import StainEstimate

EmbedRegions = Callable[[Sequence[Roi], Progress], "list[Embedded | BadInputError]"]


def encoder_ready(kind: EncoderKind) -> tuple[RegionEncoder, Encoder]:
    """The network of a kind as the settings name it, and its row."""
    from ml.roi import load_encoder

    network = load_encoder(settings.TESSERA_ENCODERS[kind])
    facts = EncoderFacts(
        name=network.name,
        version=str(network.version),
        config_hash=network.config_hash,
        dim=network.dim,
        kind=kind,
    )
    return network, services.encoder_register(facts=facts, is_default=True)


@contextmanager
def regions_open(network: RegionEncoder, canvas: Canvas) -> Iterator[EmbedRegions]:
    """Embeds ROIs of a canvas, whatever it is, with its file opened once.

    It takes ROIs of this canvas and a progress callback, which may raise to stop it; for each ROI
    it returns the vector, or the error that this ROI alone raised.
    """
    mpp = canvas.mpp
    if canvas.kind == CanvasKind.VIDEO:
        yield lambda rois, progress: _on_frames(network, canvas, rois, progress)
        return
    with canvas_slide_open(canvas) as slide:
        stain = canvas_stain(network, canvas, slide)
        yield lambda rois, progress: network.embed_regions(
            slide, [shape(roi.geometry) for roi in rois], mpp, progress, stain=stain
        )


def canvases_embed(
    network: RegionEncoder, groups: Sequence[Sequence[Roi]], progress: Progress
) -> list[list[Embedded | BadInputError]]:
    """What ``regions_open`` gives for the ROIs of each canvas, patches of all in common batches.

    Args:
        groups: of ROIs of one canvas each.
    Returns:
        For each group as many results; none if its file cannot be opened.
    """
    from ml.roi import SlideRegions

    found: list[list[Embedded | BadInputError]] = [[] for _ in groups]
    slides: dict[int, SlideRegions] = {}
    with ExitStack() as stack:
        for at, rois in enumerate(groups):
            canvas = rois[0].canvas
            with suppress(OSError, MlError):
                if canvas.kind == CanvasKind.VIDEO:
                    found[at] = stack.enter_context(regions_open(network, canvas))(rois, progress)
                    continue
                slide = stack.enter_context(canvas_slide_open(canvas))
                outlines = [shape(roi.geometry) for roi in rois]
                stain = canvas_stain(network, canvas, slide)
                slides[at] = SlideRegions(slide, outlines, canvas.mpp, stain)
        results = network.embed_slides(list(slides.values()), progress)
    return [
        own if at not in slides else results[list(slides).index(at)] for at, own in enumerate(found)
    ]


def _on_frames(
    network: RegionEncoder, canvas: Canvas, rois: Sequence[Roi], progress: Progress
) -> list[Embedded | BadInputError]:
    """Of ROIs on frames of a video; the next frame is decoded while a GPU works on one."""
    from ml.roi import frames_ahead

    runs = [(pts, list(own)) for pts, own in groupby(rois, key=lambda roi: roi.frame_pts)]
    images = (None if pts is None else frame_pixels(canvas, pts) for pts, _ in runs)
    return [
        found
        for image, (_, own) in zip(frames_ahead(images), runs, strict=True)
        for found in _on_frame(network, image, canvas.mpp, own, progress)
    ]


def _on_frame(
    network: RegionEncoder,
    image: ImageU8 | None,
    mpp: float | None,
    rois: Sequence[Roi],
    progress: Progress,
) -> Iterator[Embedded | BadInputError]:
    if image is None:
        yield from (BadInputError("this ROI is on a video but has no frame") for _ in rois)
        return
    for roi in rois:
        try:
            yield network.embed_image(image, shape(roi.geometry), mpp=mpp, progress=progress)
        except BadInputError as error:
            yield error


def canvas_stain(network: RegionEncoder, canvas: Canvas, slide: SlideImage) -> StainEstimate | None:
    """The slide's stains, estimated for its first ROI and stored; None if none are needed."""
    if not network.normalises:
        return None
    from ml.roi.stain import StainConfig, estimate_stain, stain_from_dict, stain_to_dict

    method = network.stain_method
    known = selectors.stain_json(canvas, method=method)
    if known is not None:
        return stain_from_dict(known)
    estimate = estimate_stain(slide, mpp=canvas.mpp, config=StainConfig(method=method))
    services.stain_save(canvas=canvas, method=method, estimate=stain_to_dict(estimate))
    return estimate
