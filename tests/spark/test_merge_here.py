"""What a MERGE inserts without Spark are rows of its source as they are; all others are left to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Matching
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import Field, Struct
from anabranch.spark.merge_here import inserts_here
from anabranch.spark.merge_source import Held
from tests.spark.tables import file_set
from tests.support.worlds import insert_all

ROWS = pa.table({"id": [1, 2], "s": ["a", "bc"], "number": [0, 1]})
SOURCE = T.StructType([T.StructField("id", T.LongType()), T.StructField("s", T.StringType())])

NO_SESSION: Any = None
"""Of a table without rules nothing is asked of a session."""


def inserted(folder: Path, s: Field) -> pa.Table | None:
    files: FileSet = file_set(folder, [], Struct((Field("id", "long"), s)))
    held = Held("", SOURCE, len(ROWS), ROWS.nbytes, ROWS, ROWS)
    return inserts_here(NO_SESSION, files, Matching(None, (insert_all("id", "s"),)), held)


def test_rows_are_inserted_as_they_are(tmp_path: Path) -> None:
    found = inserted(tmp_path, Field("s", "string"))
    assert found is not None
    assert found.to_pydict() == {"id": [1, 2], "s": ["a", "bc"]}


LOOKED_AT = {"varchar": Field("s", "string", metadata={LENGTH: "varchar(1)"}), "variant": Field("s", "variant")}


@pytest.mark.parametrize("column", LOOKED_AT.values(), ids=LOOKED_AT)
def test_a_column_whose_values_have_to_be_looked_at_is_left_to_spark(tmp_path: Path, column: Field) -> None:
    assert inserted(tmp_path, column) is None
