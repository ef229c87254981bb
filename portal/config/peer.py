"""Who is connected, where the front stands between: the address it names becomes the client's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from portal.core.http.files import FRONT

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_PEER = "HTTP_X_TESSERA_PEER"


class BehindFront:
    """WSGI. Only what came over the front's own UNIX socket has no address yet and is believed.

    So the front is no proxy that ``TESSERA_TRUSTED_PROXIES`` would have to count.
    """

    def __init__(self, application: Wsgi) -> None:
        self.application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """WSGI."""
        peer = environ.pop(_PEER, "")
        if peer and not environ.get("REMOTE_ADDR"):
            environ["REMOTE_ADDR"], environ[FRONT] = peer, True
        return self.application(environ, start_response)
