"""What the tests do to a table before another engine reads it: rows, changes one after the other, every type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from anabranch.testing import Row
from tests.support.worlds import World

ROWS: list[Row] = [{"id": i, "day": f"d{i % 3}" if i % 4 else None, "x": i / 4} for i in range(12)]
NASTY = ["plain", "a b", "a/b", "a%20b", "%2F", "%", "a=b", "a:b", "é☃", "it's", '"q"', "#?&+", "a\\b", "*[x]{y}"]
NASTY += [".", "..", " lead", "trail ", "\t", "\n", "NULL", "null", "__HIVE_DEFAULT_PARTITION__", "x" * 200]

Change = Callable[[World], Any]
CHANGES: dict[str, Change] = {
    "append": lambda world: world.append({"id": 100, "day": "d9", "x": None}, {"id": 101, "day": None, "x": -0.5}),
    "update": lambda world: world.update("id IN (0, 2, 4, 6, 9) AND id < 8", x=99.0),
    "update again": lambda world: world.update("id = 4 OR id = 5", x=None, day="moved"),
    "delete": lambda world: world.delete("id IN (1, 4, 100)"),
    "delete a whole file": lambda world: world.delete("day = 'd1'"),
    "overwrite": lambda world: world.overwrite({"id": 7, "day": "d0", "x": 7.0}, {"id": 8, "day": None, "x": None}),
    "delete all": lambda world: world.delete(),
}

TYPED: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "long": [-(2**63), 2**63 - 1, None],
    "double": [float("nan"), float("-inf"), None],
    "string": ["", "é☃\n", None],
    "binary": [b"", b"\x00\xff", None],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
    "timestamp": [
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, dt.UTC),
        dt.datetime(2100, 1, 1, tzinfo=dt.UTC),
    ],
    "decimal": [Decimal("-99999999999999999999.99"), Decimal("0.01"), None],
    "list": [[1, None, 3], [], None],
    "struct": [{"a": 1, "b": None}, {"a": None, "b": "x"}, None],
    "map": [[("k", 1), ("l", None)], [], None],
}
TYPES = {"decimal": pa.decimal128(22, 2), "map": pa.map_(pa.string(), pa.int64())}
