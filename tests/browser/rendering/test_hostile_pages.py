"""Pages that try to hang or fill the browser, to leave it, or to reach hosts behind the crawler's back."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from app.crawl.fetch.browser import Browser
from app.crawl.fetch.page_rendering import BrowserError, BrowserFailed, RenderedPage, Rendering
from app.crawl.fetch.values import Fetched, NotIndexed, Reason

URL = "https://www.example.com/"
WRITE = "document.body.append('rendered')"


class Recorder:
    """Records the URLs that pages request, and serves none."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def __call__(self, url: str, deadline: float) -> Fetched:
        self.requested.append(url)
        raise NotIndexed(Reason.PRIVATE_ADDRESS, "The host has an IP address that is not public.")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def page(script: str, head: str = "") -> Fetched:
    body = f"<!doctype html><html><head>{head}</head><body><script>{script}</script></body></html>"
    return Fetched(URL, 200, {"content-type": "text/html"}, body.encode())


@pytest.fixture(scope="module")
def hasty_browser(chromium_path: str) -> Iterator[Browser]:
    """A browser that gives pages little time and memory."""
    with closing(Browser(chromium_path, "bot", max_seconds=20.0, max_bytes=400 * 1_048_576)) as browser:
        yield browser


@pytest.mark.parametrize(
    "script",
    [
        "while (true);",
        "function again() { Promise.resolve().then(again) } again()",
        "while (true) alert('again')",
        "const kept = []; while (true) kept.push(new Uint8Array(1 << 26).fill(1))",
        "for (;;) document.body.append(document.createElement('div'))",
    ],
)
def test_page_that_hangs_or_fills_memory_is_aborted_and_the_next_page_is_rendered(
    hasty_browser: Browser, recorder: Recorder, script: str
) -> None:
    started_at = time.monotonic()
    with pytest.raises(BrowserError):
        hasty_browser.render(page(script), recorder)
    assert time.monotonic() - started_at < 60
    assert "rendered" in render_patiently(hasty_browser, page(WRITE), recorder).html


def contexts(browser: Browser) -> int:
    assert browser._chromium is not None
    return len(browser._chromium.contexts)


@pytest.mark.parametrize(
    "script",
    [
        f"{WRITE}; document.documentElement.remove()",
        "setTimeout(() => document.documentElement.remove(), 300)",
        "setTimeout(() => location = 'about:blank', 300)",
        "document.replaceChild(document.createElement('div'), document.documentElement)",
        "setInterval(() => { document.open(); document.write('<p>again'); document.close() }, 10)",
    ],
)
def test_page_that_removes_its_content_while_read_leaves_no_browser_context(
    patient_browser: Browser, recorder: Recorder, script: str
) -> None:
    render_patiently(patient_browser, page(WRITE), recorder)
    chromium = patient_browser._chromium
    with suppress(BrowserError):
        patient_browser.render(page(f"setInterval(() => 0); {script}"), recorder)
    assert patient_browser._chromium is chromium
    assert contexts(patient_browser) == 0


def test_context_is_closed_after_an_unexpected_error(
    patient_browser: Browser, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    render_patiently(patient_browser, page(WRITE), recorder)

    async def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Rendering, "_settle", fail)
    with pytest.raises(ZeroDivisionError):
        patient_browser.render(page(WRITE), recorder)
    assert contexts(patient_browser) == 0


def end_by(browser: Browser, number: int) -> None:
    assert browser._process_id is not None
    os.killpg(browser._process_id, number)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_page_is_rendered_once_more_if_the_browser_dies_or_hangs(chromium_path: str, number: int) -> None:
    with closing(Browser(chromium_path, "bot", max_seconds=10.0)) as browser:
        attempts: list[str] = []

        def fetch(url: str, deadline: float) -> Fetched:
            attempts.append(url)
            if len(attempts) == 1:
                end_by(browser, number)
            return Fetched(url, 200, {"content-type": "text/javascript"}, WRITE.encode())

        target = page("document.head.append(Object.assign(document.createElement('script'), {src: '/app.js'}))")
        assert "rendered" in browser.render(target, fetch).html
        assert len(attempts) == 2


def test_browser_that_dies_twice_is_to_blame_and_not_the_page(chromium_path: str) -> None:
    with closing(Browser(chromium_path, "bot")) as browser:
        attempts: list[str] = []

        def fetch(url: str, deadline: float) -> Fetched:
            attempts.append(url)
            end_by(browser, signal.SIGKILL)
            raise NotIndexed(Reason.UNREACHABLE, "No response.")

        with pytest.raises(BrowserFailed):
            browser.render(page("fetch('/data')"), fetch)
        assert len(attempts) == 2


