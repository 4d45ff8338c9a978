"""robots.txt is parsed according to RFC 9309, even if it is hostile."""

from __future__ import annotations

import time

import pytest

from app.crawl.fetch.robots import MAX_ROBOTS_BYTES, Robots, RobotsRules
from app.crawl.fetch.values import Fetched, NotIndexed, Reason, TryLater

SITE = "https://www.example.com"


class Fetches:
    """A fake fetch that returns a robots.txt or raises."""

    def __init__(self, answer: bytes | NotIndexed):
        self.answer = answer
        self.urls: list[str] = []

    def __call__(
        self, url: str, *, any_type: bool = False, max_bytes: int = 10_485_760, truncate: bool = False
    ) -> Fetched:
        self.urls.append(url)
        assert any_type
        assert truncate
        if isinstance(self.answer, NotIndexed):
            raise self.answer
        return Fetched(url, 200, {}, self.answer[:max_bytes])


def reason(robots: Robots, url: str) -> str:
    with pytest.raises(NotIndexed) as caught:
        robots.check(url)
    return caught.value.reason


class TestRules:
    @pytest.mark.parametrize(
        ("text", "allowed", "refused"),
        [
            ("User-agent: *\nDisallow: /private", "/public", "/private/a"),
            ("User-agent: *\nDisallow: /\n\nUser-agent: sitesearchbot\nDisallow: /no", "/yes", "/no"),
            ("User-agent: SiteSearchBot/2.0\nDisallow: /no", "/yes", "/no"),
            ("User-agent: other\nUser-agent: SiteSearchBot\nDisallow: /no", "/yes", "/no"),
            ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", "/a/c"),
            ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf?x", "/a.pdf"),
            ("User-agent: *\nDisallow: /a%3cd", "/a", "/a%3Cd"),
            ("User-agent: *\nDisallow: /ä", "/a", "/%C3%A4/x"),
            ("user-AGENT : * # all\nDISALLOW :/no # not this\n", "/yes", "/no"),
            ("User-agent: *\r\nDisallow: /no\r\n", "/yes", "/no"),
            ("User-agent: *\nDisallow: /?q=", "/", "/?q=1"),
            ("User-agent: a\nDisallow: /\n\nUser-agent: *\nDisallow: /no", "/yes", "/no"),
        ],
    )
    def test_group_for_our_user_agent_or_for_all_applies(self, text: str, allowed: str, refused: str) -> None:
        rules = RobotsRules(text)

        assert rules.allows(SITE + allowed)
        assert not rules.allows(SITE + refused)

    @pytest.mark.parametrize(
        "between",
        [
            "Content-Signal: search=yes",
            "Host: www.example.com",
            "Sitemap: /sitemap.xml",
            "Request-rate: 1/5",
            "Visit-time: 0100-0500",
            "Crawl-delay: 5",
            "Crawl-delay:",
            "Noindex: /a",
            "<br />",
            "disallow",
            ": /",
            "\N{ZERO WIDTH NO-BREAK SPACE}Disallow: /a",
            "# Disallow: /a",
            "",
        ],
    )
    @pytest.mark.parametrize("agents", [("SiteSearchBot", "*"), ("other", "SiteSearchBot"), ("SiteSearchBot", "other")])
    def test_lines_that_are_not_rules_do_not_end_a_user_agent_group(
        self, agents: tuple[str, str], between: str
    ) -> None:
        first, second = agents
        rules = RobotsRules(f"User-agent: {first}\n{between}\nUser-agent: {second}\n{between}\nDisallow: /private\n")

        assert not rules.allows(f"{SITE}/private")
        assert rules.allows(f"{SITE}/a")

    @pytest.mark.parametrize("rule", ["Allow: /a", "Disallow:", "dissalow: /b", "DISALLOW /b"])
    def test_allow_and_disallow_lines_end_a_user_agent_group(self, rule: str) -> None:
        rules = RobotsRules(f"User-agent: SiteSearchBot\n{rule}\nUser-agent: *\nDisallow: /private\n")

        assert rules.allows(f"{SITE}/private")

    @pytest.mark.parametrize(
        ("text", "delay"),
        [
            ("User-agent: other\nCrawl-delay: 9\nUser-agent: SiteSearchBot\nDisallow: /a", 0.0),
            ("User-agent: SiteSearchBot\nCrawl-delay: 9\nUser-agent: other\nCrawl-delay: 3\nDisallow: /a", 9.0),
            ("User-agent: SiteSearchBot\nUser-agent: other\nCrawl-delay: 9\nDisallow: /a", 9.0),
        ],
    )
    def test_crawl_delay_applies_to_the_user_agents_above_it(self, text: str, delay: float) -> None:
        assert RobotsRules(text).crawl_delay == delay

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_endings_follow_rfc_9309(self, end: str) -> None:
        text = f"User-agent: *{end}Disallow: /a\x0bAllow: /{end}Disallow: /b\u2028c{end}"

        assert not RobotsRules(text).allows(f"{SITE}/a%0BAllow:%20/")
        assert not RobotsRules(text).allows(f"{SITE}/b%E2%80%A8c")
        assert RobotsRules(text).allows(f"{SITE}/b")

    @pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
    def test_partial_byte_order_mark_is_ignored(self, mark: bytes) -> None:
        assert not RobotsRules.read(mark + b"User-agent: *\nDisallow: /no").allows(f"{SITE}/no")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "User-agent: *bot\nDisallow: /",
            "User-agent:\nDisallow: /",
            "User-agent: Site\nDisallow: /",
            "User-agent: SiteSearchBotanist\nDisallow: /",
            "User-agent: Search\nDisallow: /",
            "Disallow: /",
            "User-agent: *\nDisallow:",
            "<!doctype html><p>Not found",
            "User-agent: *\nDisallow: /\nUser-agent: SiteSearchBot\nAllow: /",
        ],
    )
    def test_groups_for_other_user_agents_do_not_apply(self, text: str) -> None:
        assert RobotsRules(text).allows(f"{SITE}/any")

    def test_crawl_delay_of_our_user_agents_group_applies(self) -> None:
        text = "User-agent: *\nCrawl-delay: 5\n\nUser-agent: SiteSearchBot\nCrawl-delay: 0.5\n"

        assert RobotsRules(text).crawl_delay == 0.5
        assert RobotsRules("User-agent: *\nCrawl-delay: soon").crawl_delay == 0.0

    def test_sitemap_urls_are_absolute_and_limited_to_100(self) -> None:
        many = "".join(f"Sitemap: {SITE}/{number}.xml\n" for number in range(500))

        named = RobotsRules(
            "Sitemap: /a.xml\nsitemap: https://WWW.example.com/b.xml\nSitemap: mailto:x\nSitemap: /a.xml"
        )

        assert named.sitemaps(SITE) == (f"{SITE}/a.xml", f"{SITE}/b.xml")
        assert len(RobotsRules(many).sitemaps(SITE)) == 100

    @pytest.mark.parametrize(
        "text",
        [
            "".join(f"User-agent: a{n}\n" for n in range(15_000)) + "".join(f"Disallow: /{n}\n" for n in range(15_000)),
            "User-agent: *\n" + "Disallow: /" + "*a" * 200_000 + "\n",
            "User-agent: SiteSearchBot\nCrawl-delay: 5\n" * 15_000,
            "User-agent: *\n" + "Disallow: /*a*a*a*a*b$\n" * 20_000,
            "User-agent " * 40_000,
            "\0" * 500_000,
        ],
    )
    def test_hostile_robots_txt_is_parsed_in_linear_time(self, text: str) -> None:
        """With quadratic cost this test would take minutes and gigabytes."""
        rules = RobotsRules(text[:512_000])

        assert rules.allows(f"{SITE}/{'a' * 1_000}")
        assert len(rules._parser._user_agents) <= 2


