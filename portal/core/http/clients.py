"""Which machine a request comes from, behind as many proxies as the installation says."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = "unknown"  # a socket of this machine has no address
IPV6_PREFIX = 64  # one subscriber has as many addresses as there are below it


def client_address(request: HttpRequest) -> str:
    """The address that the outermost trusted proxy saw; without proxies, that of the connection.

    ``X-Forwarded-For`` is the sender's own invention except for the last entries: each trusted
    proxy appended one. Where fewer are there than proxies are trusted, none is believed.
    """
    direct = _valid(str(request.META.get("REMOTE_ADDR") or ""))
    trusted: int = settings.TESSERA_TRUSTED_PROXIES
    named = str(request.META.get("HTTP_X_FORWARDED_FOR") or "").split(",")
    if trusted < 1 or len(named) < trusted:
        return direct or UNKNOWN
    return _valid(named[-trusted].strip()) or direct or UNKNOWN


def client_network(request: HttpRequest) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    address = client_address(request)
    if ":" not in address:
        return address
    network = ipaddress.ip_network(f"{address}/{IPV6_PREFIX}", strict=False)
    return str(network.network_address)


def _valid(text: str) -> str:
    """The address in one spelling, or nothing."""
    bare = text.removeprefix("[").partition("]")[0] if text.startswith("[") else text
    if bare.count(":") == 1:  # IPv4 with a port
        bare = bare.partition(":")[0]
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
