"""XML as a stream of elements. Entities, DTDs and what never ends are refused (defusedxml)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from xml.sax.saxutils import quoteattr

from portal.annotations.formats.types import FormatError

DEEPEST = 32  # ASAP and CVAT nest five deep
ELEMENT_BYTES = 64 * 2**20  # one element: 100,000 vertices take about 6 MB
_CONTROL = dict.fromkeys({*range(32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF} - {9, 10, 13})


def elements(stream: IO[bytes], *names: str, kind: str) -> Iterator[Any]:
    """Yield each element of these names when it ends, and release it afterwards.

    Args:
        kind: of the document, for messages.
    Raises:
        FormatError: not well-formed, a DTD or entities, too deep, or one element too large.
    """
    from defusedxml import DefusedXmlException, ElementTree

    bounded = _Bounded(stream, kind)
    open_elements: list[Any] = []
    try:
        for event, element in ElementTree.iterparse(
            bounded, events=("start", "end"), forbid_dtd=True
        ):
            if event == "start":
                open_elements.append(element)
                if len(open_elements) > DEEPEST:
                    raise FormatError(f"{kind}: it is nested too deeply.")
                continue
            open_elements.pop()
            is_inside = any(ancestor.tag in names for ancestor in open_elements)
            if element.tag in names and not is_inside:
                yield element
            if not is_inside and open_elements:
                open_elements[-1].remove(element)
                bounded.since = 0
    except ElementTree.ParseError as error:
        raise FormatError(f"{kind}: invalid XML: {error}.") from None
    except DefusedXmlException:
        raise FormatError(
            f"{kind}: it declares a document type or entities, which are not allowed.",
            code="entities-refused",
        ) from None
    except (UnicodeError, LookupError, ValueError) as error:
        raise FormatError(f"{kind}: its text cannot be decoded: {error!s:.80}.") from None


def attribute(value: str) -> str:
    """A value between quotes; what XML cannot hold is left out."""
    return quoteattr(value.translate(_CONTROL))


def text(value: str) -> str:
    """A value between tags; what XML cannot hold is left out."""
    return attribute(value)[1:-1]


class _Bounded:
    """Counts what was read since an element ended: a tag that never ends would fill the memory."""

    def __init__(self, stream: IO[bytes], kind: str) -> None:
        self._stream, self._kind, self.since = stream, kind, 0

    def read(self, size: int) -> bytes:
        """Read like a file; refuse an element that is too large."""
        self.since += size
        if self.since > ELEMENT_BYTES:
            raise FormatError(
                f"{self._kind}: one element is larger than {ELEMENT_BYTES >> 20} MiB."
            )
        return self._stream.read(size)
