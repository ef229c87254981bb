"""What a client may take: time, bytes, connections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """Limits of one front process.

    Attributes:
        head_s: from the connection, or the first byte of a request, to the end of its headers.
        idle_s: a kept connection without a request.
        gap_s: between two parts of a body.
        rate_bytes_s: a body that comes more slowly than this after ``gap_s`` is refused.
        write_s: a client that takes nothing of its answer for so long is cut off.
        queue_s: a request that waits for its turn longer than this is answered 503.
        head_bytes: of request line and headers together.
        buffer_bytes: a body up to this is complete before a call begins; a larger one is streamed.
        write_bytes: of an answer that wait for the client before the call is held up.
        connections, per_address: open at once, all together and from one address (0: no limit).
        calls: requests that the API works on at once; bulk: of these, with streamed bodies.
        queue: requests that wait for their turn.
        landings: large pieces of uploads that are written at once, none of which takes a call.
    """

    head_s: float = 15
    idle_s: float = 60
    gap_s: float = 20
    rate_bytes_s: float = 2048
    write_s: float = 60
    queue_s: float = 30
    head_bytes: int = 32 * 1024
    buffer_bytes: int = 2**20
    write_bytes: int = 2**20
    connections: int = 4000
    per_address: int = 500
    calls: int = 4
    bulk: int = 2
    queue: int = 500
    landings: int = 16
