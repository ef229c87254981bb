"""Stage 2, register: pick keyframes by motion, link each to a few before it.

A frame is tracked from the last keyframe by its grey values; one that moved less than
``config.pick_share`` of the frame is placed by that keyframe, if one planar motion explains it (see
``planarity``); every other becomes a keyframe. Keyframes are linked to those
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
from ml.keypoints import load_descriptor
from ml.keypoints.descriptors.registry import Descriptor
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct.alignment import DirectAlignment, align_views
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey, usable_frames
from ml.mosaic.frames.views import FrameView, frame_view
from ml.mosaic.preview import GrowingPreview
from ml.mosaic.registration.direct_links import (
    SURE_NCC,
    direct_link,
    nearby_link,
    plausible_alignment,
    refine_link,
)
from ml.mosaic.registration.features import FrameFeatures, describe_view, link_features
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.loop_keyframes import LoopKeyframeStore
from ml.mosaic.registration.motion_model import (
    SAMPLE_FRAMES,
    choose_model,
    composed_model,
    motion_generators,
)
from ml.mosaic.registration.planarity import is_planar_motion
from ml.mosaic.registration.result import KeyTrail, Registration, Tracked, valid_part
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
        store: takes the loop keyframes, keyframes whose key points are stored on disk for loops.
        earlier: of a shorter state of the source; its valid part is not computed again.
    """
    usable, digest = survey.usable(), survey.fixed_pattern_digest()
    valid = valid_part(earlier, usable, fixed_pattern_digest=digest)
    model = _model(source, survey, config, valid)
    worker = _Registrar(survey, config, store, model, growing)
    first, last = 0, -1
    if valid is not None and valid.motion_model == model and store.resume(valid.loop_keyframes):
        first, last = worker.resume(valid)
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
    source: FrameSource, survey: Survey, config: MosaicConfig, earlier: Registration | None
) -> str:
    """The motion model; that of an earlier registration, where the same frames decided on it."""
    if config.motion_model != "auto":
        return config.motion_model
    if earlier is not None and len(earlier.positions()) >= SAMPLE_FRAMES:
        return earlier.motion_model
    return choose_model(source, survey, config)


@dataclass(slots=True)
class _Keyframe:
    """A recent keyframe; ``H_start_from_key`` maps it to the first one of its component."""

    view: FrameView
    start: int
    H_start_from_key: ArrayF64
    features: FrameFeatures | None = None


