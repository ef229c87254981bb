"""A single request to an address entered by a user, without side effects on other hosts.

The name is resolved once, all its addresses are checked, and the connection goes to a checked
address, so that a name that resolves differently later has no effect. Redirects are not followed,
proxies of the environment are not used, and the response is read up to a limit and a deadline.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from portal.core.errors import InvalidInputError
from portal.webhooks.models import MAX_ANSWER_CHARS, MAX_URL_CHARS

CONNECT_S, TOTAL_S = 5.0, 15.0  # Standard Webhooks asks receivers to answer within 15 s
MAX_RESPONSE_BYTES = 4096  # bytes of a response; mostly its status matters
MIN_HIGH_PORT = 1024  # below it only 80 and 443, so that mail servers are not reached
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks_of(*names: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(name) for name in names)


NEVER = _networks_of(
    "169.254.0.0/16",  # link-local; metadata of most clouds
    "fe80::/10",
    "fd00:ec2::254/128",  # metadata of Amazon's cloud
    "fd20:ce::254/128",  # of Google's
    "100.100.100.200/32",  # of Alibaba's
    "192.0.0.192/32",  # of Oracle's
    "168.63.129.16/32",  # Azure's host, though it looks public
)
"""Always refused: metadata services that return the machine's own keys."""
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")  # all that IANA has given out to hosts
_NOT_PUBLIC = _networks_of(
    "192.0.0.0/24",  # protocol assignments
    "192.88.99.0/24",  # relays of 6to4
    "2001::/23",  # protocol assignments, Teredo among them
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
)
"""Networks that are not global, in addition to ``is_global`` of Python 3.11."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOW_32 = 0xFFFFFFFF


class RefusedError(Exception):
    """An address that the portal does not connect to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a receiver: status and start of the body, or the reason why there was none."""

    seconds: float
    status: int | None = None
    text: str = ""
    error: str = ""

    @property
    def is_ok(self) -> bool:
        """Return whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300


