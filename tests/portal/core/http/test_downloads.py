"""Names of downloads: whole for browsers, harmless for every file system."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from django.http import HttpResponse

from portal.core.http.downloads import attachment


def names(value: str) -> tuple[str, str]:
    """The ASCII name and the whole name, as a browser reads them."""
    match = re.fullmatch(
        r"""attachment; filename="([^"\\]*)"(?:; filename\*=UTF-8''([\w!#$&+.^`|~%-]*))?""", value
    )
    assert match is not None, value
    return match[1], unquote(match[2]) if match[2] else match[1]


@pytest.mark.parametrize(
    ("name", "plain", "full"),
    [
        ("Section 1", "Section 1.svs", "Section 1.svs"),
        ("Schädel Ödem", "Schadel Odem.svs", "Schädel Ödem.svs"),
        ("شريحة", "file.svs", "شريحة.svs"),
        ("切片 7", "7.svs", "切片 7.svs"),
        ("👩‍⚕️", "file.svs", "👩‍⚕️.svs"),
        ("شريحة.png", "file.svs", "شريحة.png.svs"),
        ("polyp 😀.png", "polyp.png.svs", "polyp 😀.png.svs"),
        ("100 % \"a\" 'b'", "100 _ _a_ _b_.svs", "100 % _a_ 'b'.svs"),
        ("", "file.svs", "file.svs"),
    ],
)
def test_the_file_name_is_complete_and_has_an_ascii_form(name: str, plain: str, full: str) -> None:
    value = attachment(name, ".svs", fallback="file")
    assert value.isascii() and value.isprintable()
    found_plain, found_full = names(value)
    assert (found_plain, found_full) == (plain, full)


@pytest.mark.parametrize("name", ["شريحة", "شريحة.png", "😀.jpeg"])
def test_a_suffix_without_a_stem_uses_the_fallback(name: str) -> None:
    plain, full = names(attachment(name, "-rois.csv", fallback="image"))
    assert plain == "image-rois.csv"
    assert full == f"{name}-rois.csv"


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\Windows\\a", "C__Windows_a"),
        ("a\r\nSet-Cookie: x=1", "a Set-Cookie_ x=1"),
        ("evil\u202egpj.exe", "evilgpj.exe"),
        ("a\x00b\x1b(31m", "ab(31m"),
        ("con", "_con"),
        (".hidden ", "hidden"),
        ("x" * 900, "x" * 200),
    ],
)
def test_a_hostile_name_is_made_harmless(name: str, full: str) -> None:
    response = HttpResponse(headers={"Content-Disposition": attachment(name, fallback="file")})
    assert names(response["Content-Disposition"])[1] == full
