"""Tables as Markdown: whole, and all text stays text."""

from __future__ import annotations

from dutperf.tables import Column, Row, Span, Table, Value, Verdict
from dutperf.tables.table_model import markdown

TABLE = Table(
    key="one",
    title="Results <b>of</b> `this`",
    columns=(
        Column("traffic", "What was sent.", words=True),
        Column("rate", "What passed.", "fps"),
        Column("from | to", "Between what."),
        Column("verdict", "Whether it counts.", words=True),
    ),
    rows=(
        Row(
            "cell-1",
            ("64 | x", Value("1,000", bound="lower"), "", Verdict("pass")),
        ),
        Row("", ("a\nb\x1b[31m", Value(), Span(Value("-1"), Value("+2")), "*no*")),
    ),
    notes=("see [there](x)",),
)


def test_a_table_is_one_of_markdown_and_its_text_stays_text() -> None:
    assert markdown(TABLE).splitlines() == [
        "### Results &#60;b&#62;of&#60;/b&#62; &#96;this&#96;",
        "",
        "| cell | traffic | rate, fps | from &#124; to | verdict |",
        "| --- | --- | --: | --: | --- |",
        "| cell-1 | 64 &#124; x | &#62;= 1,000 |  | measured |",
        "|  | a b&#92;x1b&#91;31m | - | -1 to +2 | &#42;no&#42; |",
        "",
        "see &#91;there&#93;(x)",
    ]


def test_a_table_of_cells_without_names_has_no_column_for_them() -> None:
    plain = Table("two", "Two", (Column("a", "A."),), (Row("", (Value("1"),)),))
    assert markdown(plain) == "### Two\n\n| a |\n| --: |\n| 1 |\n"
