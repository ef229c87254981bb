"""Detect a document's format from its first bytes; file name and content type are ignored."""

from __future__ import annotations

import re

HEAD_BYTES = 64 * 2**10  # comments and a document type may precede the root element
_FIRST_KEY = re.compile(rb'\{\s*"([^"\\]{0,64})"\s*:')
_ROOT = re.compile(  # possessive: no document makes it backtrack
    rb"(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\])?\s*>|\s)*+<([A-Za-z_][\w.-]*)", re.DOTALL
)


def head_clean(head: bytes) -> bytes:
    """Remove the byte order mark and leading space."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def first_key(head: bytes) -> str:
    """The first name in a JSON object; empty if there is none."""
    match = _FIRST_KEY.match(head)
    return match[1].decode("utf-8", "replace") if match else ""


def root_name(head: bytes) -> str:
    """The root element of an XML document; empty if there is none."""
    match = _ROOT.match(head)
    return match[1].decode() if match else ""
