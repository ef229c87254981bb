"""The rendition a browser plays: h264, 4:2:0, 8 bit, index in front."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ml.errors import CorruptFileError, LimitExceededError
from ml.files import replacing
from ml.imaging.videos.containers import decode_frames, frame_rgb, open_video, time_base_of
from ml.types import Progress, no_progress

CRF = 20  # visually near lossless; the original is kept beside it
_MAX_KEY_INTERVAL = 25
"""A key frame a second or so: quick to seek, the reason to make a rendition in the first place."""
_KEPT_OFFSET_S = 10.0  # players start at 0; a few seconds of lead they bear, a recorder's clock not


@dataclass(frozen=True, slots=True)
class Rendition:
    """What was written.

    Attributes:
        frames: frames written; frame n is frame n of the original.
        offset_pts: taken off every PTS of the original (0 if it starts at 0 to 10 s).
    """

    frames: int
    offset_pts: int


def transcode_h264(
    path: str | Path,
    out_path: str | Path,
    progress: Progress = no_progress,
) -> Rendition:
    """Write an h264 mp4 of every decodable frame with its own time stamp, whole or not at all.

    Time stamps are kept in the original's time base; where the first is negative or beyond ten
    seconds (a recorder's clock) it is taken off all of them. Odd sizes grow by one pixel, repeated
    from the edge; rotation is applied. Audio is left out.

    Args:
        progress: called with (frames done, about how many, "transcoding"); may raise to stop.
    Raises:
        NoVideoStreamError, CorruptFileError: as ``probe_video``.
        LimitExceededError: the encoder cannot take the frames.
    """
    with replacing(Path(out_path)) as temporary:
        try:
            return _transcode(path, temporary, progress)
        except (MemoryError, OSError):  # a full disk, a limit: not the encoder's own refusal
            raise
        except av.error.FFmpegError as error:
            raise LimitExceededError(
                "the video cannot be rewritten for browsers: its frames are too large for the "
                "encoder's memory, or their times are damaged"
            ) from error


def _transcode(path: str | Path, out_path: Path, progress: Progress) -> Rendition:
    with open_video(path) as (source, stream):
        base = time_base_of(stream)
        total = stream.frames or _estimated_frames(stream)
        options = {"movflags": "+faststart", "video_track_timescale": str(_timescale(base))}
        with av.open(str(out_path), "w", format="mp4", options=options) as target:
            out: VideoStream | None = None
            count = offset = 0
            size = (0, 0)
            for pts, frame in decode_frames(source, stream):
                if out is None:
                    size = (frame.width, frame.height)
                    offset = pts if pts * base > _KEPT_OFFSET_S or pts < 0 else 0
                    out = _add_stream(target, stream, _prepared(frame, size), base)
                shown = _prepared(frame, size)
                shown.pts, shown.time_base = pts - offset, base
                target.mux(out.encode(shown))
                count += 1
                progress(min(count, total or count), total or count, "transcoding")
            if out is None:
                raise CorruptFileError("no frame of the video can be decoded")
            target.mux(out.encode(None))
    return Rendition(count, offset)


def _add_stream(
    target: OutputContainer, source: VideoStream, frame: VideoFrame, base: Fraction
) -> VideoStream:
    rate = source.average_rate or Fraction(25)
    if not 1 <= rate <= 240:
        rate = Fraction(25)
    # no B-frames: decoding and presentation order agree, and so do all players on the first frame
    options = {"crf": str(CRF), "preset": "veryfast", "bf": "0", "profile": "high"}
    out = target.add_stream("libx264", rate=rate, options=options)
    out.width, out.height, out.pix_fmt = frame.width, frame.height, "yuv420p"
    out.codec_context.time_base = base
    out.codec_context.gop_size = _MAX_KEY_INTERVAL
    out.codec_context.thread_count = 2
    out.time_base = base
    return out


def _prepared(frame: VideoFrame, size: tuple[int, int]) -> VideoFrame:
    """Upright, even-sided, 4:2:0."""
    width, height = size
    plain = not frame.rotation and width % 2 == 0 and height % 2 == 0
    if plain:
        return frame.reformat(width=width, height=height, format="yuv420p")
    rgb = frame_rgb(frame, size)
    grown = np.pad(rgb, ((0, rgb.shape[0] % 2), (0, rgb.shape[1] % 2), (0, 0)), mode="edge")
    return VideoFrame.from_ndarray(grown, format="rgb24").reformat(format="yuv420p")


def _timescale(base: Fraction) -> int:
    """Ticks per second that hold every PTS of the original exactly."""
    return base.denominator


def _estimated_frames(stream: VideoStream) -> int:
    if not stream.duration or not stream.time_base or not stream.average_rate:
        return 0
    return int(stream.duration * stream.time_base * stream.average_rate)
