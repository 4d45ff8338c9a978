"""robots.txt is read as RFC 9309 says, however hostile it is."""

from __future__ import annotations

import pytest

from app.crawl.fetch.robots import Robots, Rules
from app.crawl.fetch.values import Fetched, NotIndexed, Reason, TryLater

SITE = "https://www.example.com"


class Fetches:
    """A fetch that gives a robots.txt, or fails."""

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
    def test_the_group_of_our_token_or_of_all_holds(self, text: str, allowed: str, refused: str) -> None:
        rules = Rules(text)

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
    def test_only_rules_end_a_group(self, agents: tuple[str, str], between: str) -> None:
        first, second = agents
        rules = Rules(f"User-agent: {first}\n{between}\nUser-agent: {second}\n{between}\nDisallow: /private\n")

        assert not rules.allows(f"{SITE}/private")
        assert rules.allows(f"{SITE}/a")

    @pytest.mark.parametrize("rule", ["Allow: /a", "Disallow:", "dissalow: /b", "DISALLOW /b"])
    def test_rules_end_a_group(self, rule: str) -> None:
        rules = Rules(f"User-agent: SiteSearchBot\n{rule}\nUser-agent: *\nDisallow: /private\n")

        assert rules.allows(f"{SITE}/private")

    @pytest.mark.parametrize(
        ("text", "delay"),
        [
            ("User-agent: other\nCrawl-delay: 9\nUser-agent: SiteSearchBot\nDisallow: /a", 0.0),
            ("User-agent: SiteSearchBot\nCrawl-delay: 9\nUser-agent: other\nCrawl-delay: 3\nDisallow: /a", 9.0),
            ("User-agent: SiteSearchBot\nUser-agent: other\nCrawl-delay: 9\nDisallow: /a", 9.0),
        ],
    )
    def test_a_delay_is_for_the_agents_above_it(self, text: str, delay: float) -> None:
        assert Rules(text).crawl_delay == delay

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_lines_end_as_rfc_9309_says(self, end: str) -> None:
        text = f"User-agent: *{end}Disallow: /a\x0bAllow: /{end}Disallow: /b\u2028c{end}"

        assert not Rules(text).allows(f"{SITE}/a%0BAllow:%20/")
        assert not Rules(text).allows(f"{SITE}/b%E2%80%A8c")
        assert Rules(text).allows(f"{SITE}/b")

    @pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
    def test_a_part_of_a_byte_order_mark_is_none_of_the_first_line(self, mark: bytes) -> None:
        assert not Rules.read(mark + b"User-agent: *\nDisallow: /no").allows(f"{SITE}/no")

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
    def test_the_groups_of_others_do_not(self, text: str) -> None:
        assert Rules(text).allows(f"{SITE}/any")

    def test_the_delay_is_ours(self) -> None:
        text = "User-agent: *\nCrawl-delay: 5\n\nUser-agent: SiteSearchBot\nCrawl-delay: 0.5\n"

        assert Rules(text).crawl_delay == 0.5
        assert Rules("User-agent: *\nCrawl-delay: soon").crawl_delay == 0.0

    def test_sitemaps_are_absolute_and_few(self) -> None:
        many = "".join(f"Sitemap: {SITE}/{number}.xml\n" for number in range(500))

        named = Rules("Sitemap: /a.xml\nsitemap: https://WWW.example.com/b.xml\nSitemap: mailto:x\nSitemap: /a.xml")

        assert named.sitemaps(SITE) == (f"{SITE}/a.xml", f"{SITE}/b.xml")
        assert len(Rules(many).sitemaps(SITE)) == 100

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
    def test_a_hostile_file_costs_no_more_than_its_length(self, text: str) -> None:
        """What grows with its square would take minutes here, and gigabytes."""
        rules = Rules(text[:512_000])

        assert rules.allows(f"{SITE}/{'a' * 1_000}")
        assert len(rules._parser._user_agents) <= 2


class TestRobots:
    def test_each_host_is_asked_once(self) -> None:
        fetch = Fetches(b"User-agent: *\nDisallow: /no")
        robots = Robots(fetch)

        robots.check(f"{SITE}/a")
        robots.check("http://www.example.com/a")
        assert reason(robots, f"{SITE}/no?x") == Reason.ROBOTS

        assert fetch.urls == [f"{SITE}/robots.txt", "http://www.example.com/robots.txt"]

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
    def test_no_robots_txt_allows_all(self, status: int) -> None:
        Robots(Fetches(NotIndexed(f"http_{status}", "No."))).check(f"{SITE}/a")

    @pytest.mark.parametrize("why", [Reason.REDIRECT_LOOP, Reason.OTHER_HOST])
    def test_a_redirect_that_leads_nowhere_is_no_robots_txt(self, why: Reason) -> None:
        Robots(Fetches(NotIndexed(why, "No."))).check(f"{SITE}/a")

    @pytest.mark.parametrize(
        "why", ["http_500", "http_503", "timeout", "unreachable", "certificate", "private_address"]
    )
    def test_a_robots_txt_that_cannot_be_read_forbids_all_for_its_own_reason(self, why: str) -> None:
        """The reason must not be that of a page which robots.txt forbids: those are removed."""
        fetch = Fetches(NotIndexed(why, "No."))
        now = [0.0]
        robots = Robots(fetch, lambda: now[0])

        assert [reason(robots, f"{SITE}/a") for _ in range(5)] == [why] * 5
        assert len(fetch.urls) == 1

        now[0] = 61.0
        fetch.answer = b""
        robots.check(f"{SITE}/a")

    def test_a_host_that_asks_to_wait_is_waited_for(self) -> None:
        fetch = Fetches(TryLater("http_503", "Later.", 30))
        robots = Robots(fetch)

        with pytest.raises(TryLater):
            robots.check(f"{SITE}/a")
        fetch.answer = b""
        robots.check(f"{SITE}/a")

    def test_only_500_kib_are_read(self) -> None:
        robots = Robots(Fetches(b"#" * 512_000 + b"\nUser-agent: *\nDisallow: /"))

        robots.check(f"{SITE}/a")

    def test_a_delay_of_a_minute_is_kept_and_a_longer_one_skips_the_page(self) -> None:
        assert Robots(Fetches(b"User-agent: *\nCrawl-delay: 60")).check(f"{SITE}/a").crawl_delay == 60
        assert reason(Robots(Fetches(b"User-agent: *\nCrawl-delay: 61")), f"{SITE}/a") == Reason.ROBOTS

    def test_a_byte_order_mark_and_bytes_that_are_no_text_are_no_matter(self) -> None:
        robots = Robots(Fetches(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff\nDisallow: /no"))

        assert reason(robots, f"{SITE}/no") == Reason.ROBOTS

    @pytest.mark.parametrize(("size", "held"), [(0, 100), (400_000, 2)])
    def test_the_rules_of_few_hosts_are_held(self, size: int, held: int) -> None:
        fetch = Fetches(b"#" * size)
        robots = Robots(fetch)
        hosts = [f"https://h{number}.example.com" for number in range(held + 5)]

        for host in [*hosts, *hosts]:
            robots.check(f"{host}/")

        assert len(fetch.urls) == 2 * len(hosts)
        assert list(robots._cache) == hosts[-held:]

    def test_a_host_that_is_asked_for_again_is_not_forgotten(self) -> None:
        fetch = Fetches(b"#" * 400_000)
        robots = Robots(fetch)

        for number in range(5):
            robots.check(f"{SITE}/a")
            robots.check(f"https://h{number}.example.com/")

        assert fetch.urls.count(f"{SITE}/robots.txt") == 1
