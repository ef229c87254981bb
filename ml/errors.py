"""Errors of ``ml``. Each message states the actual and the expected value."""

from __future__ import annotations


class MlError(Exception):
    """Base of every error that ``ml`` raises on purpose.

    ``code`` is stable and machine-readable; ``str(error)`` is one line fit for a user and holds no
    path of the server.
    """

    code = "ml-error"


class BadInputError(MlError):
    """The input can never work, however often it is tried."""

    code = "bad-input"


class ReaderLostError(MlError, OSError):
    """A process that read pixels for this one ended unexpectedly; a retry may succeed."""

    code = "reader-lost"


class UnsupportedFormatError(BadInputError):
    """The file is not of a kind that Tessera opens."""

    code = "unsupported-format"


class CorruptFileError(BadInputError):
    """The file is of a known kind, but truncated or damaged."""

    code = "corrupt-file"


class TooLargeError(BadInputError):
    """The file or its decoded content exceeds a documented limit."""

    code = "too-large"


class LimitExceededError(BadInputError):
    """A child process that opened the file ran out of its time, CPU or memory limit."""

    code = "limit-exceeded"


class NoVideoStreamError(BadInputError):
    """The container holds no video stream."""

    code = "no-video-stream"


class FrameNotFoundError(BadInputError):
    """No frame has the requested presentation time."""

    code = "frame-not-found"


class EmptyRegionError(BadInputError):
    """A region of interest holds no pixel of the image, or no tissue."""

    code = "empty-region"


class NoTissueError(EmptyRegionError):
    """A point is on glass."""

    code = "no-tissue"


class InvalidGeometryError(BadInputError):
    """A geometry is not a finite polygon or multipolygon."""

    code = "invalid-geometry"


class UnknownNameError(BadInputError):
    """No encoder, descriptor, detector, scheme... of that name."""

    code = "unknown-name"

    def __init__(self, kind: str, name: str, choices: list[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(sorted(choices))}")


class ShapeError(BadInputError):
    """An array has another shape or type than documented."""

    code = "shape"

    def __init__(self, name: str, *, expected: str, actual: str) -> None:
        super().__init__(f"{name}: expected {expected}, got {actual}")


class NotEnoughMatchesError(MlError):
    """Too few correspondences to estimate a transform."""

    code = "not-enough-matches"

    def __init__(self, *, needed: int, actual: int) -> None:
        super().__init__(f"needs at least {needed} matches, got {actual}")
        self.needed, self.actual = needed, actual


class MosaicError(MlError):
    """No mosaic could be built; the message says which stage failed and why."""

    code = "mosaic-failed"


class IndexFormatError(MlError):
    """An index folder is damaged, or belongs to another encoder or dimension."""

    code = "index-format"


class WeightsError(MlError):
    """Weights are missing, damaged, or belong to another architecture."""

    code = "weights"


class MissingDependencyError(MlError):
    """A library that only some of the work needs is not installed."""

    code = "missing-dependency"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the Python package {package!r}, which is not installed:"
            f" pip install 'tessera[{extra}]'"
        )


class CancelledError(MlError):
    """Cancelled by the caller; results written so far are discarded."""

    code = "cancelled"


class IndexUnreachableError(MlError):
    """The server that holds an index does not answer, or says that it cannot."""

    code = "index-unreachable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the index server cannot be reached: {reason}")


class IndexBusyError(MlError):
    """Another writer held an index folder for longer than the caller would wait."""

    code = "index-busy"

    def __init__(self, *, waited_s: float) -> None:
        super().__init__(f"another writer has held the index for {waited_s:g} s; try again later")
