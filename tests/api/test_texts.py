"""Jobs that look for words in errors: those of delta-spark's errors stand in ours where the same thing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch import errors, tables
from tests.documented.given import Given
from tests.documented.texts import FAMILIES, OLDER, lacking, met, prepare

CONFLICTS = [
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
]


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Given:
    """The tables that the commands name, which none of them changes."""
    made = Given(anabranch.install(spark), tables, tmp_path_factory.mktemp("texts"), "texts_")
    prepare(made)
    return made


@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_hold_the_phrases_that_jobs_look_for(given: Given, family: str) -> None:
    found = met(given, family)
    assert lacking(found, family) == {}
    older = OLDER.get(family, {})
    assert {what: phrase for what, phrase in older.items() if phrase not in found[what]} == {}


@pytest.mark.whole
@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_is_known_by_the_name_of_its_class_in_its_text(name: str) -> None:
    error = getattr(errors, name)(table="memory://t", explanation="both changed one row.")
    for phrase in (f"{name}: ", "Transaction conflict detected", f"[{error.condition}"):
        assert phrase in str(error)


@pytest.mark.spark
@pytest.mark.parametrize("opened", ["forPath", "forName"])
def test_a_table_that_cannot_be_opened_has_delta_sparks_condition(
    spark: SparkSession, tmp_path: Path, opened: str
) -> None:
    with pytest.raises(errors.AnabranchError) as caught:
        getattr(tables.DeltaTable, opened)(anabranch.install(spark), str(tmp_path / "nowhere"))
    assert caught.value.getErrorClass() == "DELTA_MISSING_DELTA_TABLE"
