"""Client address of a request behind the configured number of proxies."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = "unknown"  # a Unix socket has no address
IPV6_PREFIX = 64  # one subscriber has a whole network of this size


def client_address(request: HttpRequest) -> str:
    """Address seen by the outermost trusted proxy; without proxies, that of the connection.

    Only the last entries of ``X-Forwarded-For`` can be trusted, one for each trusted proxy. With
    fewer entries than trusted proxies the header is ignored.
    """
    direct = _valid(str(request.META.get("REMOTE_ADDR") or ""))
    trusted: int = settings.TESSERA_TRUSTED_PROXIES
    forwarded = str(request.META.get("HTTP_X_FORWARDED_FOR") or "").split(",")
    if trusted < 1 or len(forwarded) < trusted:
        return direct or UNKNOWN
    return _valid(forwarded[-trusted].strip()) or direct or UNKNOWN


def client_network(request: HttpRequest) -> str:
    """Identity of a client: an IPv4 address, or the network of an IPv6 address."""
    address = client_address(request)
    if ":" not in address:
        return address
    network = ipaddress.ip_network(f"{address}/{IPV6_PREFIX}", strict=False)
    return str(network.network_address)


def _valid(text: str) -> str:
    """Normalised address; empty if it is invalid."""
    bare = text.removeprefix("[").partition("]")[0] if text.startswith("[") else text
    if bare.count(":") == 1:  # IPv4 with a port
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
