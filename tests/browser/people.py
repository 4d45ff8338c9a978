"""Interactions of people with a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.callers import PASSWORD
from tests.patience import PATIENCE_SECONDS


class Person:
    """A person using a browser."""

    def __init__(self, driver: Any, base_url: str):
        self.driver = driver
        self.base_url = base_url

    def go(self, path: str) -> None:
        self.driver.get(self.base_url + path)

    def find(self, css: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.driver.find_element(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        from selenium.webdriver.common.by import By

        return [found.text for found in self.driver.find_elements(By.CSS_SELECTOR, css)]

    def fill(self, **values: str) -> None:
        for name, value in values.items():
            field = self.find(f"main [name='{name}']:not([type=hidden])")
            if field.tag_name == "select":
                from selenium.webdriver.support.select import Select

                Select(field).select_by_value(value)
            else:
                field.clear()
                field.send_keys(value)

    def press(self, words: str, kind: str = "button") -> None:
        """Click the button, link, or other element with this text."""
        from selenium.webdriver.common.by import By

        found = self.driver.find_elements(By.XPATH, f"//{kind}[normalize-space()={words!r}]")
        assert found, f"no {kind} says {words!r} at {self.driver.current_url}: {self.text[:1000]}"
        found[0].click()

    @property
    def text(self) -> str:
        return str(self.find("body").text)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds."""
        from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
        from selenium.webdriver.support.ui import WebDriverWait

        def holds(_: Any) -> Any:
            # The next page may load during the check; the driver reports that in two ways.
            try:
                return condition()
            except StaleElementReferenceException:
                return False
            except WebDriverException as error:
                if "does not belong to the document" not in str(error):
                    raise
                return False

        try:
            return WebDriverWait(self.driver, PATIENCE_SECONDS, 0.1).until(holds)
        except TimeoutException as error:
            raise AssertionError(f"{what}; at {self.driver.current_url}: {self.text[:500]}") from error

    def sees(self, words: str) -> None:
        self.wait(lambda: words in self.text, f"{words!r} did not appear")

    def register(self, email: str) -> None:
        self.go("/")
        self.press("Create an account", "a")
        self.fill(name="Ann", email=email, password=PASSWORD)
        self.press("Create account")
        self.sees("Make your first site searchable")

    def add_site(self, name: str, url: str) -> str:
        """Add a site. Returns its path."""
        self.go("/dashboard")
        self.press("Add a site", "a")
        self.fill(name=name, url=url)
        self.press("Add site")
        self.sees("Add your content")
        return str(self.driver.current_url).removeprefix(self.base_url).partition("/sources")[0]

    def make_key(self, site: str, name: str, kind: str) -> str:
        """Create a key. Returns its token, which the page shows only once."""
        self.go(f"/api{site}/keys")
        self.fill(name=name, type=kind)
        self.press("Create key")
        self.sees("It won’t be shown again")
        return str(self.find(".fresh code").text)