def url_check(url: str) -> SplitResult:
    """Parts of a permitted URL; a host name is checked when it is called.

    Raises:
        InvalidInputError: names the problem.
    """
    if len(url) > MAX_URL_CHARS or not url.isascii() or any(char.isspace() for char in url):
        raise InvalidInputError(f"url: up to {MAX_URL_CHARS} ASCII characters without spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInputError("url: this is not a URL.") from None
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise InvalidInputError("url: it must begin with https:// and name a host.")
    if parts.username is not None or parts.fragment:
        raise InvalidInputError("url: it must not have a user name or a #fragment.")
    if port is not None and port not in {80, 443} and port < MIN_HIGH_PORT:
        raise InvalidInputError(f"url: the port must be 80, 443, or {MIN_HIGH_PORT} and above.")
    try:
        literal = ipaddress.ip_address(parts.hostname)
    except ValueError:
        return parts  # a host name
    if (problem := refusal(literal, is_tls=parts.scheme == "https")) is not None:
        raise InvalidInputError(f"url: {problem}.")
    return parts


def refusal(address: Address, *, is_tls: bool) -> str | None:
    """Reason to refuse an address; None if it is permitted.

    Permitted are public addresses and networks named by the operator. An address of an unknown kind
    is refused.
    """
    if any(
        candidate in network
        for candidate in (address, *_embedded_ipv4(address))
        for network in NEVER
    ):
        return (
            f"{address} is link-local or an address that gives out credentials of the machine; it "
            "is never permitted"
        )
    reached = _effective_address(address)
    networks = _networks(tuple(settings.TESSERA_WEBHOOK_NETWORKS))
    if any(reached in network for network in networks):
        return None
    if not _is_public(reached):
        return f"{address} is in a private network that this server does not permit"
    return None if is_tls else "http:// is only for private networks that this server permits"


def post(url: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Send one request and read the start of its answer; failures are returned, not raised."""
    began = time.monotonic()
    try:
        parts = url_check(url)
        status, text = _exchange(parts, _check_addresses(parts), body, headers)
    except (RefusedError, InvalidInputError) as error:
        return Answer(time.monotonic() - began, error=str(error))
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return Answer(time.monotonic() - began, error=_words(error, time.monotonic() - began))
    return Answer(time.monotonic() - began, status=status, text=text)


@lru_cache(maxsize=8)
def _networks(names: tuple[str, ...]) -> tuple[Network, ...]:
    return _networks_of(*names)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_V6:
        return False
    is_special = any(address in network for network in _NOT_PUBLIC)
    return address.is_global and not address.is_multicast and not is_special


def _effective_address(address: Address) -> Address:
    """Address that packets go to: an embedded IPv4 address if the system or NAT64 extracts it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & _LOW_32)
    return address.ipv4_mapped or address


def _embedded_ipv4(address: Address) -> list[ipaddress.IPv4Address]:
    """IPv4 addresses that a tunnel or translator would extract from an IPv6 address.

    The last 32 bits (IPv4-mapped, -compatible, -translated, NAT64, ISATAP), those of 6to4, both of
    Teredo, and those of RFC 6052 behind a prefix of 32 to 64 bits, as NAT64's local prefix has.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return []
    bits = int(address)
    embedded = [bits & _LOW_32, bits >> 80 & _LOW_32]
    for prefix in (32, 40, 48, 56, 64):  # bits 64 to 71 are left out
        before = min(32, 64 - prefix)
        high = bits >> (128 - prefix - before) & ((1 << before) - 1)
        low = bits >> (56 - (32 - before)) & ((1 << (32 - before)) - 1)
        embedded.append(high << (32 - before) | low)
    return [*map(ipaddress.IPv4Address, embedded), *(address.teredo or ())]


def _check_addresses(parts: SplitResult) -> list[str]:
    """Addresses of the host; raises an error unless all are permitted."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RefusedError(f"the host name {parts.hostname} is unknown") from None
    texts = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in addresses))
    for text in texts:
        problem = refusal(ipaddress.ip_address(text), is_tls=parts.scheme == "https")
        if problem is not None:
            raise RefusedError(problem)
    return texts


class _Pinned(http.client.HTTPConnection):
    """A connection to checked addresses; TLS still verifies the certificate of the name."""

    def __init__(self, parts: SplitResult, addresses: Sequence[str]) -> None:
        is_tls = parts.scheme == "https"
        self.default_port = 443 if is_tls else 80
        super().__init__(str(parts.hostname), parts.port, timeout=CONNECT_S)
        self._addresses = addresses
        self._tls = ssl.create_default_context() if is_tls else None
        self.was_cut = False

    def connect(self) -> None:
        """Connect to the first address that answers."""
        last_error: OSError = OSError("no address")
        for address in self._addresses:
            try:
                self.sock = socket.create_connection((address, self.port), timeout=self.timeout)
                break
            except OSError as error:
                last_error = error
        else:
            raise last_error
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)
        self.sock.settimeout(TOTAL_S)

    def cut(self) -> None:
        """End the connection from another thread: a slow stream of single bytes never times out."""
        self.was_cut = True
        try:
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _exchange(
    parts: SplitResult, addresses: Sequence[str], body: bytes, headers: Mapping[str, str]
) -> tuple[int, str]:
    connection = _Pinned(parts, addresses)
    deadline = threading.Timer(TOTAL_S, connection.cut)
    deadline.daemon = True
    deadline.start()
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body=body, headers={**headers, "Connection": "close"})
        response = connection.getresponse()
        text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace")
        if connection.was_cut:  # a cut connection looks like a complete response
            raise TimeoutError
        return response.status, text.replace("\0", "")[:MAX_ANSWER_CHARS]
    finally:
        deadline.cancel()
        connection.close()


def _words(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError) or seconds >= TOTAL_S:
        return f"no answer within {TOTAL_S:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"[:200]
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at this address"
    return f"{type(error).__name__}: {error}"[:200]
