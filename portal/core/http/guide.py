"""Headers of the guide's pages, which WhiteNoise serves before any other middleware."""

from __future__ import annotations

from wsgiref.headers import Headers

# The site generator writes scripts and styles into the pages; nothing comes from other hosts.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'self'",
        "object-src 'none'",
    )
)


def guide_headers(headers: Headers, path: str, url: str) -> None:
    """Add a content security policy to a page; other files have no use for one."""
    if path.endswith(".html"):
        headers["Content-Security-Policy"] = POLICY
