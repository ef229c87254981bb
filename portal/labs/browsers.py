"""Browser names from the ``User-Agent`` header."""

from __future__ import annotations

# The first match counts: browsers also name the browsers they are derived from.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("python", "Python"),
)
_SYSTEMS = (
    ("Windows", "Windows"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS", "macOS"),
    ("Android", "Android"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """Name such as ``Firefox on Linux``, of the parts that are known."""
    browser = next((name for sign, name in _BROWSERS if sign in user_agent), "Unknown browser")
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    return f"{browser} on {system}" if system else browser
