"""What a MERGE inserts without Spark are rows of its source as they are; all others are left to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from anabranch._arrow.merge_images import inserts_of
from anabranch._arrow.merge_source import SourceColumns, SourceRows
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.unsupported import Unsupported
from tests.spark.tables import file_set
from tests.support.worlds import insert_all

ROWS = pa.table({"id": [1, 2], "s": ["a", "bc"], "number": [0, 1]})
SOURCE = SourceRows(SourceColumns(("id", "s"), ("long", "string")), ROWS)


def inserted(folder: Path, s: Field) -> list[tuple[pa.Table, frozenset[str]]]:
    files: FileSet = file_set(folder, [], Struct((Field("id", "long"), s)))
    return inserts_of(files, MergePlan(None, (insert_all("id", "s"),)), SOURCE)


def test_rows_are_inserted_as_they_are(tmp_path: Path) -> None:
    ((found, given),) = inserted(tmp_path, Field("s", "string"))
    assert given == {"id", "s"}
    assert found.to_pydict() == {"id": [1, 2], "s": ["a", "bc"]}


LOOKED_AT = {"varchar": Field("s", "string", metadata={LENGTH: "varchar(1)"}), "variant": Field("s", "variant")}


@pytest.mark.parametrize("column", LOOKED_AT.values(), ids=LOOKED_AT)
def test_a_column_whose_values_have_to_be_looked_at_is_left_to_spark(tmp_path: Path, column: Field) -> None:
    with pytest.raises(Unsupported, match="s stores is computed by Spark"):
        inserted(tmp_path, column)
