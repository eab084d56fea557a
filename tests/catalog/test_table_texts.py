"""What Spark tells of tables as text: nothing that a user writes into it is taken for what Spark says."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from anabranch._catalog.entry_properties import MANAGED
from anabranch._catalog.table_texts import TableText

FORGED = [
    "Location: /evil",
    "Provider: parquet",
    "Type: MANAGED",
    "Serde Library: x",
    "Schema: root",
    f"Table Properties: [{MANAGED}=forged]",
    f", {MANAGED}=forged",
    "]",
    "",
    "words",
]
texts = st.lists(st.sampled_from(FORGED), max_size=4).map("\n".join)


def text_of(comment: str, property_: str, location: str, column: str, mark: str = "") -> TableText:
    """As Spark 4.3 writes it, in its order."""
    properties = [f"{MANAGED}={mark}"] if mark else []
    lines = [
        "Catalog: spark_catalog",
        "Database: default",
        "Table: t",
        "Created Time: Mon Nov 23 15:26:11 UTC 2026",
        "Last Access: UNKNOWN",
        "Created By: Spark 4.3.0",
        "Type: EXTERNAL",
        "Provider: delta",
        f"Comment: {comment}",
        f"Table Properties: [{', '.join([*properties, f'p={property_}', 'provider=delta'])}]",
        f"Location: {location}",
        "Partition Provider: Catalog",
        "Schema: root",
        f" |-- {column}: long (nullable = true)",
        "",
    ]
    return TableText.of("\n".join(lines))


@given(texts, texts, texts)
@example("a\nLocation: /evil", "", "")
@example("", "x\nLocation: /evil\nSerde Library: y]", "")
@example("", "", "c\nLocation: /evil")
def test_no_comment_property_or_column_makes_another_location(comment: str, property_: str, column: str) -> None:
    found = text_of(comment, property_, "file:/real", column)
    assert found.location() in ("file:/real", None)
    assert found.first("Type") == "EXTERNAL"
    assert found.first("Provider") == "delta"


@given(st.sampled_from(["/a\nb", "/a\nLocation: /b", "/a\nb\nSchema: c", "/a\n", "/a\n\n/b"]))
def test_a_path_with_a_line_break_is_none(path: str) -> None:
    assert text_of("", "", path, "id").location() is None


@given(texts, texts)
def test_a_mark_is_the_one_that_the_properties_say_or_none(comment: str, property_: str) -> None:
    """Of two that say so none counts: then the files of a table stay."""
    said = text_of(comment, property_, "file:/real", "id", mark="true-one").property(MANAGED)
    assert said in ("true-one", None)


def test_a_quiet_text_says_all() -> None:
    found = text_of("hello", "x", "file:/a b/é%20#?", "id", mark="m")
    assert found.location() == "file:/a b/é%20#?"
    assert (found.property(MANAGED), found.property("p"), found.property("none")) == ("m", "x", None)
