"""The network resolves a host, checks its IP addresses, and connects only to a checked one."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace

import httpcore
import pytest
import trustme

from app.crawl.fetch import network as network_module
from app.crawl.fetch.addresses import IPAddress, parse_url
from app.crawl.fetch.network import (
    CertificateError,
    CheckedBackend,
    Network,
    PrivateAddressError,
    ResolutionError,
    resolve,
    time_limit,
)
from tests.crawl.fetch.hostile_site import PUBLIC, HostileSite, Names, Wires, page, serving
from tests.patience import PATIENCE_SECONDS

Make = Callable[..., Network]


@pytest.fixture
def make() -> Iterator[Make]:
    """Create networks, and close them after the test."""
    made: list[Network] = []

    def make(**options: object) -> Network:
        made.append(Network(**{"private_addresses": False, **options}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def site() -> Iterator[HostileSite]:
    with serving() as site:
        site.answers["/"] = page()
        yield site


def ask(network: Network, url: str) -> int:
    """Read the whole response and return its status."""
    target = parse_url(url)
    with time_limit(20), network.get(target, {"Host": target.host}) as response:
        for _ in response.iter_stream():
            pass
        return response.status


class TestAddresses:
    def test_network_connects_to_the_ip_address_that_it_checked(self, site: HostileSite, make: Make) -> None:
        names, wires = Names(), Wires(site.port)

        assert ask(make(resolver=names, sockets=wires), "http://example.com:8080/") == 200

        assert names.looked_up == ["example.com"]
        assert wires.connected == [(PUBLIC, 8080)]
        assert site.asked[0].headers["host"] == "example.com:8080"

    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:192.168.0.1"])
    def test_hostnames_that_resolve_to_private_addresses_are_rejected(
        self, site: HostileSite, make: Make, address: str
    ) -> None:
        wires = Wires(site.port)

        with pytest.raises(PrivateAddressError):
            ask(make(resolver=Names(example_com=[address]), sockets=wires), "http://example.com/")

        assert wires.connected == []

    @pytest.mark.parametrize("addresses", [f"{PUBLIC} 127.0.0.1", f"127.0.0.1 {PUBLIC}"])
    def test_host_with_one_private_address_among_public_ones_is_rejected(
        self, site: HostileSite, make: Make, addresses: str
    ) -> None:
        wires = Wires(site.port)

        with pytest.raises(PrivateAddressError):
            ask(make(resolver=Names(example_com=[addresses]), sockets=wires), "http://example.com/")

        assert wires.connected == []

    def test_dns_rebinding_to_a_private_address_is_rejected(self, site: HostileSite, make: Make) -> None:
        names, wires = Names(example_com=[PUBLIC, "127.0.0.1"]), Wires(site.port)
        network = make(resolver=names, sockets=wires)
        site.answers["/close"] = page(b"x", "Connection: close")

        ask(network, "http://example.com/close")
        with pytest.raises(PrivateAddressError):
            ask(network, "http://example.com/close")

        assert names.looked_up == ["example.com", "example.com"]
        assert wires.connected == [(PUBLIC, 80)]

    @pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]/", "http://0/", "http://[fd00:ec2::254]/"])
    def test_private_ip_literals_are_rejected_without_a_lookup(self, site: HostileSite, make: Make, url: str) -> None:
        names, wires = Names(), Wires(site.port)

        with pytest.raises(PrivateAddressError):
            ask(make(resolver=names, sockets=wires), url)

        assert (names.looked_up, wires.connected) == ([], [])

    def test_private_addresses_can_be_allowed(self, site: HostileSite, make: Make) -> None:
        network = make(private_addresses=True)

        assert ask(network, f"http://127.0.0.1:{site.port}/") == 200
        assert ask(network, f"http://localhost:{site.port}/") == 200

    def test_next_ip_address_is_tried_when_one_refuses_the_connection(self, site: HostileSite, make: Make) -> None:
        wires = Wires(site.port)
        wires.broken.add("2606:4700::1111")

        assert ask(make(resolver=Names(example_com=[f"2606:4700::1111 {PUBLIC}"]), sockets=wires), "http://example.com")

        assert wires.connected == [("2606:4700::1111", 80), (PUBLIC, 80)]

    def test_unknown_hosts_and_refused_connections_raise_different_errors(self, site: HostileSite, make: Make) -> None:
        wires = Wires(site.port)
        wires.broken.add(PUBLIC)
        network = make(resolver=Names(unknown_example=[""]), sockets=wires)

        with pytest.raises(ResolutionError):
            ask(network, "http://unknown.example/")
        with pytest.raises(httpcore.ConnectError):
            ask(network, "http://example.com/")

    @pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "a..b.example.com", "x" * 300 + ".example"])
    def test_invalid_hostnames_raise_resolution_error(self, make: Make, host: str) -> None:
        with pytest.raises(ResolutionError):
            ask(make(), f"http://{host}/")

    def test_proxy_environment_variables_are_ignored(
        self, site: HostileSite, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        wires = Wires(site.port)

        ask(make(resolver=Names(), sockets=wires), "http://example.com/")

        assert wires.connected == [(PUBLIC, 80)]


class TestConnections:
    def test_connections_are_reused(self, site: HostileSite, make: Make) -> None:
        wires = Wires(site.port)
        network = make(resolver=Names(), sockets=wires)

        for _ in range(3):
            ask(network, "http://example.com/")

        assert len(wires.connected) == 1

    def test_request_is_retried_when_the_server_closes_an_idle_connection(self, site: HostileSite, make: Make) -> None:
        wires = Wires(site.port)
        network = make(resolver=Names(), sockets=wires)
        hang_ups = iter([True])
        site.answers["/once"] = lambda asked: iter(()) if next(hang_ups, False) else page()

        ask(network, "http://example.com/")
        assert ask(network, "http://example.com/once") == 200

        assert site.targets == ["/", "/once", "/once"]
        assert len(wires.connected) == 2

    def test_request_is_not_retried_when_the_server_closes_a_new_connection(
        self, site: HostileSite, make: Make
    ) -> None:
        site.answers["/never"] = lambda asked: iter(())

        with pytest.raises(httpcore.RemoteProtocolError):
            ask(make(resolver=Names(), sockets=Wires(site.port)), "http://example.com/never")

        assert site.targets == ["/never"]

    def test_endless_response_head_raises_a_protocol_error(self, site: HostileSite, make: Make) -> None:
        def endless() -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\n"
            while True:
                yield b"X-More: " + b"x" * 10_000 + b"\r\n"

        site.answers["/"] = lambda asked: endless()

        with pytest.raises(httpcore.RemoteProtocolError):
            ask(make(resolver=Names(), sockets=Wires(site.port)), "http://example.com/")


class TestTime:
    def test_hanging_lookup_times_out(self, make: Make) -> None:
        asked, ended = threading.Event(), threading.Event()

        def hanging(host: str, port: int) -> Sequence[IPAddress]:
            asked.set()
            ended.wait(PATIENCE_SECONDS)
            return []

        with pytest.raises(httpcore.ConnectTimeout), time_limit(0.05):
            ask(make(resolver=hanging), "http://example.com/")
        assert asked.wait(PATIENCE_SECONDS)
        ended.set()

    def test_time_limit_covers_connecting_and_all_reads_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each single read is fast enough, as with a server that sends one byte per second."""
        clock = SimpleNamespace(now=100.0)
        monkeypatch.setattr(network_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
        timeouts: list[float | None] = []

        class Dripping(httpcore.NetworkStream):
            def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
                timeouts.append(timeout)
                clock.now += 1
                return b"x"

        class Drips(httpcore.NetworkBackend):
            def connect_tcp(
                self,
                host: str,
                port: int,
                timeout: float | None = None,
                local_address: str | None = None,
                socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
            ) -> httpcore.NetworkStream:
                clock.now += 10
                return Dripping()

        backend = CheckedBackend(private_addresses=False, resolver=Names(), sockets=Drips())
        with time_limit(30):
            stream = backend.connect_tcp("example.com", 80)
            with pytest.raises(httpcore.ReadTimeout):
                list(iter(lambda: stream.read(10), b""))
        backend.close()

        assert timeouts == [float(left) for left in range(20, 0, -1)]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


class TestCertificates:
    @pytest.fixture
    def trusting(self, authority: trustme.CA) -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    @staticmethod
    def served_with(certificate: trustme.LeafCert) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        return context

    def test_certificate_must_match_the_hostname(
        self, make: Make, authority: trustme.CA, trusting: ssl.SSLContext
    ) -> None:
        asked: list[str | None] = []
        context = self.served_with(authority.issue_cert("example.com"))
        context.sni_callback = lambda connection, name, context: asked.append(name)
        with serving(context) as site:
            site.answers["/"] = page()
            network = make(resolver=Names(), sockets=Wires(site.port), ssl_context=trusting)

            assert ask(network, "https://example.com/") == 200
            assert ask(network, "https://example.com./") == 200
            with pytest.raises(CertificateError, match="mismatch"):
                ask(network, "https://other.example.com/")

        assert asked == ["example.com", "other.example.com"]

    def test_expired_and_untrusted_certificates_are_rejected(
        self, make: Make, authority: trustme.CA, trusting: ssl.SSLContext
    ) -> None:
        ended = authority.issue_cert("example.com", not_after=datetime(2020, 1, 1, tzinfo=UTC))
        for certificate, why in [(ended, "expired"), (trustme.CA().issue_cert("example.com"), "self-signed|issuer")]:
            with serving(self.served_with(certificate)) as site:
                network = make(resolver=Names(), sockets=Wires(site.port), ssl_context=trusting)
                with pytest.raises(CertificateError, match=why):
                    ask(network, "https://example.com/")
            assert site.asked == []

    def test_https_to_a_plain_http_server_is_not_a_certificate_error(self, make: Make, site: HostileSite) -> None:
        with pytest.raises(httpcore.ConnectError) as caught:
            ask(make(resolver=Names(), sockets=Wires(site.port)), "https://example.com/")

        assert not isinstance(caught.value, CertificateError)


def test_system_resolver_finds_localhost_and_rejects_unknown_hosts() -> None:
    assert str(resolve("localhost", 80)[0]) in {"127.0.0.1", "::1"}
    with pytest.raises(socket.gaierror):
        resolve("nowhere.invalid", 80)
