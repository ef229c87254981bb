"""Transport of webhooks: checked address, certificate of the host name, and time limit."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from portal.core.errors import InvalidInputError
from portal.webhooks import transport as reaching
from portal.webhooks.transport import post, url_check
from tests.portal.webhooks.conftest import Receiver


def _resolved(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let the name service return these addresses; the returned list has one entry per lookup."""
    requests: list[str] = []
    really = socket.getaddrinfo

    def found(host: str, port: int, *more: Any, **other: Any) -> list[Any]:
        if host in addresses:  # it is looked up no more
            return really(host, port, *more, **other)
        requests.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    monkeypatch.setattr(reaching.socket, "getaddrinfo", found)
    return requests


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "224.0.0.1",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "168.63.129.16",
        "fec0::1",
        "fc00::1",
        "ff0e::1",
        "::",
        "::127.0.0.1",
        "::10.0.0.1",
        "::ffff:0:127.0.0.1",
        "::ffff:0:8.8.8.8",
        "64:ff9b:1::a00:1",
        "64:ff9b:1:7f00:0:100::",
        "64:ff9b::7f00:1",
        "2002:a00:1::",
        "2002:808:808::",
        "2001:0:5ef5:79fb:0:59a:f5ff:fffe",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "100::1",
        "4000::1",
        "192.0.0.8",
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.7",
        "240.0.0.1",
        "255.255.255.255",
    ],
)
def test_a_name_with_an_internal_address_is_refused_even_next_to_a_public_one(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    _resolved(monkeypatch, "93.184.215.14", address)

    def connected(*_: Any, **__: Any) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(reaching.socket, "create_connection", connected)
    answer = post("https://lis.example/", body=b"{}", headers={})
    assert answer.status is None
    assert "private network" in answer.error or "never permitted" in answer.error


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fd00:ec2::254",
        "fd20:ce::254",
        "168.63.129.16",
        "192.0.0.192",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",  # RFC 6052, a prefix of 48 bits
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::",
        "fd00::5efe:a9fe:a9fe",
    ],
)
def test_no_setting_allows_the_metadata_address(settings: Any, address: str) -> None:
    settings.TESSERA_WEBHOOK_NETWORKS = ["0.0.0.0/0", "::/0"]
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(InvalidInputError, match="never permitted"):
        url_check(f"http://{host}/")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://lis.example/", "https://"),
        ("https:///x", "host"),
        ("https://u:p@lis.example/", "user name"),
        ("https://lis.example/#a", "fragment"),
        ("https://lis.example:25/", "port"),
        ("https://lis.example:99999/", "not a URL"),
        ("https://lis.example/ a", "spaces"),
        ("https://10.0.0.1/", "private network"),
        ("http://93.184.215.14/", "http:// is only"),
    ],
)
def test_an_address_that_is_not_good_is_named(url: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        url_check(url)


def test_the_connection_uses_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    requested = _resolved(monkeypatch, "127.0.0.1")
    answer = post(f"http://lis.hospital.example:{receiver.port}/in", body=b"{}", headers={})
    assert (answer.status, requested) == (204, ["lis.hospital.example"])
    assert receiver.got[0][0]["host"] == f"lis.hospital.example:{receiver.port}"


def test_a_redirect_is_an_answer_and_is_not_followed(receiver: Receiver) -> None:
    receiver.answers, receiver.headers = [302], {"Location": receiver.url}
    answer = post(receiver.url, body=b"{}", headers={})
    assert (answer.status, answer.is_ok, len(receiver.got)) == (302, False, 1)


def test_only_the_beginning_of_a_long_answer_is_read(receiver: Receiver) -> None:
    receiver.answers, receiver.body = [500], b"x" * 1_000_000
    answer = post(receiver.url, body=b"{}", headers={})
    assert answer.text == "x" * 500


def test_an_answer_that_drips_is_cut_off(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TESSERA_WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    monkeypatch.setattr(reaching, "TOTAL_S", 0.3)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\n")
                while not over.wait(0.02):
                    try:
                        peer.sendall(b"X-A: b\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        answer = post(f"http://127.0.0.1:{server.getsockname()[1]}/", body=b"{}", headers={})
        over.set()
        thread.join(5)
    assert answer.status is None and "no answer within" in answer.error


@pytest.mark.parametrize(("host", "is_good"), [("lis.example", True), ("other.example", False)])
def test_the_certificate_must_be_of_the_name_and_not_of_the_address(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, is_good: bool
) -> None:
    settings.TESSERA_WEBHOOK_NETWORKS = ["127.0.0.1/32"]
    _resolved(monkeypatch, "127.0.0.1")
    pem = _certificate(tmp_path, "lis.example")
    trusting = ssl.create_default_context(cafile=str(pem))
    monkeypatch.setattr(reaching.ssl, "create_default_context", lambda: trusting)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                peer, _ = server.accept()
                with serving.wrap_socket(peer, server_side=True) as secure:
                    while not secure.recv(4096).endswith(b"{}"):
                        pass
                    secure.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        answer = post(f"https://{host}:{server.getsockname()[1]}/", body=b"{}", headers={})
        thread.join(5)
    assert answer.is_ok == is_good
    assert is_good or "certificate" in answer.error


def _certificate(folder: Path, name: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "tls.pem"
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]
)
def test_public_addresses_are_reached(address: str) -> None:
    assert reaching.refusal(ipaddress.ip_address(address), is_tls=True) is None


@pytest.mark.parametrize(
    ("network", "address"),
    [("10.0.0.0/8", "::ffff:10.0.0.1"), ("fd12::/16", "fd12::5"), ("fec0::/10", "fec0::1")],
)
def test_a_network_that_is_named_is_reached(settings: Any, network: str, address: str) -> None:
    settings.TESSERA_WEBHOOK_NETWORKS = [network]
    assert reaching.refusal(ipaddress.ip_address(address), is_tls=False) is None


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "017700000001"])
def test_other_spellings_of_an_address_are_checked_like_it(host: str) -> None:
    answer = post(f"https://{host}/", body=b"{}", headers={})
    assert "private network" in answer.error
