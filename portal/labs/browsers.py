"""A browser's name as its owner knows it, from what it says of itself."""

from __future__ import annotations

# The first that occurs counts: browsers name those that they descend from as well.
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
    """``Firefox on Linux``; the parts that are known."""
    browser = next((name for sign, name in _BROWSERS if sign in user_agent), "Unknown browser")
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    return f"{browser} on {system}" if system else browser
