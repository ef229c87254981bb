"""Stage 2, register: pick keyframes by motion, link each to a few before it.

A frame is tracked from the last keyframe by its grey values; one that moved less than
``config.pick_share`` of the frame rides along with it, if one motion explains it
(``ml.mosaic.riding``); every other becomes a keyframe. Keyframes are linked to those
``config.skips`` before them: grey values first, from where the links so far put them, and key
points where these fail. Grey values come first because they are measured to be both faster and
nearer to the truth on thin texture (docs/models/mosaic.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass

import numpy as np

from ml.geometry import box_corners, normalised, transform_points
from ml.keypoints import Descriptor, load_descriptor
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct import DirectAlignment, align_views
from ml.mosaic.direct_links import SURE_NCC, believed, direct_link, nearby_link, refine_link
from ml.mosaic.features import FrameFeatures, describe_view, link_features
from ml.mosaic.growing import GrowingPreview
from ml.mosaic.links import Link
from ml.mosaic.loop_keyframes import LoopKeyframeStore
from ml.mosaic.motion_model import (
    SAMPLE_FRAMES,
    choose_model,
    composed_model,
    motion_generators,
)
from ml.mosaic.registration import KeyTrail, Registration, Tracked, still_holding
from ml.mosaic.riding import may_ride
from ml.mosaic.sources import FrameSource
from ml.mosaic.survey import Survey, usable_frames
from ml.mosaic.views import FrameView, frame_view
from ml.types import ArrayF64, ImageU8, Progress

RESCUE_SKIPS = 3
"""Key points bridge at most this many keyframes where grey values fail."""


def register_frames(
    source: FrameSource,
    survey: Survey,
    *,
    config: MosaicConfig,
    store: LoopKeyframeStore,
    progress: Progress,
    growing: GrowingPreview | None = None,
    earlier: Registration | None = None,
) -> Registration:
    """Link every keyframe to those before it; memory holds the last ``max(skips)`` only.

    Args:
        store: takes the loop keyframes, keyframes whose key points are kept for loops, on disk.
        earlier: of a shorter state of the source; what of it still holds is not done again.
    """
    usable, digest = survey.usable(), survey.fixed_pattern_digest()
    kept = still_holding(earlier, usable, fixed_pattern_digest=digest)
    model = _model(source, survey, config, kept)
    worker = _Registrar(survey, config, store, model, growing)
    first, last = 0, -1
    if kept is not None and kept.motion_model == model and store.go_on_after(kept.loop_keyframes):
        first, last = worker.go_on_after(kept)
    else:
        store.clear()
    for position, rgb in usable_frames(source, survey, first=first):
        if position <= last:
            worker.recall(position, rgb)
            continue
        progress(bisect_left(usable, position), len(usable), "register")
        worker.add(frame_view(position, rgb, survey))
    return worker.registration(digest)


def _model(
    source: FrameSource, survey: Survey, config: MosaicConfig, kept: Registration | None
) -> str:
    """The motion model; that of an earlier registration, where the same frames decided on it."""
    if config.motion_model != "auto":
        return config.motion_model
    if kept is not None and len(kept.taken()) >= SAMPLE_FRAMES:
        return kept.motion_model
    return choose_model(source, survey, config)


@dataclass(slots=True)
class _Keyframe:
    """A recent keyframe; ``H_start_from_key`` maps it to the first one of its component."""

    view: FrameView
    start: int
    H_start_from_key: ArrayF64
    features: FrameFeatures | None = None


class _Registrar:
    """Takes frames one by one."""

    def __init__(
        self,
        survey: Survey,
        config: MosaicConfig,
        store: LoopKeyframeStore,
        model: str,
        growing: GrowingPreview | None,
    ) -> None:
        self.growing, self.transforms = growing, dict[int, ArrayF64]()
        self.config, self.store, self.model = config, store, model
        self.composed_model = composed_model(model)
        self.generators = motion_generators(self.composed_model)
        self.descriptor: Descriptor = load_descriptor(config.descriptor)
        self.recent: deque[_Keyframe] = deque(maxlen=max(config.skips))
        self.links: list[Link] = []
        self.keys: list[int] = []
        self.tracked: list[Tracked] = []
        self.trail: list[KeyTrail] = []
        self.motion = np.eye(3)
        self.loop_keyframe: _Keyframe | KeyTrail | None = None
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
                moved = self._moved(aligned.matrix)
                if moved < self.config.pick_share * self.side_px and may_ride(aligned):
                    self.tracked.append(Tracked(view.position, last.view.position, aligned.matrix))
                    return
        self._add_key(view, aligned)

    def _add_key(self, view: FrameView, aligned: DirectAlignment | None) -> None:
        key = _Keyframe(view, view.position, np.eye(3))
        linked = False
        for skip in (s for s in self.config.skips if s <= len(self.recent)):
            other = self.recent[-skip]
            if linked:
                if other.start == key.start:
                    start = np.linalg.inv(other.H_start_from_key) @ key.H_start_from_key
                    near = nearby_link(
                        key.view, other.view, np.asarray(start, np.float64), model=self.model
                    )
                    if near is not None:
                        self.links.append(near)
                continue
            matrix = self._linked(key, other, aligned if skip == 1 else None, skip=skip)
            if matrix is not None:
                linked = True
                key.start = other.start
                key.H_start_from_key = normalised(other.H_start_from_key @ matrix)
                if skip == 1:
                    self.motion = matrix
        if not linked:
            self.motion = np.eye(3)
        self.keys.append(view.position)
        self.recent.append(key)
        is_loop_keyframe = self._mark(key)
        trail = KeyTrail(
            view.position, key.start, key.H_start_from_key, self.motion, is_loop_keyframe
        )
        self.trail.append(trail)
        if self.growing is not None:
            if not linked:
                self.transforms = {}  # a new component: the preview follows the one that grows
            self.transforms[view.position] = key.H_start_from_key
            self.growing.add(view, self.transforms)

    def _linked(
        self, key: _Keyframe, other: _Keyframe, aligned: DirectAlignment | None, *, skip: int
    ) -> ArrayF64 | None:
        """The motion of the first link of a keyframe: grey values, or key points where they fail.

        It says where the two lie; further links are searched from there.
        """
        if aligned is not None:
            self.links.append(direct_link(key.view, other.view, aligned, model=self.model))
            return aligned.matrix
        link = self._rescued(key, other) if skip <= RESCUE_SKIPS else None
        if link is None:
            return None
        self.links.append(link)
        return link.matrix

    def go_on_after(self, kept: Registration) -> tuple[int, int]:
        """Take up an earlier registration; the keyframes it needs again come by ``recall``.

        Returns:
            Position of the first frame wanted again, and of the last one that was taken.
        """
        self.links, self.keys = list(kept.links), list(kept.keys)
        self.tracked, self.trail = list(kept.tracked), list(kept.trail)
        last, at = kept.taken()[-1], kept.trail[-1]
        self.motion = at.motion if at.position == last else self.tracked[-1].matrix
        self.loop_keyframe = next(
            (key for key in reversed(kept.trail) if key.is_loop_keyframe), None
        )
        recent = kept.trail[-max(self.config.skips) :]
        self.known = {key.position: key for key in recent}
        if self.growing is not None:
            self._show_again(kept)
        return recent[0].position, last

    def recall(self, position: int, rgb: ImageU8) -> None:
        """Take a known frame again, for the links of those that follow."""
        if position in self.known:
            key, view = self.known[position], frame_view(position, rgb, self.survey)
            self.recent.append(_Keyframe(view, key.start, key.H_start_from_key))

    def _show_again(self, kept: Registration) -> None:
        """The growing preview of the component being continued, from its loop keyframes."""
        for key in kept.trail:
            if key.start == key.position:
                self.transforms = {}
            self.transforms[key.position] = key.H_start_from_key
        for position in self.store.positions:
            if position in self.transforms and self.growing is not None:
                self.growing.add(self.store.load(position).view, self.transforms)

    def registration(self, fixed_pattern_digest: str) -> Registration:
        """All that was found."""
        return Registration(
            tuple(self.links),
            tuple(self.keys),
            tuple(self.tracked),
            tuple(self.store.positions),
            self.model,
            tuple(self.trail),
            fixed_pattern_digest,
        )

    def _aligned(
        self, a: FrameView, b: FrameView, start: ArrayF64, least: float
    ) -> DirectAlignment | None:
        found = align_views(
            a.direct,
            b.direct,
            start,
            generators=self.generators,
            work_shape=a.grey.shape,
        )
        return believed(found, least)

    def _rescued(self, key: _Keyframe, other: _Keyframe) -> Link | None:
        """A link by key points, refined by grey values where these then agree."""
        mine, theirs = self._features(key), self._features(other)
        link = link_features(
            mine, theirs, descriptor=self.descriptor, model=self.composed_model, config=self.config
        )
        if link is None:
            return None
        return refine_link(link, key.view, other.view, model=self.model)

    def _features(self, key: _Keyframe) -> FrameFeatures:
        if key.features is None:
            key.features = describe_view(
                key.view, self.descriptor, max_keypoints=self.config.max_keypoints
            )
        return key.features

    def _moved(self, matrix: ArrayF64) -> float:
        shift = transform_points(matrix, self.corners) - self.corners
        return float(np.hypot(*shift.T).max())

    def _mark(self, key: _Keyframe) -> bool:
        """Keep the key points of a keyframe that is far from the last one kept."""
        last = self.loop_keyframe
        if last is not None and last.start == key.start:
            relative: ArrayF64 = np.linalg.inv(last.H_start_from_key) @ key.H_start_from_key
            if self._moved(relative) < self.config.loop_keyframe_share * self.side_px:
                return False
        self.loop_keyframe = key
        self.store.add(self._features(key))
        return True
