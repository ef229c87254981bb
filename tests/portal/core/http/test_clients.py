from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from portal.core.http.clients import client_address, client_network


def request(peer: str, forwarded: str | None = None) -> Any:
    extra = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    return RequestFactory().get("/", REMOTE_ADDR=peer, **extra)


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "address"),
    [
        (0, "192.0.2.1", None, "192.0.2.1"),
        (0, "192.0.2.1", "203.0.113.9", "192.0.2.1"),  # anybody can send the header
        (1, "10.0.0.1", "203.0.113.9", "203.0.113.9"),
        (1, "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),  # the first was made up
        (2, "10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        (2, "10.0.0.1", "203.0.113.9", "10.0.0.1"),  # came past the outer proxy
        (1, "10.0.0.1", None, "10.0.0.1"),
        (1, "10.0.0.1", "nonsense", "10.0.0.1"),
        (1, "10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        (1, "10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        (1, "10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"),
        (0, "", None, "unknown"),
    ],
)
def test_only_trusted_proxies_set_the_client_address(
    settings: Any, trusted: int, peer: str, forwarded: str | None, address: str
) -> None:
    settings.TESSERA_TRUSTED_PROXIES = trusted
    assert client_address(request(peer, forwarded)) == address


def test_addresses_of_one_ipv6_subscriber_are_one_client(settings: Any) -> None:
    settings.TESSERA_TRUSTED_PROXIES = 0
    assert client_network(request("2001:db8:1:2::77")) == "2001:db8:1:2::"
    assert client_network(request("2001:db8:1:2:ffff::1")) == "2001:db8:1:2::"
    assert client_network(request("192.0.2.1")) == "192.0.2.1"