class _Registrar:
    """Registers frames one by one, in their order."""

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
        self.survey, self.earlier_keys = survey, dict[int, KeyTrail]()
        height, width = survey.mask.shape
        self.side_px = float(max(width, height))
        self.corners = box_corners(0, 0, width - 1, height - 1)

    def add(self, view: FrameView) -> None:
        """Register the next frame: tracked from the last keyframe, or a keyframe of its own.

        It is tracked if it aligns with the last keyframe by a planar motion that is small.
        """
        last = self.recent[-1] if self.recent else None
        aligned = None
        if last is not None:
            aligned = self._align(view, last.view, self.motion, SURE_NCC)
            if aligned is None:
                aligned = self._align(view, last.view, np.eye(3), SURE_NCC)
            if aligned is not None:
                self.motion = aligned.matrix
                moved = self._motion_px(aligned.matrix)
                if moved < self.config.pick_share * self.side_px and is_planar_motion(aligned):
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
            matrix = self._first_link(key, other, aligned if skip == 1 else None, skip=skip)
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
        is_loop_keyframe = self._store_if_distant(key)
        trail = KeyTrail(
            view.position, key.start, key.H_start_from_key, self.motion, is_loop_keyframe
        )
        self.trail.append(trail)
        if self.growing is not None:
            if not linked:
                self.transforms = {}  # a new component: the preview follows the one that grows
            self.transforms[view.position] = key.H_start_from_key
            self.growing.add(view, self.transforms)

    def _first_link(
        self, key: _Keyframe, other: _Keyframe, aligned: DirectAlignment | None, *, skip: int
    ) -> ArrayF64 | None:
        """The motion of the first link of a keyframe: grey values, or key points where they fail.

        Further links are searched from the position that it gives.
        """
        if aligned is not None:
            self.links.append(direct_link(key.view, other.view, aligned, model=self.model))
            return aligned.matrix
        link = self._link_by_points(key, other) if skip <= RESCUE_SKIPS else None
        if link is None:
            return None
        self.links.append(link)
        return link.matrix

    def resume(self, earlier: Registration) -> tuple[int, int]:
        """Resume from an earlier registration; the keyframes it needs again come by ``recall``.

        Returns:
            Position of the first frame needed again, and of the last one registered.
        """
        self.links, self.keys = list(earlier.links), list(earlier.keys)
        self.tracked, self.trail = list(earlier.tracked), list(earlier.trail)
        last, trail_end = earlier.positions()[-1], earlier.trail[-1]
        self.motion = trail_end.motion if trail_end.position == last else self.tracked[-1].matrix
        self.loop_keyframe = next(
            (key for key in reversed(earlier.trail) if key.is_loop_keyframe), None
        )
        recent = earlier.trail[-max(self.config.skips) :]
        self.earlier_keys = {key.position: key for key in recent}
        if self.growing is not None:
            self._restore_preview(earlier)
        return recent[0].position, last

    def recall(self, position: int, rgb: ImageU8) -> None:
        """Reload a keyframe of the earlier registration, so that the next frames can link to it."""
        if position in self.earlier_keys:
            key, view = self.earlier_keys[position], frame_view(position, rgb, self.survey)
            self.recent.append(_Keyframe(view, key.start, key.H_start_from_key))

    def _restore_preview(self, earlier: Registration) -> None:
        """Rebuild the preview of the component being continued from its loop keyframes."""
        for key in earlier.trail:
            if key.start == key.position:
                self.transforms = {}
            self.transforms[key.position] = key.H_start_from_key
        for position in self.store.positions:
            if position in self.transforms and self.growing is not None:
                self.growing.add(self.store.load(position).view, self.transforms)

    def registration(self, fixed_pattern_digest: str) -> Registration:
        """Registration of the frames so far."""
        return Registration(
            tuple(self.links),
            tuple(self.keys),
            tuple(self.tracked),
            tuple(self.store.positions),
            self.model,
            tuple(self.trail),
            fixed_pattern_digest,
        )

    def _align(
        self, a: FrameView, b: FrameView, start: ArrayF64, min_ncc: float
    ) -> DirectAlignment | None:
        alignment = align_views(
            a.direct,
            b.direct,
            start,
            generators=self.generators,
            work_shape=a.grey.shape,
        )
        return plausible_alignment(alignment, min_ncc)

    def _link_by_points(self, key: _Keyframe, other: _Keyframe) -> Link | None:
        """Link two keyframes by key points, refined by grey values if these agree."""
        features, other_features = self._features(key), self._features(other)
        link = link_features(
            features,
            other_features,
            descriptor=self.descriptor,
            model=self.composed_model,
            config=self.config,
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

    def _motion_px(self, matrix: ArrayF64) -> float:
        shift = transform_points(matrix, self.corners) - self.corners
        return float(np.hypot(*shift.T).max())

    def _store_if_distant(self, key: _Keyframe) -> bool:
        """Store the key points of a keyframe far from the last stored one; True if stored."""
        last = self.loop_keyframe
        if last is not None and last.start == key.start:
            relative: ArrayF64 = np.linalg.inv(last.H_start_from_key) @ key.H_start_from_key
            if self._motion_px(relative) < self.config.loop_keyframe_share * self.side_px:
                return False
        self.loop_keyframe = key
        self.store.add(self._features(key))
        return True
