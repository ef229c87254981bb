"""Stage 2, register: pick key frames by motion, link each to a few before it.

A frame is tracked from the last key frame by its grey values; one that moved less than
``config.pick_share`` of the view rides along with it, every other becomes a key frame. Key frames
are linked to those ``config.skips`` before them: grey values first, from where the chain says, and
key points where these fail. Grey values come first because they are measured to be both faster and
nearer to the truth on thin texture (docs/models/mosaic.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from ml.geometry import box_corners, normalised, transform_points
from ml.keypoints import Descriptor, load_descriptor
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct import Alignment, align_views
from ml.mosaic.features import Features, describe_view, is_plausible, link_features
from ml.mosaic.growing import GrowingPreview
from ml.mosaic.links import Link
from ml.mosaic.loop_keyframes import LandmarkStore
from ml.mosaic.motion_model import (
    SAMPLE_FRAMES,
    chained_model,
    choose_model,
    motion_generators,
    nearest_in_model,
)
from ml.mosaic.registration import KeyTrail, Registration, Tracked, still_holding
from ml.mosaic.sources import FrameSource
from ml.mosaic.survey import Survey, usable_frames
from ml.mosaic.views import FrameView, frame_view, log_gain
from ml.types import ArrayF64, ImageU8, Progress

SURE_NCC, LIKELY_NCC = 0.5, 0.36
"""Correlation that a link by grey values needs: alone, or where the chain already says where.
Unrelated views reach 0.3."""

RESCUE_SKIPS = 3
"""Key points bridge at most so many key frames where grey values fail."""

AGREE_PX = 6.0
FULL_INLIERS = 300
"""Inliers that a perfect link by grey values stands for."""


def register_frames(
    source: FrameSource,
    survey: Survey,
    *,
    config: MosaicConfig,
    store: LandmarkStore,
    progress: Progress,
    growing: GrowingPreview | None = None,
    earlier: Registration | None = None,
) -> Registration:
    """Link every key frame to those before it; memory holds the last ``max(skips)`` only.

    Args:
        store: takes the landmarks, key frames whose key points are kept for loops, on disk.
        earlier: of a shorter state of the source; what of it still holds is not done again.
    """
    usable, lens = survey.usable(), survey.lens_digest()
    kept = still_holding(earlier, usable, lens=lens)
    model = _model(source, survey, config, kept)
    worker = _Registrar(survey, config, store, model, growing)
    first, last = 0, -1
    if kept is not None and kept.model == model and store.go_on_after(kept.landmarks):
        first, last = worker.go_on_after(kept)
    else:
        store.clear()
    for position, rgb in usable_frames(source, survey, first=first):
        if position <= last:
            worker.recall(position, rgb)
            continue
        progress(bisect_left(usable, position), len(usable), "register")
        worker.add(frame_view(position, rgb, survey))
    return worker.registration(lens)


def _model(
    source: FrameSource, survey: Survey, config: MosaicConfig, kept: Registration | None
) -> str:
    """The motion model; that of an earlier registration, where the same frames decided on it."""
    if config.model != "auto":
        return config.model
    if kept is not None and len(kept.taken()) >= SAMPLE_FRAMES:
        return kept.model
    return choose_model(source, survey, config)


@dataclass(slots=True)
class _Key:
    """A recent key frame; ``place`` maps it to the start of the unbroken chain it belongs to."""

    view: FrameView
    chain: int
    place: ArrayF64
    features: Features | None = None


class _Registrar:
    """Takes frames one by one."""

    def __init__(
        self,
        survey: Survey,
        config: MosaicConfig,
        store: LandmarkStore,
        model: str,
        growing: GrowingPreview | None,
    ) -> None:
        self.growing, self.places = growing, dict[int, ArrayF64]()
        self.config, self.store, self.model = config, store, model
        self.chained = chained_model(model)
        self.generators = motion_generators(self.chained)
        self.descriptor: Descriptor = load_descriptor(config.descriptor)
        self.recent: deque[_Key] = deque(maxlen=max(config.skips))
        self.links: list[Link] = []
        self.keys: list[int] = []
        self.tracked: list[Tracked] = []
        self.trail: list[KeyTrail] = []
        self.motion = np.eye(3)
        self.landmark: _Key | KeyTrail | None = None
        self.survey, self.known = survey, dict[int, KeyTrail]()
        height, width = survey.mask.shape
        self.side_px = float(max(width, height))
        self.corners = box_corners(0, 0, width - 1, height - 1)

    def add(self, view: FrameView) -> None:
        last = self.recent[-1] if self.recent else None
        aligned = None
        if last is not None:
            aligned = self._aligned(view, last.view, self.motion, SURE_NCC)
            if aligned is None:
                aligned = self._aligned(view, last.view, np.eye(3), SURE_NCC)
            if aligned is not None:
                self.motion = aligned.matrix
                if self._moved(aligned.matrix) < self.config.pick_share * self.side_px:
                    self.tracked.append(Tracked(view.position, last.view.position, aligned.matrix))
                    return
        self._add_key(view, aligned)

    def _add_key(self, view: FrameView, aligned: Alignment | None) -> None:
        key = _Key(view, view.position, np.eye(3))
        linked = False
        for skip in (s for s in self.config.skips if s <= len(self.recent)):
            other = self.recent[-skip]
            link = None
            if skip == 1 and aligned is not None:
                link = direct_link(view, other.view, aligned, model=self.model)
            elif linked and other.chain == key.chain:
                start: ArrayF64 = np.linalg.inv(other.place) @ key.place
                found = self._aligned(view, other.view, start, LIKELY_NCC, is_near=True)
                link = (
                    None
                    if found is None
                    else direct_link(view, other.view, found, model=self.model)
                )
            elif not linked and skip <= RESCUE_SKIPS:
                link = self._rescued(key, other)
            if link is None:
                continue
            self.links.append(link)
            if not linked:
                linked = True
                key.chain, key.place = other.chain, normalised(other.place @ link.matrix)
                if skip == 1:
                    self.motion = link.matrix
        if not linked:
            self.motion = np.eye(3)
        self.keys.append(view.position)
        self.recent.append(key)
        is_landmark = self._mark(key)
        trail = KeyTrail(view.position, key.chain, key.place, self.motion, is_landmark)
        self.trail.append(trail)
        if self.growing is not None:
            if not linked:
                self.places = {}  # a new piece: the preview follows the one that grows
            self.places[view.position] = key.place
            self.growing.add(view, self.places)

    def go_on_after(self, kept: Registration) -> tuple[int, int]:
        """Take up an earlier registration; the key frames it needs again come by ``recall``.

        Returns:
            Position of the first frame wanted again, and of the last one that was taken.
        """
        self.links, self.keys = list(kept.links), list(kept.keys)
        self.tracked, self.trail = list(kept.tracked), list(kept.trail)
        last, at = kept.taken()[-1], kept.trail[-1]
        self.motion = at.motion if at.position == last else self.tracked[-1].matrix
        self.landmark = next((key for key in reversed(kept.trail) if key.is_landmark), None)
        recent = kept.trail[-max(self.config.skips) :]
        self.known = {key.position: key for key in recent}
        if self.growing is not None:
            self._show_again(kept)
        return recent[0].position, last

    def recall(self, position: int, rgb: ImageU8) -> None:
        """Take a known frame again, for the links of those that follow."""
        if position in self.known:
            key, view = self.known[position], frame_view(position, rgb, self.survey)
            self.recent.append(_Key(view, key.chain, key.place))

    def _show_again(self, kept: Registration) -> None:
        """The growing preview of the piece that goes on, from its landmarks."""
        for key in kept.trail:
            if key.chain == key.position:
                self.places = {}
            self.places[key.position] = key.place
        for position in self.store.positions:
            if position in self.places and self.growing is not None:
                self.growing.add(self.store.load(position).view, self.places)

    def registration(self, lens: str) -> Registration:
        """All that was found."""
        return Registration(
            tuple(self.links),
            tuple(self.keys),
            tuple(self.tracked),
            tuple(self.store.positions),
            self.model,
            tuple(self.trail),
            lens,
        )

    def _aligned(
        self, a: FrameView, b: FrameView, start: ArrayF64, least: float, *, is_near: bool = False
    ) -> Alignment | None:
        found = align_views(
            a.direct,
            b.direct,
            start,
            generators=self.generators,
            work_shape=a.grey.shape,
            only_finest=is_near,
        )
        if found is None or found.ncc < least or len(found.xy_a) < 4:
            return None
        return found if is_plausible(found.matrix, found.xy_a) else None

    def _rescued(self, key: _Key, other: _Key) -> Link | None:
        """A link by key points, refined by grey values where these then agree."""
        mine, theirs = self._features(key), self._features(other)
        link = link_features(
            mine, theirs, descriptor=self.descriptor, model=self.chained, config=self.config
        )
        if link is None:
            return None
        return refined(link, key.view, other.view, model=self.model)

    def _features(self, key: _Key) -> Features:
        if key.features is None:
            key.features = describe_view(
                key.view, self.descriptor, max_keypoints=self.config.max_keypoints
            )
        return key.features

    def _moved(self, matrix: ArrayF64) -> float:
        shift = transform_points(matrix, self.corners) - self.corners
        return float(np.hypot(*shift.T).max())

    def _mark(self, key: _Key) -> bool:
        """Keep the key points of a key frame that is far from the last one kept."""
        last = self.landmark
        if last is not None and last.chain == key.chain:
            relative: ArrayF64 = np.linalg.inv(last.place) @ key.place
            if self._moved(relative) < self.config.landmark_share * self.side_px:
                return False
        self.landmark = key
        self.store.add(self._features(key))
        return True


def direct_link(
    a: FrameView, b: FrameView, found: Alignment, *, model: str, kind: str = "direct"
) -> Link:
    """The link that an alignment stands for; perspective is measured here, from the affine one."""
    best = found
    if chained_model(model) != model:
        bent = align_views(
            a.direct,
            b.direct,
            found.matrix,
            generators=motion_generators(model),
            work_shape=a.grey.shape,
            only_finest=True,
        )
        if bent is not None and bent.ncc > found.ncc - 0.02 and len(bent.xy_a) >= 4:
            best = bent
    return Link(
        a.position,
        b.position,
        best.xy_a,
        best.xy_b,
        found.matrix,
        round(FULL_INLIERS * found.ncc * found.overlap) + 1,
        log_gain(a, b, best.xy_a, best.xy_b),
        best.root_info,
        kind,
    )


def refined(link: Link, a: FrameView, b: FrameView, *, model: str) -> Link:
    """A link by key points made exact by grey values; as it was where these do not agree."""
    found = align_views(
        a.direct,
        b.direct,
        link.matrix,
        generators=motion_generators(chained_model(model)),
        work_shape=a.grey.shape,
    )
    if found is None or found.ncc < LIKELY_NCC or len(found.xy_a) < 4:
        return link
    if not is_plausible(found.matrix, found.xy_a) or _apart(found.matrix, link) > AGREE_PX:
        return link
    return replace(direct_link(a, b, found, model=model), inliers=link.inliers)


def revisited(a: FrameView, b: FrameView, start: ArrayF64, *, model: str) -> Link | None:
    """A loop by grey values alone, from where the map puts the views; None: they disagree."""
    chained = chained_model(model)
    found = align_views(
        a.direct,
        b.direct,
        nearest_in_model(normalised(start), chained, a.grey.shape),
        generators=motion_generators(chained),
        work_shape=a.grey.shape,
    )
    if found is None or found.ncc < SURE_NCC or len(found.xy_a) < 4:
        return None
    if not is_plausible(found.matrix, found.xy_a):
        return None
    return direct_link(a, b, found, model=model, kind="loop")


def _apart(matrix: ArrayF64, link: Link) -> float:
    """Median px between where a motion and a link's points say the points go."""
    return float(np.median(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T)))
