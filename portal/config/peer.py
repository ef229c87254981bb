"""Who is connected, when the front is in between: the address it names becomes the client's.

What the front says about a body that it writes itself is believed along with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from portal.core.http.files import FRONT, HELD

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_PEER = "HTTP_X_TESSERA_PEER"
_PIECE = "HTTP_X_TESSERA_PIECE"


class BehindFront:
    """WSGI. Only what came over the front's own UNIX socket has no address yet and is believed.

    So the front is not a proxy that ``TESSERA_TRUSTED_PROXIES`` would have to count.
    """

    def __init__(self, application: Wsgi) -> None:
        self.application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """WSGI."""
        peer, piece = environ.pop(_PEER, ""), environ.pop(_PIECE, "")
        if peer and not environ.get("REMOTE_ADDR"):
            environ["REMOTE_ADDR"], environ[FRONT] = peer, True
            environ[HELD] = piece
        return self.application(environ, start_response)