class TestRobots:
    def test_robots_txt_is_fetched_once_per_origin(self) -> None:
        fetch = Fetches(b"User-agent: *\nDisallow: /no")
        robots = Robots(fetch)

        robots.check(f"{SITE}/a")
        robots.check("http://www.example.com/a")
        assert reason(robots, f"{SITE}/no?x") == Reason.ROBOTS

        assert fetch.urls == [f"{SITE}/robots.txt", "http://www.example.com/robots.txt"]

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
    def test_missing_robots_txt_allows_everything(self, status: int) -> None:
        Robots(Fetches(NotIndexed(f"http_{status}", "No."))).check(f"{SITE}/a")

    @pytest.mark.parametrize("why", [Reason.REDIRECT_LOOP, Reason.OTHER_HOST])
    def test_robots_txt_behind_a_broken_redirect_allows_everything(self, why: Reason) -> None:
        Robots(Fetches(NotIndexed(why, "No."))).check(f"{SITE}/a")

    @pytest.mark.parametrize(
        "why", ["http_429", "http_500", "http_503", "timeout", "unreachable", "certificate", "private_address"]
    )
    def test_unreachable_robots_txt_blocks_all_pages_with_the_fetch_reason(self, why: str) -> None:
        """The reason must not be ``ROBOTS``: pages that robots.txt disallows are removed from the index."""
        fetch = Fetches(NotIndexed(why, "No."))
        now = [0.0]
        robots = Robots(fetch, lambda: now[0])

        assert [reason(robots, f"{SITE}/a") for _ in range(5)] == [why] * 5
        assert len(fetch.urls) == 1

        now[0] = 61.0
        fetch.answer = b""
        robots.check(f"{SITE}/a")

    def test_robots_txt_with_retry_after_is_fetched_again_later(self) -> None:
        fetch = Fetches(TryLater("http_503", "Later.", 30))
        robots = Robots(fetch)

        with pytest.raises(TryLater):
            robots.check(f"{SITE}/a")
        fetch.answer = b""
        robots.check(f"{SITE}/a")

    def test_robots_txt_is_read_up_to_500_kib(self) -> None:
        robots = Robots(Fetches(b"#" * 512_000 + b"\nUser-agent: *\nDisallow: /"))

        robots.check(f"{SITE}/a")

    @pytest.mark.parametrize(
        "rule", ["Disallow: /*aab", f"Disallow: /{'*a' * 100}b", f"Disallow: /*{'a' * 99}b{'a' * 99}"]
    )
    def test_hostile_rules_are_matched_in_linear_time(self, rule: str) -> None:
        lines = "".join(f"{rule}{number}\n" for number in range(MAX_ROBOTS_BYTES // (len(rule) + 6)))
        robots = Robots(Fetches(f"User-agent: *\n{lines}".encode()))
        robots.check(f"{SITE}/")
        begun = time.process_time()

        robots.check(f"{SITE}/{'a' * 2_000}")

        assert time.process_time() - begun < 1

    def test_crawl_delay_of_60_seconds_is_respected_and_longer_ones_skip_the_page(self) -> None:
        assert Robots(Fetches(b"User-agent: *\nCrawl-delay: 60")).check(f"{SITE}/a").crawl_delay == 60
        assert reason(Robots(Fetches(b"User-agent: *\nCrawl-delay: 61")), f"{SITE}/a") == Reason.ROBOTS

    def test_byte_order_mark_and_invalid_utf_8_are_ignored(self) -> None:
        robots = Robots(Fetches(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff\nDisallow: /no"))

        assert reason(robots, f"{SITE}/no") == Reason.ROBOTS

    @pytest.mark.parametrize(("size", "held"), [(0, 100), (400_000, 2)])
    def test_robots_cache_is_limited_by_hosts_and_size(self, size: int, held: int) -> None:
        fetch = Fetches(b"#" * size)
        robots = Robots(fetch)
        hosts = [f"https://h{number}.example.com" for number in range(held + 5)]

        for host in [*hosts, *hosts]:
            robots.check(f"{host}/")

        assert len(fetch.urls) == 2 * len(hosts)
        assert list(robots._cache) == hosts[-held:]

    def test_robots_cache_evicts_the_least_recently_used_host(self) -> None:
        fetch = Fetches(b"#" * 400_000)
        robots = Robots(fetch)

        for number in range(5):
            robots.check(f"{SITE}/a")
            robots.check(f"https://h{number}.example.com/")

        assert fetch.urls.count(f"{SITE}/robots.txt") == 1
