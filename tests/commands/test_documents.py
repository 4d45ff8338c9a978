"""``documents import`` imports a file into a site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.callers import Tenant, page
from tests.importers.exports import wxr, wxr_item


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


def run_import(tenant: Tenant, file: Path, *options: str, site: int | None = None) -> Result:
    runner = tenant.app.test_cli_runner()
    number = tenant.site_id if site is None else site
    return runner.invoke(args=["documents", "import", "--site", str(number), str(file), *options])


def test_json_lines_are_imported_and_searchable(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.jsonl"
    file.write_text("\n".join(json.dumps(page(number)) for number in range(3)) + "\n\n", encoding="utf-8")

    result = run_import(tenant, file)

    assert result.exit_code == 0, result.output
    assert "3 documents imported (3 new)." in result.output
    assert sorted(tenant.found_ids("page")) == ["page-0", "page-1", "page-2"]


def test_invalid_line_is_reported_by_number_and_other_lines_are_imported(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.jsonl"
    lines = [json.dumps(page(1)), "{not json", json.dumps(page(2)), json.dumps({"id": "x"}), json.dumps(page(3))]
    file.write_text("\n".join(lines), encoding="utf-8")

    result = run_import(tenant, file, "--json")

    assert result.exit_code == 1
    answer = json.loads(result.output)
    assert (answer["imported"], answer["created"]) == (3, 3)
    assert [problem["line"] for problem in answer["problems"]] == [2, 4]
    assert "title is required" in answer["problems"][1]["problems"]
    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2", "page-3"]


def test_invalid_records_of_an_array_are_reported_by_number(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.json"
    file.write_text(json.dumps([page(1), "text", page(2), {"id": "x"}]), encoding="utf-8")

    result = run_import(tenant, file)
    answer = json.loads(run_import(tenant, file, "--json").stdout)

    assert "record 2 (line 1): document must be a JSON object" in result.output
    assert "record 4 (line 1): " in result.output
    assert [(problem["line"], problem["record"]) for problem in answer["problems"]] == [(1, 2), (1, 4)]


def test_plain_output_reports_invalid_lines(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.jsonl"
    file.write_text("[]x\n" + json.dumps(page(1)), encoding="utf-8")
    file.rename(folder / "pages.txt")
    (folder / "pages.txt").write_text('"text"\n' + json.dumps(page(1)), encoding="utf-8")

    result = run_import(tenant, folder / "pages.txt")

    assert result.exit_code == 1
    assert "line 1: document must be a JSON object" in result.output
    assert tenant.found_ids("page") == ["page-1"]


def test_a_json_array_is_imported(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.json"
    file.write_text("\ufeff" + json.dumps([page(1), page(2)]), encoding="utf-8")

    assert run_import(tenant, file).exit_code == 0
    assert sorted(tenant.found_ids("page")) == ["page-1", "page-2"]


def test_csv_is_imported_with_column_names_from_the_first_line(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.csv"
    file.write_text(
        "id,title,content,url,section\n"
        '1,Opening hours,"We open at nine, or later",/hours,visit\n'
        "2,Short\n"
        "3,Way,,/way,\n",
        encoding="utf-8",
    )

    result = run_import(tenant, file, "--json")

    answer = json.loads(result.output)
    assert answer["imported"] == 2
    assert [problem["line"] for problem in answer["problems"]] == [3]
    (hit,) = tenant.find("nine")["hits"]
    assert (hit["id"], hit["section"]) == ("1", "visit")
    (way,) = tenant.find("way")["hits"]
    assert "section" not in way


def test_importing_a_file_again_replaces_its_documents(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.jsonl"
    file.write_text(json.dumps(page(1)), encoding="utf-8")
    run_import(tenant, file)

    result = run_import(tenant, file)

    assert "1 document imported (0 new)." in result.output


def test_invalid_file_and_unknown_site_are_reported(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.json"
    file.write_text("[1, 2", encoding="utf-8")

    broken = run_import(tenant, file)
    nowhere = run_import(tenant, file, site=999)

    assert broken.exit_code == 1
    assert "is not valid JSON" in broken.output
    assert nowhere.exit_code == 1
    assert "Site 999 does not exist." in nowhere.output


def test_import_over_the_document_limit_imports_nothing(tenant: Tenant, folder: Path) -> None:
    tenant.set_plan("free", documents=1)
    file = folder / "pages.jsonl"
    file.write_text("\n".join(json.dumps(page(number)) for number in range(3)), encoding="utf-8")

    result = run_import(tenant, file)

    assert result.exit_code == 1
    assert "The plan allows 1 document; the account has 0, and this batch adds 3 new documents." in result.output
    assert tenant.found_ids("page") == []


def test_wordpress_export_is_detected_automatically(tenant: Tenant, folder: Path) -> None:
    file = folder / "museum.WordPress.2024-05-01.xml"
    file.write_bytes(wxr(wxr_item(1, "Opening hours"), wxr_item(2, status="draft")))

    result = run_import(tenant, file)

    assert "1 document imported (1 new)." in result.output
    assert tenant.found_ids("opening") == ["https://museum.example/1/"]


def test_format_and_column_mapping_can_be_specified(tenant: Tenant, folder: Path) -> None:
    file = folder / "export.txt"
    file.write_text("Nr,Headline,content,url,Notes\n1,Opening hours,Nine.,/,x\n", encoding="utf-8")

    result = run_import(tenant, file, "--format", "csv", "--map", "id=Nr", "--map", "title=Headline,=Notes")

    assert result.exit_code == 0, result.output
    (hit,) = tenant.find("nine")["hits"]
    assert (hit["id"], hit["title"], "Notes" in hit) == ("1", "Opening hours", False)


def test_missing_and_unknown_columns_are_reported(tenant: Tenant, folder: Path) -> None:
    file = folder / "pages.csv"
    file.write_text("id,title\n1,x\n", encoding="utf-8")

    missing = run_import(tenant, file)
    unknown = run_import(tenant, file, "--map", "content=Text")

    assert (missing.exit_code, unknown.exit_code) == (1, 1)
    assert "pages.csv is missing columns for content, url; map a column to each of them:" in missing.output
    assert "--map contains the unknown column 'Text'; the columns are: id, title." in unknown.output


def test_failed_import_reports_how_many_documents_were_indexed(tenant: Tenant, folder: Path) -> None:
    tenant.set_plan("free", documents=1200)
    file = folder / "pages.jsonl"
    file.write_text("\n".join(json.dumps(page(number)) for number in range(1300)), encoding="utf-8")

    result = run_import(tenant, file)

    assert result.exit_code == 1
    assert (
        "Before that, 1,000 documents of the file were indexed; importing the file again replaces them."
        in result.output
    )
