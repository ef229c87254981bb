"""A slide looked through: squares over its tissue, embedded in parts."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from shapely.geometry import box

from ml.errors import BadInputError
from ml.types import ArrayF64
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, task
from portal.retrieval import selectors, services
from portal.retrieval.models import EncoderKind
from portal.retrieval.selectors import SAMPLE_KIND, SampleKey
from portal.retrieval.services import SamplePart
from portal.retrieval.tasks.regions import canvas_stain, encoder_ready

if TYPE_CHECKING:
    from ml.roi import Embedded

SQUARES_MOST = 1_000  # with their vectors half a megabyte; a GPU embeds them in seconds
BUDGET_S = 60.0  # of embedding: somebody waits, and any beginning of the squares is a fair sample
PART_S = 2.0  # as of a canvas' ROIs: others who wait for a worker wait no longer
PART_FIRST, PART_MOST = 4, 128

EmbedSquares = Callable[[ArrayF64], "list[Embedded | BadInputError]"]


class _Work:
    """One slide being looked through."""

    def __init__(self, context: JobContext, key: SampleKey, squares: ArrayF64) -> None:
        self.context, self.key, self.squares = context, key, squares
        known = selectors.sample_of(key)
        self.tried, self.seconds = (known.tried, known.seconds) if known else (0, 0.0)
        self.is_complete = known is not None and known.is_complete

    def tell(self, *_: object) -> None:
        """Report progress; raises if the job has to stop."""
        self.context.progress(self.tried, len(self.squares), "sampling the tissue")

    def run(self, embed: EmbedSquares) -> JobResult:
        """All parts that are left."""
        size = PART_FIRST
        while not self.is_complete:
            self.tell()
            some = self.squares[self.tried : self.tried + size]
            began_s = time.perf_counter()
            found = embed(some) if len(some) else []
            took_s = max(time.perf_counter() - began_s, 0.001)
            if not self._keep(some, found, took_s):
                return {"skipped": "its pixel size was changed"}
            self.is_complete = self._is_done
            size = max(1, min(int(len(some) * PART_S / took_s), 2 * size, PART_MOST))
            if not self.is_complete:
                self.context.give_way()
        return {"squares": self.tried, "of": len(self.squares)}

    @property
    def _is_done(self) -> bool:
        return self.tried >= len(self.squares) or self.seconds >= BUDGET_S

    def _keep(self, some: ArrayF64, found: list[Embedded | BadInputError], took_s: float) -> bool:
        """False if the slide was given another pixel size in the meantime: nothing was written."""
        self.tried, self.seconds = self.tried + len(some), self.seconds + took_s
        pairs = zip(some, found, strict=True)
        vectors = [(b, one.vector) for b, one in pairs if not isinstance(one, BadInputError)]
        part = SamplePart(
            boxes=np.array([b for b, _ in vectors], np.float64).reshape(-1, 4),
            vectors=np.array([v for _, v in vectors], np.float32),
            tried=len(some),
            total=len(self.squares),
            seconds=took_s,
            is_last=self._is_done,
        )
        with self.context.effect() if self._is_done else self.context.part():
            if not services.is_picture_of(self.key.canvas, lock=True):
                return False
            services.sample_add(self.key, part)
        return True


@task(SAMPLE_KIND, queue="gpu", title="Sample the tissue of a slide", retry_on=(OSError,))
def tissue_sample(context: JobContext, *, canvas_id: str, side_px: int, user_id: str) -> JobResult:
    """Embed squares of a slide's tissue until all are, or until ``BUDGET_S`` is spent.

    A part lasts once it is written: what continues later does the rest.
    """
    canvas = selectors.canvas_to_embed(uuid.UUID(canvas_id))
    if canvas is None:
        return {"skipped": "deleted"}
    network, encoder = encoder_ready(EncoderKind.HISTOLOGY)
    from ml.roi.stain import tissue_squares

    with canvas_slide_open(canvas) as slide:
        squares = tissue_squares(slide, side_px, most=SQUARES_MOST)
        stain = canvas_stain(network, canvas, slide) if len(squares) else None
        work = _Work(context, SampleKey(canvas, encoder, side_px, uuid.UUID(user_id)), squares)

        def embed(some: ArrayF64) -> list[Embedded | BadInputError]:
            outlines = [box(*one) for one in some]
            return network.embed_regions(slide, outlines, canvas.mpp, work.tell, stain=stain)

        return work.run(embed)
