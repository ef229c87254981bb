"""What pixels reveal, in sentences that say where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ml.imaging.inspections import Revealing

_NAMED_MOST = 4  # places or times in one sentence; the picture shows the others
_THIRDS = (1 / 3, 2 / 3)


def told_of(found: Sequence[Revealing]) -> list[str]:
    """One sentence for each kind of thing that was seen, without a full stop at the end."""
    told = []
    standing = [one for one in found if one.kind == "text" and one.at_s is None]
    if standing:
        told.append(f"Text in the picture at the {_listed(_place(one) for one in standing)}")
    passing = [one for one in found if one.kind == "text" and one.at_s is not None]
    if passing:
        told.append(f"Text in frames at {_listed(_when(one) for one in passing)}")
    faces = [one for one in found if one.kind == "face"]
    if faces:
        told.append(f"Something that looks like a face at {_listed(_face(one) for one in faces)}")
    outside = [one for one in found if one.kind == "outside"]
    if outside:
        times = _listed(_when(one) for one in outside)
        told.append(f"Frames that look as if taken outside the body at {times}")
    return told


def _place(one: Revealing) -> str:
    """One of nine, from "upper left" to "lower right"."""
    row = sum(one.y + one.height / 2 > edge for edge in _THIRDS)
    column = sum(one.x + one.width / 2 > edge for edge in _THIRDS)
    words = (("upper", "", "lower")[row], ("left", "middle", "right")[column])
    return " ".join(word for word in words if word)


def _when(one: Revealing) -> str:
    seconds = int(one.at_s or 0)
    return f"{seconds // 60}:{seconds % 60:02}"


def _face(one: Revealing) -> str:
    return f"the {_place(one)}" if one.at_s is None else _when(one)


def _listed(words: Iterable[str]) -> str:
    """Each once, as "a, b and c"."""
    once = list(dict.fromkeys(words))
    more = len(once) - _NAMED_MOST
    if more > 0:
        once = [*once[:_NAMED_MOST], f"{more} more"]
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} and {once[-1]}"
