"""Read the pixels of regions and embed them. Torch is imported inside functions only."""

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
from portal.archive.selectors.frames import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.embeddings import stain_json
from portal.embeddings.services.embeddings import stain_save
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register

if TYPE_CHECKING:
    from ml.imaging.slides.slide import SlideImage
    from ml.roi.embedding import RegionEmbedding
    from ml.roi.protocol import RegionEncoder
    from ml.roi.stain.deconvolution import StainEstimate

EmbedRegions = Callable[[Sequence[Roi], Progress], "list[RegionEmbedding | BadInputError]"]


def encoder_ready(kind: str) -> tuple[RegionEncoder, Encoder]:
    """Network of the configured encoder of a kind, and its row."""
    from ml.roi import load_encoder

    network = load_encoder(settings.TESSERA_ENCODERS[kind])
    facts = EncoderIdentity(
        name=network.name,
        version=str(network.version),
        config_hash=network.config_hash,
        dim=network.dim,
        kind=kind,
    )
    return network, encoder_register(facts=facts, is_default=True)


@contextmanager
def regions_open(network: RegionEncoder, canvas: Canvas) -> Iterator[EmbedRegions]:
    """Open a canvas once and yield a function that embeds ROIs of it.

    The function takes ROIs of this canvas and a progress callback, which may raise to stop it. For
    each ROI it returns the vector, or the error that only this ROI raised.
    """
    mpp = canvas.mpp
    if canvas.kind == CanvasKind.VIDEO:
        yield lambda rois, progress: _embed_on_frames(network, canvas, rois, progress)
        return
    with canvas_slide_open(canvas) as slide:
        stain = canvas_stain(network, canvas, slide)
        yield lambda rois, progress: network.embed_regions(
            slide, [shape(roi.geometry) for roi in rois], mpp, progress, stain=stain
        )


def canvases_embed(
    network: RegionEncoder, groups: Sequence[Sequence[Roi]], progress: Progress
) -> list[list[RegionEmbedding | BadInputError]]:
    """Embed the ROIs of several canvases, with their patches in common batches.

    Args:
        groups: ROIs of one canvas each.
    Returns:
        As many results per group as ROIs; none if the file cannot be opened.
    """
    from ml.roi.batching import SlideRegions

    frame_results: list[list[RegionEmbedding | BadInputError]] = [[] for _ in groups]
    slides: dict[int, SlideRegions] = {}
    with ExitStack() as stack:
        for at, rois in enumerate(groups):
            canvas = rois[0].canvas
            with suppress(OSError, MlError):
                if canvas.kind == CanvasKind.VIDEO:
                    frame_results[at] = stack.enter_context(regions_open(network, canvas))(
                        rois, progress
                    )
                    continue
                slide = stack.enter_context(canvas_slide_open(canvas))
                outlines = [shape(roi.geometry) for roi in rois]
                stain = canvas_stain(network, canvas, slide)
                slides[at] = SlideRegions(slide, outlines, canvas.mpp, stain)
        results = network.embed_slides(list(slides.values()), progress)
    return [
        of_frames if at not in slides else results[list(slides).index(at)]
        for at, of_frames in enumerate(frame_results)
    ]


def _embed_on_frames(
    network: RegionEncoder, canvas: Canvas, rois: Sequence[Roi], progress: Progress
) -> list[RegionEmbedding | BadInputError]:
    """Embed ROIs on frames of a video; the next frame is decoded while a GPU embeds."""
    from ml.roi.batching import prefetched_frames

    runs = [
        (pts, list(frame_rois)) for pts, frame_rois in groupby(rois, key=lambda roi: roi.frame_pts)
    ]
    images = (None if pts is None else frame_pixels(canvas, pts) for pts, _ in runs)
    return [
        embedded
        for image, (_, frame_rois) in zip(prefetched_frames(images), runs, strict=True)
        for embedded in _embed_on_frame(network, image, canvas.mpp, frame_rois, progress)
    ]


def _embed_on_frame(
    network: RegionEncoder,
    image: ImageU8 | None,
    mpp: float | None,
    rois: Sequence[Roi],
    progress: Progress,
) -> Iterator[RegionEmbedding | BadInputError]:
    if image is None:
        yield from (BadInputError("this region is on a video but has no frame") for _ in rois)
        return
    for roi in rois:
        try:
            yield network.embed_image(image, shape(roi.geometry), mpp=mpp, progress=progress)
        except BadInputError as error:
            yield error


def canvas_stain(network: RegionEncoder, canvas: Canvas, slide: SlideImage) -> StainEstimate | None:
    """Stains of a slide, estimated for its first ROI and stored; None if not needed."""
    if not network.normalises:
        return None
    from ml.roi.stain.estimate import StainConfig, estimate_stain
    from ml.roi.stain.storage import stain_from_dict, stain_to_dict

    method = network.stain_method
    stored = stain_json(canvas, method=method)
    if stored is not None:
        return stain_from_dict(stored)
    estimate = estimate_stain(slide, mpp=canvas.mpp, config=StainConfig(method=method))
    stain_save(canvas=canvas, method=method, estimate=stain_to_dict(estimate))
    return estimate
