"""Reads Excel workbooks: sheets with their names, and cells as Excel displays them."""

from __future__ import annotations

import pytest

from app.crawl.read.office.office_files import read_office_file
from tests.crawl.read.office.builders import xlsx

STYLES = (
    '<numFmts><numFmt numFmtId="164" formatCode="d\\.&quot; of &quot;mmmm yyyy"/>'
    '<numFmt numFmtId="165" formatCode="[Red]0.00&quot; days&quot;"/>'
    '<numFmt numFmtId="166" formatCode="[h]:mm"/></numFmts>'
    '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/>'
    "</cellXfs>"
)


def cell(value: str, kind: str = "", style: int = 0) -> str:
    named = f' t="{kind}"' if kind else ""
    return f'<c s="{style}"{named}><v>{value}</v></c>'


def shown(cells: str, **options: str) -> str:
    [text] = read_office_file(xlsx({"Tides": f"<row>{cells}</row>"}, styles=STYLES, **options)).pages
    name, _, cells = text.partition("\n")
    assert name == "Tides"
    return cells


def test_xlsx_sheets_are_read_in_order_with_names_and_rows() -> None:
    rows = f"<row>{cell('1')}<c/>{cell('2')}</row><row/><row>{cell('3')}</row>"

    assert read_office_file(xlsx({"Tides": rows, "Fish & chips": ""})).pages == ["Tides\n1\t2\n3\n\nFish & chips"]


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_hidden_xlsx_sheet_is_not_read(state: str) -> None:
    assert read_office_file(xlsx({"a": "", "b": f"<row>{cell('1')}</row>"}, state=state)).pages == ["a"]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (cell("1", "s"), "Boats leave"),
        (cell("7", "s") + cell("-1", "s") + cell("x", "s"), ""),
        ('<c t="inlineStr"><is><r><t>Bo</t></r><r><t>ats</t></r></is></c>', "Boats"),
        ('<c t="str"><f>A1&amp;"!"</f><v>Boats!</v></c>', "Boats!"),
        ("<c><f>1+1</f><v>2</v></c>", "2"),
        ("<c><f>1+1</f></c>", ""),
        (cell("1", "b") + cell("0", "b"), "TRUE\tFALSE"),
        (cell("#N/A", "e"), ""),
        (cell("0.30000000000000004") + cell("12345678901") + cell("1E-3"), "0.3\t12345678901\t0.001"),
        (cell("45413", style=1) + cell("45413.395833333", style=1), "2024-05-01\t2024-05-01 09:30"),
        (cell("45413", style=2) + cell("45413", style=3) + cell("0.5", style=4), "2024-05-01\t45413\t12:00"),
        (cell("1e300", style=1) + cell("-5", style=1) + cell("nan", style=1), "1e+300\t-5\tnan"),
        (cell("2024-05-01T00:00:00", "d"), "2024-05-01T00:00:00"),
        (cell("5", style=99), "5"),
    ],
)
def test_xlsx_cells_are_read_as_displayed(cells: str, text: str) -> None:
    strings = "<si><t>x</t></si><si><r><t>Boats </t></r><r><t>leave</t></r><rPh><t>y</t></rPh></si>"

    assert shown(cells, strings=strings) == text


def test_xlsx_dates_respect_the_1904_date_system() -> None:
    assert shown(cell("1", style=1), workbook='<workbookPr date1904="1"/>') == "1904-01-02"
    assert shown(cell("1", style=1), workbook='<workbookPr date1904="0"/>') == "1899-12-31"


def test_xlsx_without_a_title_property_has_no_title() -> None:
    assert read_office_file(xlsx({"Tides": ""})).title == ""