@pytest.mark.parametrize("milliseconds", [800, 1500, 2500])
def test_text_that_a_timer_draws_is_read(patient_browser: Browser, recorder: Recorder, milliseconds: int) -> None:
    rendered = render_patiently(patient_browser, page(f"setTimeout(() => {{ {WRITE} }}, {milliseconds})"), recorder)
    assert "</script>rendered" in rendered.html


def test_resource_that_fails_unexpectedly_does_not_hold_the_page(
    patient_browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(url: str, deadline: float) -> Fetched:
        raise ZeroDivisionError

    script = f"fetch('/data').catch(() => {{ {WRITE} }})"
    assert "</script>rendered" in patient_browser.render(page(script), fail).html
    assert "ZeroDivisionError" in caplog.text


def render_patiently(browser: Browser, target: Fetched, recorder: Recorder) -> RenderedPage:
    """Render a page, and repeat it if the machine was too busy the first time."""
    try:
        return browser.render(target, recorder)
    except BrowserError:
        return browser.render(target, recorder)


def test_page_that_uses_a_gigabyte_of_memory_ends_the_browser_before_the_time_limit(
    patient_browser: Browser, recorder: Recorder
) -> None:
    grow = "const kept = []; function grow() { kept.push(new Uint8Array(1 << 26).fill(1)); setTimeout(grow) } grow()"
    with pytest.raises(BrowserError, match="too much memory"):
        patient_browser.render(page(grow), recorder)


@pytest.mark.parametrize(
    "script",
    [
        f"alert('stop'); confirm('stop'); prompt('stop'); print(); {WRITE}",
        f"for (let i = 0; i < 50; i++) window.open('https://popup.example.com/' + i); {WRITE}",
        f"setInterval(() => {{ for (let i = 0; i < 100; i++) document.body.dataset.i = Math.random() }}, 10); {WRITE}",
        f"const link = document.createElement('a'); link.href = '/file.zip'; link.download = ''; link.click(); {WRITE}",
        f"addEventListener('beforeunload', event => event.preventDefault()); {WRITE}",
        f"Element.prototype.__defineGetter__('outerHTML', () => 'lie'); String.prototype.slice = () => 'lie'; {WRITE}",
    ],
)
def test_page_with_dialogs_and_other_interruptions_is_rendered(
    patient_browser: Browser, recorder: Recorder, script: str
) -> None:
    rendered = render_patiently(patient_browser, page(script), recorder)
    assert "</script>rendered" in rendered.html


def test_page_that_navigates_in_a_loop_is_rendered_and_its_targets_are_reported(
    patient_browser: Browser, recorder: Recorder
) -> None:
    script = f"{WRITE}; let i = 0; setInterval(() => location = '/' + (i++ % 3), 20); location.reload()"
    rendered = render_patiently(patient_browser, page(script), recorder)
    assert "</script>rendered" in rendered.html
    assert {f"{URL}0", f"{URL}1", f"{URL}2"} <= set(rendered.navigations)
    assert recorder.requested == []


def test_page_may_make_a_hundred_requests_and_only_for_some_resource_types(
    patient_browser: Browser, recorder: Recorder
) -> None:
    script = """
    for (let i = 0; i < 300; i++) fetch('/data/' + i).catch(() => 0);
    fetch('/post', {method: 'POST', body: 'x'}).catch(() => 0);
    navigator.sendBeacon('/beacon', 'x');
    new Image().src = '/image.png';
    new EventSource('/events');
    document.body.append(Object.assign(document.createElement('iframe'), {src: '/frame'}));
    navigator.serviceWorker?.register('/worker.js').catch(() => 0);
    """
    render_patiently(patient_browser, page(script), recorder)
    assert {url for url in recorder.requested if not url.startswith(f"{URL}data/")} == set()
    assert 0 < len(set(recorder.requested)) <= 100


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """Listen on a loopback port, TCP and UDP, and record what arrives."""
    arrived: list[str] = []
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(tcp.getsockname())

    def accept() -> None:
        while True:
            try:
                connection, _ = tcp.accept()
            except OSError:
                return
            arrived.append("tcp")
            connection.close()

    def receive() -> None:
        while True:
            try:
                data, _ = udp.recvfrom(2048)
            except OSError:
                return
            arrived.append(f"udp {data[:20]!r}")

    for target in (accept, receive):
        threading.Thread(target=target, daemon=True).start()
    try:
        yield tcp.getsockname()[1], arrived
    finally:
        # A blocked call does not notice that its socket is closed.
        tcp.shutdown(socket.SHUT_RDWR)
        tcp.close()
        udp.close()


ESCAPES = """
const at = '127.0.0.1:PORT', web = 'http://' + at;
const attempt = step => { try { Promise.resolve(step()).catch(() => 0) } catch { } };
attempt(() => fetch(web + '/fetch'));
attempt(() => fetch(web + '/no-cors', {mode: 'no-cors'}));
attempt(() => fetch('http://169.254.169.254/latest/meta-data/'));
attempt(() => fetch('http://[::1]:PORT/'));
attempt(() => fetch('http://localhost:PORT/'));
attempt(() => new WebSocket('ws://' + at));
attempt(() => new EventSource(web));
attempt(() => new WebTransport('https://' + at).ready);
attempt(() => navigator.sendBeacon(web + '/beacon', 'x'));
attempt(() => new Worker(URL.createObjectURL(new Blob([
  `fetch('${web}/worker'); new WebSocket('ws://${at}'); importScripts('${web}/imported.js')`]))));
attempt(() => new SharedWorker(URL.createObjectURL(new Blob([`fetch('${web}/shared')`]))));
attempt(() => { window.open(web + '/popup') });
attempt(() => { new Image().src = web + '/image' });
attempt(() => {
  const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:' + at}, {urls: 'turn:' + at + '?transport=tcp',
    username: 'u', credential: 'c'}]});
  peer.createDataChannel('x');
  return peer.createOffer().then(offer => peer.setLocalDescription(offer));
});
for (const tag of ['iframe', 'embed', 'object', 'link', 'video', 'audio', 'form']) attempt(() => {
  const element = document.createElement(tag);
  element.src = element.data = element.href = element.action = web + '/' + tag;
  element.rel = 'prefetch';
  document.body.append(element);
  element.submit?.();
});
"""
HINTS = (
    "".join(
        f'<link rel="{kind}" href="http://127.0.0.1:PORT/{kind}" as="script">'
        for kind in (
            "preconnect",
            "dns-prefetch",
            "prefetch",
            "preload",
            "modulepreload",
            "prerender",
            "icon",
            "manifest",
        )
    )
    + '<script type="speculationrules">'
    + '{"prefetch": [{"urls": ["http://127.0.0.1:PORT/s"], "eagerness": "immediate"}]}</script>'
)


def test_rendered_page_cannot_reach_a_port_of_this_machine(patient_browser: Browser, recorder: Recorder) -> None:
    with listening() as (port, arrived):
        target = page(ESCAPES.replace("PORT", str(port)), HINTS.replace("PORT", str(port)))
        render_patiently(patient_browser, target, recorder)
        time.sleep(1.0)
        assert arrived == []
    # The crawler's fetcher, which rejects such addresses, makes the request.
    assert f"http://127.0.0.1:{port}/fetch" in recorder.requested
    assert "http://169.254.169.254/latest/meta-data/" in recorder.requested


def test_rendered_pages_share_no_cookies_storage_or_cache(patient_browser: Browser, recorder: Recorder) -> None:
    show = "document.body.append(`[${document.cookie}|${localStorage.length}]`)"
    store = f"document.cookie = 'a=1'; localStorage.b = 2; {show}"
    assert "[a=1|1]" in render_patiently(patient_browser, page(store), recorder).html
    assert "[|0]" in render_patiently(patient_browser, page(show), recorder).html


def test_browser_that_cannot_be_started_raises_browser_error(recorder: Recorder) -> None:
    with closing(Browser("/nonexistent/chromium", "bot")) as browser, pytest.raises(BrowserError, match="started"):
        browser.render(page(WRITE), recorder)
    with closing(Browser("ws://127.0.0.1:9", "bot")) as browser, pytest.raises(BrowserError, match="started"):
        browser.render(page(WRITE), recorder)


def test_closing_the_browser_leaves_no_process(chromium_path: str, recorder: Recorder) -> None:
    def running() -> set[str]:
        return {
            path.name for path in Path("/proc").glob("[0-9]*") if b"--proxy-server=http://127.0.0.1:9" in command(path)
        }

    def command(folder: Path) -> bytes:
        try:
            return (folder / "cmdline").read_bytes()
        except OSError:
            return b""

    before = running()
    browser = Browser(chromium_path, "bot")
    render_patiently(browser, page(WRITE), recorder)
    assert running() > before
    browser.close()
    ends = time.monotonic() + 10
    while running() - before and time.monotonic() < ends:
        time.sleep(0.1)
    assert running() - before == set()
