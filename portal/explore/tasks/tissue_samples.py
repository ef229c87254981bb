"""Job that samples a slide: squares over its tissue, embedded in parts."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from shapely.geometry import box

from ml.errors import BadInputError
from ml.types import ArrayF64
from portal.archive.models import Modality
from portal.archive.selectors.pixels import canvas_slide_open
from portal.core.tasks import JobContext, JobResult, job_task
from portal.embeddings.selectors.embeddings import canvas_to_embed
from portal.embeddings.services.embeddings import canvas_is_unchanged
from portal.embeddings.tasks.regions import canvas_stain, encoder_ready
from portal.explore.selectors.similar_regions import SAMPLE_KIND, SampleKey, sample_of
from portal.explore.services.similar_regions import SamplePart, sample_add

if TYPE_CHECKING:
    from ml.roi.embedding import RegionEmbedding

MAX_SQUARES = 1_000  # half a megabyte of vectors
BUDGET_S = 60.0  # for embedding; the squares are in random order, so any part is a fair sample
PART_S = 2.0  # duration of a part, and so the longest wait of urgent jobs
FIRST_PART, MAX_PART = 4, 128

EmbedSquares = Callable[[ArrayF64], "list[RegionEmbedding | BadInputError]"]


class _Sampling:
    """Sampling of one slide."""

    def __init__(self, context: JobContext, key: SampleKey, squares: ArrayF64) -> None:
        self.context, self.key, self.squares = context, key, squares
        sample = sample_of(key)
        self.tried, self.seconds = (sample.tried, sample.seconds) if sample else (0, 0.0)
        self.is_complete = sample is not None and sample.is_complete

    def report_progress(self, *_: object) -> None:
        """Report progress; raises if the job has to stop."""
        self.context.progress(self.tried, len(self.squares), "sampling the tissue")

    def run(self, embed: EmbedSquares) -> JobResult:
        """Embed all remaining parts."""
        size = FIRST_PART
        while not self.is_complete:
            self.report_progress()
            squares = self.squares[self.tried : self.tried + size]
            began_s = time.perf_counter()
            embedded = embed(squares) if len(squares) else []
            took_s = max(time.perf_counter() - began_s, 0.001)
            if not self._save(squares, embedded, took_s):
                return {"skipped": "its pixel size was changed"}
            self.is_complete = self._is_done
            size = max(1, min(int(len(squares) * PART_S / took_s), 2 * size, MAX_PART))
            if not self.is_complete:
                self.context.give_way()
        return {"squares": self.tried, "of": len(self.squares)}

    @property
    def _is_done(self) -> bool:
        return self.tried >= len(self.squares) or self.seconds >= BUDGET_S

    def _save(
        self, squares: ArrayF64, embedded: list[RegionEmbedding | BadInputError], took_s: float
    ) -> bool:
        """Save a part; False if the slide has changed and nothing was written."""
        self.tried, self.seconds = self.tried + len(squares), self.seconds + took_s
        pairs = zip(squares, embedded, strict=True)
        vectors = [
            (b, result.vector) for b, result in pairs if not isinstance(result, BadInputError)
        ]
        part = SamplePart(
            boxes=np.array([b for b, _ in vectors], np.float64).reshape(-1, 4),
            vectors=np.array([v for _, v in vectors], np.float32),
            tried=len(squares),
            total=len(self.squares),
            seconds=took_s,
            is_last=self._is_done,
        )
        with self.context.effect() if self._is_done else self.context.part():
            if not canvas_is_unchanged(self.key.canvas, lock=True):
                return False
            sample_add(self.key, part)
        return True


@job_task(SAMPLE_KIND, queue="gpu", title="Sample the tissue of a slide", retry_on=(OSError,))
def tissue_sample(context: JobContext, *, canvas_id: str, side_px: int, user_id: str) -> JobResult:
    """Embed squares of a slide's tissue until all are done, or ``BUDGET_S`` is spent.

    Each part is committed: after an interruption, the next attempt continues.
    """
    canvas = canvas_to_embed(uuid.UUID(canvas_id))
    if canvas is None:
        return {"skipped": "deleted"}
    network, encoder = encoder_ready(Modality.HISTOLOGY)
    from ml.roi.stain.squares import tissue_squares

    with canvas_slide_open(canvas) as slide:
        squares = tissue_squares(slide, side_px, max_count=MAX_SQUARES)
        stain = canvas_stain(network, canvas, slide) if len(squares) else None
        work = _Sampling(context, SampleKey(canvas, encoder, side_px, uuid.UUID(user_id)), squares)

        def embed(squares: ArrayF64) -> list[RegionEmbedding | BadInputError]:
            outlines = [box(*bounds) for bounds in squares]
            return network.embed_regions(
                slide, outlines, canvas.mpp, work.report_progress, stain=stain
            )

        return work.run(embed)
