"""Tables by chance: columns of many types, values that are easily lost, partitions, several files, all properties.

Pure: dice in, tables out. Domains are tiny, so that conditions and keys meet rows; among their values are NULL, NaN,
zeros with a sign, letters outside ASCII, empty and long texts, and the ends of what a type holds.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Attributes:
        arrow: as Arrow has it.
        sql: as SQL spells it.
        values: those that are drawn.
    """

    arrow: pa.DataType
    sql: str
    values: tuple[Any, ...]

    @property
    def is_nested(self) -> bool:
        """Whether values hold others."""
        return pa.types.is_nested(self.arrow)


def _moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]


_WHOLE = (0, 1, 2, 3, -1)
_FLOATS = (0.0, -0.0, math.nan, 1.5, -2.25, math.inf)
_MOMENTS = (_moment(2024, 2, 29, 12, 30, 15, 123_456), _moment(1970, 1, 1), _moment(1969, 12, 31, 23, 59, 59, 999_999))
_ZONED = tuple(each.replace(tzinfo=dt.UTC) for each in _MOMENTS)
_INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
_DEEP = pa.struct([("x", pa.struct([("y", pa.int64())])), ("z", pa.list_(pa.string()))])
KINDS: Mapping[str, Kind] = {
    "long": Kind(pa.int64(), "BIGINT", (*_WHOLE, 1 << 53)),
    "int": Kind(pa.int32(), "INT", (*_WHOLE, 2**31 - 1)),
    "short": Kind(pa.int16(), "SMALLINT", (*_WHOLE, -(2**15))),
    "float": Kind(pa.float32(), "FLOAT", _FLOATS),
    "double": Kind(pa.float64(), "DOUBLE", (*_FLOATS, 1e300)),
    "text": Kind(pa.string(), "STRING", ("", "a", "é", "日本", "😀", "A", "a/b=c%", "ab" * 20, "é😀" * 20)),
    "bool": Kind(pa.bool_(), "BOOLEAN", (True, False)),
    "date": Kind(pa.date32(), "DATE", (dt.date(2024, 2, 29), dt.date(1970, 1, 1), dt.date(1969, 12, 31))),
    "zoned": Kind(pa.timestamp("us", "UTC"), "TIMESTAMP", _ZONED),
    "naive": Kind(pa.timestamp("us"), "TIMESTAMP_NTZ", _MOMENTS),
    "price": Kind(pa.decimal128(9, 2), "DECIMAL(9,2)", (Decimal("0.00"), Decimal("1.50"), Decimal("-9999999.99"))),
    "wide": Kind(pa.decimal128(30, 6), "DECIMAL(30,6)", (Decimal("0.000000"), Decimal("12345678901234567890.123456"))),
    "bytes": Kind(pa.binary(), "BINARY", (b"", b"\x00\xff", b"ab")),
    "inner": Kind(_INNER, "", ({"a": 1, "b": "é"}, {"a": None, "b": None}, {"a": 2, "b": ""})),
    "deep": Kind(_DEEP, "", ({"x": {"y": 5}, "z": ["é", None]}, {"x": None, "z": []}, {"x": {"y": None}, "z": None})),
    "list": Kind(pa.list_(pa.int32()), "", ([], [1, 2], [None, 3])),
    "structs": Kind(pa.list_(_INNER), "", ([], [{"a": 1, "b": None}], [None, {"a": 3, "b": "😀"}])),
    "map": Kind(pa.map_(pa.string(), pa.int32()), "", ([], [("a", 1)], [("é", None), ("b", 2)])),
}
PLAIN = tuple(name for name, kind in KINDS.items() if not kind.is_nested)
_PARTITIONING = ("int", "text", "date", "bool", "long", "price", "naive", "zoned", "double")
KEY = "k"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return f"`{self.name}`"


@dataclass(frozen=True)
class Drawn:
    """A table before anything happens to it: each file's rows, and what it is told to do.

    Attributes:
        cluster_by: by what its rows are laid out, where it has no partitions.
        group_rows: so many rows has a row group of these files.
    """

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    cluster_by: tuple[str, ...]
    properties: Mapping[str, str]
    files: tuple[tuple[Row, ...], ...]
    group_rows: int

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        return pa.schema([(each.name, each.kind.arrow) for each in self.columns])

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Rows of these columns."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)


def drawn_table(dice: random.Random) -> Drawn:
    """A table, with a key of few values as its first column."""
    mapped = dice.random() < 0.25
    columns = _columns(dice, nested=not mapped or dice.random() < 0.1)
    free = [each.name for each in columns[1:] if _may_partition(each)]
    partition_by = tuple(dice.sample(free, min(len(free), dice.choice((0, 0, 0, 1, 1, 2)))))
    bounded = [each.name for each in columns if each.kind in _BOUNDED]
    cluster_by = tuple(bounded[-2:]) if not partition_by and dice.random() < 0.12 else ()
    files = tuple(tuple(drawn_rows(dice, columns, dice.randint(1, 9))) for _ in range(dice.choice((1, 1, 2, 2, 3, 6))))
    free = [each.name for each in columns if each.kind in _BOUNDED and each.name not in partition_by]
    properties = _properties(dice, mapped=mapped) | ({} if cluster_by else _skipping(dice, free))
    return Drawn(columns, partition_by, cluster_by, properties, files, dice.choice((2, 3, 1_000)))


def drawn_rows(dice: random.Random, columns: Sequence[Column], count: int) -> list[Row]:
    """Rows of these columns."""
    return [{each.name: drawn_value(dice, each) for each in columns} for _ in range(count)]


def drawn_value(dice: random.Random, column: Column) -> Any:
    """A value of a column; the key is rarely NULL."""
    is_null = dice.random() < (0.04 if column.name == KEY else 0.2)
    values = range(8) if column.name == KEY else column.kind.values
    return None if is_null else dice.choice(values)


def _columns(dice: random.Random, *, nested: bool) -> tuple[Column, ...]:
    kinds = list(KINDS) if nested else list(PLAIN)
    names = iter(("a", "größe", "c", "d", "E", "f_1"))
    drawn = [Column(next(names), KINDS[dice.choice(kinds)]) for _ in range(dice.randint(1, 5))]
    return Column(KEY, KINDS[dice.choice(("long", "int"))]), *drawn


def _may_partition(column: Column) -> bool:
    return any(column.kind is KINDS[name] for name in _PARTITIONING)


def _properties(dice: random.Random, *, mapped: bool) -> dict[str, str]:
    found = {
        "delta.enableDeletionVectors": str(dice.random() < 0.6).lower(),
        "delta.isolationLevel": dice.choice(("WriteSerializable", "WriteSerializable", "Serializable")),
        "anabranch.rowsInErrors": "false",
    }
    if dice.random() < 0.4:
        found["delta.enableChangeDataFeed"] = "true"
    if dice.random() < 0.3:
        found["delta.enableRowTracking"] = "true"
    if mapped:
        found["delta.columnMapping.mode"] = dice.choice(("name", "name", "id"))
    return found


def _skipping(dice: random.Random, free: Sequence[str]) -> dict[str, str]:
    """Which columns have statistics, where that is said; of these one may be named."""
    if dice.random() < 0.25:
        return {"delta.dataSkippingNumIndexedCols": dice.choice(("0", "1", "3", "-1"))}
    if free and dice.random() < 0.15:
        return {"delta.dataSkippingStatsColumns": dice.choice(free)}
    return {}


_BOUNDED = [KINDS[name] for name in ("long", "int", "short", "text", "date", "zoned", "naive", "price")]
