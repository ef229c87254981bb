"""What the front and the API say to each other about a piece that the front writes.

The front holds the body. Before each stretch of it is written, the front asks, with the head of the
request as the client sent it; once it is on the disk, the front reports it and asks for the next::

    front: Held(rest, None)       API: Allowed(begin, end) or a refusal
    front: Held(rest, Landed)     API: the next Allowed, or the answer to the client

Each call is one line of JSON in the header ``PIECE_HEADER``, over the front's own socket.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

PIECE_HEADER = "X-Tessera-Piece"

BROKEN = "broken"
"""Why a stretch ends early: the client went away or sent too slowly."""
BUSY = "busy"
"""Somebody else is writing to the file, or has written since the front asked."""
FULL = "full"
"""The disk has no room left."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be written now, in bytes of the file; with an algorithm, it is hashed too."""

    begin: int
    end: int
    algorithm: str = ""

    def line(self) -> str:
        """As it is sent."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(line: str) -> Allowed:
        """From what was sent."""
        return Allowed(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Landed:
    """What was written of a stretch and lies on the disk, and the file's time after that.

    Attributes:
        mtime_ns: by which the API sees that nobody has written to the file since.
        digest: in hexadecimal digits; empty if no hash was asked for.
        failed: why it ends early; empty if it does not.
    """

    begin: int
    end: int
    mtime_ns: int = 0
    digest: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A body that the front holds: how many bytes are still to write, what was written last."""

    rest: int
    landed: Landed | None = None

    def line(self) -> str:
        """As it is sent."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(line: str) -> Held:
        """From what was sent."""
        said = json.loads(line)
        landed = said["landed"]
        return Held(said["rest"], None if landed is None else Landed(**landed))
