"""Write the folder ``sync`` from ``aio``: the same, without an event loop.

``python clients/python/unasync.py``, then ``make lint-fix``, renews it; a test checks it.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "src" / "tessera_client"
WORDS = {
    r"tessera_client\.aio": "tessera_client.sync",
    r"AsyncBaseTransport": "BaseTransport",
    r"AsyncClient": "Client",
    r"AsyncIterator": "Iterator",
    r"__aenter__": "__enter__",
    r"__aexit__": "__exit__",
    r"aclose": "close",
    r"aread": "read",
    r"aiter_bytes": "iter_bytes",
    r"a_(call|sleep)": r"\1",
}
HEAD = "# Written by unasync.py from aio/{name}: change that one.\n"


def unasync(name: str, text: str) -> str:
    """Convert the text of an asynchronous module to a synchronous one."""
    text = re.sub(r"\basync (def|with|for)\b", r"\1", text)
    text = re.sub(r"\bawait ", "", text)
    for word, other in WORDS.items():
        text = re.sub(rf"\b{word}\b", other, text)
    return HEAD.format(name=name) + text


if __name__ == "__main__":
    for module in sorted((FOLDER / "aio").glob("*.py")):
        (FOLDER / "sync" / module.name).write_text(unasync(module.name, module.read_text()))
