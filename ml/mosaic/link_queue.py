"""Links that nobody waits for: found together where that is quicker, kept in their order."""

from __future__ import annotations

from collections.abc import Sequence

from ml.mosaic.direct import DirectAlignment
from ml.mosaic.direct_links import LIKELY_NCC, Aligned, believed, direct_links
from ml.mosaic.direct_pairs import align_pairs, pairs_at_once
from ml.mosaic.links import Link
from ml.mosaic.motion_model import composed_model, motion_generators
from ml.mosaic.views import FrameView
from ml.types import ArrayF64


class LinkQueue:
    """The links of a registration in the order they were asked for.

    On a processor each is found at once; on a GPU ``pairs_at_once`` of them wait for each other.
    """

    def __init__(self, model: str, links: Sequence[Link] = ()) -> None:
        self._model, self._most = model, pairs_at_once()
        self._links: list[Link | None] = list(links)
        self._aligned: list[tuple[int, Aligned]] = []
        self._wanted: list[tuple[int, FrameView, FrameView, ArrayF64]] = []

    def take(self, link: Link) -> None:
        """Add a link that is known already."""
        self._links.append(link)

    def make(self, a: FrameView, b: FrameView, found: DirectAlignment) -> None:
        """Add the link that an alignment stands for."""
        self._aligned.append((self._place(), (a, b, found)))
        self._find_if_full()

    def find(self, a: FrameView, b: FrameView, start: ArrayF64) -> None:
        """Add the link of two views that lie about where ``start`` says, if grey values agree."""
        self._wanted.append((self._place(), a, b, start))
        self._find_if_full()

    def all(self) -> tuple[Link, ...]:
        """Every link that there is."""
        self._find()
        return tuple(link for link in self._links if link is not None)

    def _place(self) -> int:
        self._links.append(None)
        return len(self._links) - 1

    def _find_if_full(self) -> None:
        if len(self._aligned) + len(self._wanted) >= self._most:
            self._find()

    def _find(self) -> None:
        wanted, aligned = self._wanted, self._aligned
        self._wanted, self._aligned = [], []
        if wanted:
            found = align_pairs(
                [(a.direct, b.direct, start) for _, a, b, start in wanted],
                generators=motion_generators(composed_model(self._model)),
                work_shape=wanted[0][1].grey.shape,
                only_finest=True,
            )
            for (place, a, b, _), one in zip(wanted, found, strict=True):
                if (sure := believed(one, LIKELY_NCC)) is not None:
                    aligned.append((place, (a, b, sure)))
        made = direct_links([one for _, one in aligned], model=self._model)
        for (place, _), link in zip(aligned, made, strict=True):
            self._links[place] = link
