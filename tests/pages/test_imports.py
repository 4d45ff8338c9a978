"""Importing a file through the form."""

from __future__ import annotations

import json

from urllib3.filepost import encode_multipart_formdata
from werkzeug.test import TestResponse

from tests.callers import Tenant, page
from tests.crawl.read.office.builders import docx, w_p
from tests.pages.people import Person, filled

CSV = b"id,title,content,url\n1,Opening hours,We open at nine.,/hours\n2,Getting here,By tram.,not a path\n3\n"


def choose(person: Person, file: bytes | None, file_name: str = "pages.csv", **values: str) -> TestResponse:
    """Fill in the form, choose a file, and press the button."""
    form = person.form("Import")
    assert form.attributes["enctype"] == "multipart/form-data"
    sent = {**filled(form), **values, "file": (file_name if file is not None else "", file or b"")}
    body, kind = encode_multipart_formdata(sent)  # werkzeug's client would leave a large body in an open file.
    return person.call("POST", form.attributes["action"], data=body, content_type=kind)


def test_import_reports_imported_and_skipped_lines(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    response = choose(person, CSV, format="csv")

    assert response.status_code == 200
    assert person.page.one("h1").text == "1 page imported"
    text = person.page.text
    assert "pages.csv: 1 new page, 0 replaced. They are searchable now." in text
    assert "2 lines were skipped." in text
    rows = [[cell.text for cell in row.walk() if cell.tag in ("th", "td")] for row in person.page.all("tr")]
    assert rows[1:] == [
        ["3", "url must be an http or https URL, or a path that starts with one /"],
        ["4", "document has 1 cell, but the first line has 4 columns"],
    ]
    assert tenant.found_ids("nine") == ["1"]


def test_invalid_records_of_a_json_array_are_numbered(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")
    choose(person, json.dumps([page(1), 7, page(2), "text"]).encode(), format="jsonl")

    assert "2 records were skipped." in person.page.text
    rows = [[cell.text for cell in row.walk() if cell.tag in ("th", "td")] for row in person.page.all("tr")]
    assert rows == [
        ["Record", "Line", "Reason"],
        ["2", "1", "document must be a JSON object"],
        ["4", "1", "document must be a JSON object"],
    ]


def test_column_mapping_is_entered_one_column_per_line(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    choose(person, CSV.replace(b"title", b"Headline"), format="csv", map="title = Headline\r\n")

    assert person.page.one("h1").text == "1 page imported"


def test_fields_and_formats_have_their_own_labels(tenant: Tenant, person: Person) -> None:
    """The field and one of the formats are both named ``file``."""
    person.go(f"/sites/{tenant.site_id}/import")

    assert person.page.one("label", for_="file").text == "File"
    assert person.page.one("option", value="file").text.startswith("One page: PDF, Word")


def test_file_that_is_not_a_page_is_reported_in_one_sentence(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    assert choose(person, b"", format="file", url="/empty.txt").status_code == 400
    assert person.problem_of("file") == "File cannot be read as a page: The file contains no text."


def test_file_without_valid_pages_is_reported(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    choose(person, b"[1, 2]", format="jsonl")

    assert person.page.one("h1").text == "No pages were imported"
    assert "Does it have the format you chose?" in person.page.text


def test_invalid_import_form_keeps_input_and_marks_fields(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    assert choose(person, None, format="csv").status_code == 400
    assert person.problem_of("file") == "File is required."
    assert choose(person, CSV, format="").status_code == 400
    assert person.problem_of("format") == "Format is required."
    assert choose(person, CSV, format="excel").status_code == 400
    assert person.problem_of("format").startswith("Format must be one of wxr, csv, jsonl")
    assert choose(person, CSV, format="csv", map="title = Headline").status_code == 400
    assert person.problem_of("map") == (
        "Column mapping contains the unknown column 'Headline'; the columns are: id, title, content, url."
    )
    assert filled(person.form("Import"))["map"] == "title = Headline"
    assert filled(person.form("Import"))["format"] == "csv"
    assert choose(person, b"<html></html>", format="wxr", map="").status_code == 400
    assert person.problem_of("file") == "File is not a WordPress export."


def test_document_limit_is_reported_above_the_form(tenant: Tenant, person: Person) -> None:
    tenant.set_plan("free", documents=0)
    person.go(f"/sites/{tenant.site_id}/import")

    assert choose(person, CSV, format="csv").status_code == 403

    assert person.alerts[0].startswith("The plan allows 0 documents")


def test_import_accepts_files_larger_than_other_forms(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")
    large = b"".join(b'{"id":"%d","title":"","content":"%s","url":"/"}\n' % (at, b"x" * 900_000) for at in range(3))

    assert choose(person, large, format="jsonl").status_code == 200
    assert person.page.one("h1").text == "3 pages imported"


def test_file_names_are_escaped(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    choose(person, CSV, "<img src=x>.csv", format="csv")

    assert not person.page.all("img")


def test_import_form_of_another_account_is_404(
    tenant: Tenant, stranger: Tenant, person: Person, passer_by: Person
) -> None:
    assert person.call("GET", f"/sites/{stranger.site_id}/import").status_code == 404
    assert passer_by.call("GET", f"/sites/{tenant.site_id}/import").status_code == 302


def test_office_file_is_imported_as_one_page(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    choose(person, docx(w_p("We open at nine.")), "hours.docx", format="file", url="/files/hours.docx")

    assert person.page.one("h1").text == "1 page imported"
    (hit,) = tenant.find("nine")["hits"]
    assert hit["title"] == "hours.docx"


def test_office_file_without_url_keeps_selected_format(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")

    response = choose(person, docx(w_p("We open at nine.")), "hours.docx", format="file")

    assert response.status_code == 400
    assert "URL is required for a file that is one page." in person.page.text


def test_configuration_import_lists_sources_and_ignored_settings(tenant: Tenant, person: Person) -> None:
    person.go(f"/sites/{tenant.site_id}/import")
    config = {"index_name": "any", "start_urls": ["https://example.com/docs/"], "selectors": {"text": "p"}}

    choose(person, json.dumps(config).encode(), "museum.json", format="docsearch")

    assert person.page.one("h1").text == "1 source added"
    assert "From museum.json." in person.page.text
    assert [code.text for code in person.page.all("code")] == ["index_name"]
    person.follow("https://example.com/docs/")
    assert "A website" in person.page.text


def test_invalid_configuration_is_reported_beside_the_file(tenant: Tenant, person: Person) -> None:
    for file, problem in (
        (b"{", "File is not valid JSON."),
        (b'{"start_urls": ["https://elsewhere.test/"]}', "start_urls[0]"),
    ):
        person.go(f"/sites/{tenant.site_id}/import")
        assert choose(person, file, format="docsearch").status_code == 400
        assert any(problem in alert for alert in person.alerts), person.alerts
