"""Damage as disks, networks and attackers do it, seeded: the same seed gives the same file."""

from __future__ import annotations

import random
from collections.abc import Callable

Damage = Callable[[random.Random, bytearray], None]
_EDGE_BYTES = 4_096  # headers and indexes lie at the ends
_NUMBERS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1,
            2**64 - 1)  # fmt: skip


def damaged(rng: random.Random, honest: bytes) -> bytes:
    """A copy with one to three kinds of damage."""
    data = bytearray(honest)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if data:
            rng.choice(_KINDS)(rng, data)
    return bytes(data)


def _flip_bits(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 4, 64))):
        data[_place(rng, len(data))] ^= 1 << rng.randrange(8)


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _number(rng: random.Random, data: bytearray) -> None:
    """A count, length or offset becomes an extreme one, or points about the end of the file."""
    size = rng.choice((1, 2, 4, 4, 8))
    value = rng.choice((*_NUMBERS, len(data), len(data) - 1, rng.randrange(2**32)))
    at = _place(rng, max(1, len(data) - size))
    at -= at % rng.choice((1, 2, 4))
    order = rng.choice(("little", "big"))
    value %= 1 << 8 * size
    data[at : at + size] = value.to_bytes(size, "big" if order == "big" else "little")


def _many_numbers(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.randrange(2, 12)):
        _number(rng, data)


def _overwrite(rng: random.Random, data: bytearray) -> None:
    start, end = _block(rng, data)
    fill = rng.choice((b"\0", b"\xff", None))
    data[start:end] = rng.randbytes(end - start) if fill is None else fill * (end - start)


def _swap(rng: random.Random, data: bytearray) -> None:
    a, end = _block(rng, data)
    length = end - a
    b = rng.randrange(max(1, len(data) - length))
    data[a:end], data[b : b + length] = data[b : b + length], data[a:end]


def _repeat(rng: random.Random, data: bytearray) -> None:
    start, end = _block(rng, data)
    data[start:start] = data[start:end] * rng.randrange(1, 4)


def _remove(rng: random.Random, data: bytearray) -> None:
    start, end = _block(rng, data)
    del data[start:end]


def _block(rng: random.Random, data: bytearray) -> tuple[int, int]:
    start = _place(rng, len(data))
    return start, min(len(data), start + rng.choice((1, 4, 16, 256, 4_096)))


def _place(rng: random.Random, size: int) -> int:
    """Somewhere, two times in three near an end."""
    edge = min(size, _EDGE_BYTES)
    where = rng.randrange(3)
    if where == 0:
        return rng.randrange(size)
    at = min(rng.randrange(edge), rng.randrange(edge))
    return at if where == 1 else size - 1 - at


_KINDS: tuple[Damage, ...] = (
    _flip_bits, _truncate, _number, _number, _many_numbers, _overwrite, _swap, _repeat, _remove,
)  # fmt: skip
