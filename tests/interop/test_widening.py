"""Tables with wider types, as others read them: DuckDB widens every old value, delta-rs refuses the table by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch._protocol.schema.types import arrow_type
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.dml.append import Append
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path

pytestmark = pytest.mark.interop

CHANGES: list[tuple[str, str, list[Any]]] = [
    ("byte", "long", [1, -128]),
    ("byte", "double", [1, -128]),
    ("integer", "decimal(12,2)", [1, -(2**31)]),
    ("long", "decimal(22,2)", [1, -(2**63)]),
    ("float", "double", [1.5, 0.10000000149011612]),
    ("date", "timestamp_ntz", [dt.date(2020, 2, 29), dt.date(1500, 2, 3)]),
    ("decimal(5,2)", "decimal(15,5)", [Decimal("1.25"), Decimal("-9.99")]),
]


@pytest.mark.parametrize(("before", "after", "values"), CHANGES)
def test_others_read_what_we_widened_or_say_that_they_cannot(
    tmp_path: Path, before: str, after: str, values: list[Any]
) -> None:
    world = World(table_path(tmp_path))
    rows = pa.table({"id": [1, 2], "c": pa.array(values, arrow_type(before))})
    Append(world.path, rows, None, {"delta.enableTypeWidening": "true"}).run()
    if after == "timestamp_ntz":
        SetProperties(world.path, {"delta.feature.timestampNtz": "supported"}).run()
    ChangeColumn(world.path, ("c",), type=after).run()
    assert same_rows(duckdb_rows(world.path), world.rows())
    with pytest.raises(Exception, match="TypeWidening"):
        deltalake_rows(world.path)
