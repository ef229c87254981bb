"""Targets of the confined child: text and persons in a file's pixels.

Time and memory depend on no claim of the file: one picture of at most ``LONG_SIDE_PX``, or
``MAX_FRAMES`` frames of at most ``FRAME_SIDE_PX``, are inspected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ml.config import config_from_dict
from ml.imaging.phi_detection.evidence_image import evidence
from ml.imaging.phi_detection.faces import FaceBox, face_boxes
from ml.imaging.phi_detection.identifiers import TextKind, Vocabulary, classify
from ml.imaging.phi_detection.outside_body import outside_frames
from ml.imaging.phi_detection.text import LONG_SIDE_PX, TextLine, read_text
from ml.imaging.resize import reduce_to
from ml.imaging.results import PhiDetectionConfig, PixelFinding, PixelInspection, PixelKind
from ml.imaging.slides.slide import open_slide
from ml.imaging.videos.filmstrip import MAX_FULL_DECODE_FRAMES, evenly, frames_near
from ml.imaging.videos.frame_table_file import load_frame_table
from ml.types import FrameTable, ImageU8, JsonObject, Progress, no_progress

FRAME_SIDE_PX = 1_280
MAX_FRAMES = 16
"""Frames of a video, at even steps: about one second of processor time each."""
MAX_FINDINGS = 20
"""Places reported; a page of text has more."""
MIN_OTHER_SCORE = 0.8
"""Smallest score of text that does not identify: tissue misread as characters scores less."""
EVIDENCE_NAME = "evidence.jpg"
_MIN_OVERLAP = 0.5  # overlap of two lines, of the smaller one
_MAX_TEXT_LETTERS = 200  # of a line that is reported
_DECODED_PIXELS = MAX_FULL_DECODE_FRAMES * 1_920 * 1_080  # of a video decoded from end to end
_FULL_FRAME = (0.0, 0.0, 1.0, 1.0)
_KINDS: tuple[PixelKind, ...] = ("name", "number", "date", "time", "face", "other", "outside_body")
"""The order in which findings are reported."""

Frame = tuple[float, ImageU8]


def detect_in_slide(
    *,
    path: str,
    out_dir: str,
    config: JsonObject,
    progress: Progress = no_progress,
) -> JsonObject:
    """Find text and faces in a slide's overview or a still.

    Args:
        config: ``PhiDetectionConfig`` as JSON.
    Returns:
        ``PixelInspection`` as JSON; a picture of the findings, if any, is written into ``out_dir``.
    """
    search = config_from_dict(PhiDetectionConfig, config)
    with open_slide(path) as slide:
        picture = slide.thumbnail(LONG_SIDE_PX)
    vocabulary = Vocabulary(search.known_words, search.ignored_words)
    findings: list[PixelFinding] = []
    if search.text:
        progress(1, 2, "reading text")
        lines = text_of_frames([picture], vocabulary)
        findings += [_text_finding(line, kind, None) for line, kind, _ in lines]
    if search.faces:
        findings += [_face_finding(box, None) for box in face_boxes(picture)]
    return _result([(finding, picture) for finding in findings], Path(out_dir))


def detect_in_video(
    *,
    path: str,
    out_dir: str,
    frames: str,
    is_long: bool,
    config: JsonObject,
    progress: Progress = no_progress,
) -> JsonObject:
    """Find text, faces and frames outside the body in frames of a video.

    Args:
        frames: Path of the video's frame table; frames at even steps are inspected.
        is_long: Inspect the key frames before them instead.
        config: ``PhiDetectionConfig`` as JSON.
    Returns:
        As ``detect_in_slide``.
    Raises:
        CorruptFileError: As for ``frames_near``.
    """
    search = config_from_dict(PhiDetectionConfig, config)
    frames_read = _frames(path, load_frame_table(frames), is_long=is_long)
    pictures = [frame for _, frame in frames_read]
    vocabulary = Vocabulary(search.known_words, search.ignored_words)
    findings: list[tuple[PixelFinding, ImageU8]] = []
    if search.text:
        for line, kind, numbers in text_of_frames(pictures, vocabulary, progress):
            is_permanent = len(numbers) > len(frames_read) / 2
            at_s = None if is_permanent else frames_read[numbers[0]][0]
            findings.append((_text_finding(line, kind, at_s), frames_read[numbers[0]][1]))
    if search.faces:
        for at_s, frame in frames_read:
            findings += [(_face_finding(box, at_s), frame) for box in face_boxes(frame)]
        for number in outside_frames(pictures):
            at_s, frame = frames_read[number]
            findings.append((PixelFinding("outside_body", *_FULL_FRAME, at_s=at_s), frame))
    return _result(findings, Path(out_dir))


def is_inspected_by_key_frames(frame_count: int, frame_pixels: int) -> bool:
    """Return whether a video is too long to decode, so that its key frames are inspected."""
    return frame_count > MAX_FULL_DECODE_FRAMES or frame_count * frame_pixels > _DECODED_PIXELS


def text_of_frames(
    frames: Sequence[ImageU8], vocabulary: Vocabulary, progress: Progress = no_progress
) -> list[tuple[TextLine, TextKind, list[int]]]:
    """Lines of text in frames, each once for each kind and place.

    Args:
        frames: (H, W, 3) each.
    Returns:
        The line as the first frame shows it, its kind, and the numbers of the frames with text of
        that kind at that place. Text at a place that identifies somebody in another frame is left
        out where it is only misread.
    """
    pages = []
    for number, frame in enumerate(frames):
        progress(number, len(frames), "reading text")
        pages.append(read_text(frame))
    places: list[tuple[TextLine, TextKind, list[int]]] = []
    for number, (page, kinds) in enumerate(zip(pages, classify(pages, vocabulary), strict=True)):
        for line, kind in zip(page, kinds, strict=True):
            if kind is None or (kind == "other" and line.score < MIN_OTHER_SCORE):
                continue
            for known_place, known_kind, numbers in places:
                if (
                    known_kind == kind
                    and frames[numbers[0]].shape == frames[number].shape
                    and known_place.overlap(line) >= _MIN_OVERLAP
                    and number not in numbers
                ):
                    numbers.append(number)
                    break
            else:
                places.append((line, kind, [number]))
    identifying = [line for line, kind, _ in places if kind != "other"]
    return [
        place
        for place in places
        if place[1] != "other"
        or not any(place[0].overlap(identifying_line) > 0 for identifying_line in identifying)
    ]


def _frames(path: str, table: FrameTable, *, is_long: bool) -> list[Frame]:
    """Distinct frames, each with its seconds from the first."""
    images: dict[int, ImageU8] = {}
    indices = sorted(set(evenly(table, MAX_FRAMES)))
    for index, rgb in frames_near(path, table, indices, is_long=is_long):
        if index not in images:
            images[index] = reduce_to(rgb, FRAME_SIDE_PX)
    time_s = table.time_s
    return [(float(time_s[index] - time_s[0]), rgb) for index, rgb in images.items()]


def _text_finding(line: TextLine, kind: TextKind, at_s: float | None) -> PixelFinding:
    place = (line.x, line.y, line.width, line.height)
    return PixelFinding(kind, *place, text=line.text[:_MAX_TEXT_LETTERS], at_s=at_s)


def _face_finding(box: FaceBox, at_s: float | None) -> PixelFinding:
    return PixelFinding("face", box.x, box.y, box.width, box.height, at_s=at_s)


def _result(pairs: Sequence[tuple[PixelFinding, ImageU8]], folder: Path) -> JsonObject:
    pairs = _interleaved_by_kind(pairs)
    if pairs:
        (folder / EVIDENCE_NAME).write_bytes(evidence(pairs))
    findings = tuple(finding for finding, _ in pairs[:MAX_FINDINGS])
    return asdict(PixelInspection(findings, EVIDENCE_NAME if pairs else None))


def _interleaved_by_kind(
    pairs: Sequence[tuple[PixelFinding, ImageU8]],
) -> list[tuple[PixelFinding, ImageU8]]:
    """Findings ordered as the first of each kind, then the second, and so on."""
    counts: Counter[str] = Counter()
    ranked = []
    for pair in pairs:
        kind = pair[0].kind
        ranked.append((counts[kind], _KINDS.index(kind), pair))
        counts[kind] += 1
    return [pair for *_, pair in sorted(ranked, key=lambda row: row[:2])]
