"""The strict reader of logs (`laboratory.log_reader`) for tables with columns of any type, mapped ones too.

Knows PROTOCOL.md; nothing of the product. Rows come as tuples that tell NaN, -0.0 and 0.0 apart, and that can be
counted. Besides rows it reads their ids, and holds the statistics of files against what is in them.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from anabranch._storage import Store
from laboratory.log_reader import Reader, actions_in, rows_in
from laboratory.statements import Row

_PREFIX = 32
_PHYSICAL = "delta.columnMapping.physicalName"
_IDS = "delta.rowTracking.materializedRowIdColumnName"
_VERSIONS = "delta.rowTracking.materializedRowCommitVersionColumnName"
_FLOATS = ("float", "double")
_ROUND_UP = dt.timedelta(microseconds=999)


@dataclass(frozen=True)
class Metadata:
    """What a table says of itself."""

    body: Mapping[str, Any]

    @cached_property
    def fields(self) -> list[Mapping[str, Any]]:
        """The columns."""
        return list(json.loads(self.body["schemaString"])["fields"])

    @property
    def configuration(self) -> Mapping[str, str]:
        """The properties."""
        return self.body["configuration"]

    @property
    def partition_columns(self) -> Sequence[str]:
        """By their logical names."""
        return self.body["partitionColumns"]


class TypedReader(Reader):
    """Reads every version of the table in a store, whose metadata never change."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        bodies = actions_in(store.get(f"_delta_log/{0:020}.json"))
        self.metadata = Metadata(next(body for kind, body in bodies if kind == "metaData"))

    @property
    def columns(self) -> Sequence[str]:
        """How the table's columns are called in files."""
        return [physical(each) for each in self.metadata.fields]

    def row(self, stored: Mapping[str, Any], values: Mapping[str, str | None]) -> Row:
        """A row of a file with these partition values, as a tuple that can be compared."""
        return tuple(
            partition_value(each["type"], values[physical(each)])
            if physical(each) in values
            else plain(each["type"], stored.get(physical(each)))
            for each in self.metadata.fields
        )

    def ids(self) -> Counter[tuple[Any, Any, Row]] | None:
        """Of each live row its id, the version that last changed it, and its values; None: rows are not tracked."""
        names = [self.metadata.configuration.get(name) for name in (_IDS, _VERSIONS)]
        if self.metadata.configuration.get("delta.enableRowTracking") != "true":
            return None
        found = Counter[tuple[Any, Any, Row]]()
        for add, rows, dead in self.files():
            base = (add["baseRowId"], add["defaultRowCommitVersion"])
            for i, stored in enumerate(self._stored(add)):
                row_id, version = (stored.get(str(name)) for name in names)
                own = (base[0] + i if row_id is None else row_id, base[1] if version is None else version)
                found[(*own, rows[i])] += i not in dead
        return +found

    @property
    def records(self) -> bool:
        """Whether the table records its changes."""
        return self.metadata.configuration.get("delta.enableChangeDataFeed") == "true"

    def said_of_files(self, versions: range) -> Counter[str]:
        """The statistics and partitions of the files that some versions added."""
        added = [body for number in versions for kind, body in self._bodies(number) if kind == "add"]
        return Counter(json.dumps([each["partitionValues"], each.get("stats")], sort_keys=True) for each in added)

    def highest_id(self, version: int) -> int:
        """The highest row id that was given up to a version; -1 where none was."""
        bodies = [each for number in range(version + 1) for each in self._bodies(number)]
        said = [body for kind, body in bodies if kind == "domainMetadata" and body["domain"] == "delta.rowTracking"]
        return int(json.loads(said[-1]["configuration"])["rowIdHighWaterMark"]) if said else -1

    def wrong_statistics(self, *, loose: bool = False) -> list[str]:
        """What is not true, or not as tight as it can be, in the statistics of live files.

        Args:
            loose: whether bounds of floating-point numbers may be left out.
        """
        return [
            f"{add['path']}: {each}"
            for add, _, _ in self.files()
            for each in Statistics(self.metadata, add, self._stored(add), loose).faults()
        ]

    def _stored(self, add: Mapping[str, Any]) -> list[dict[str, Any]]:
        return rows_in(self._get(unquote(add["path"])))


def physical(column: Mapping[str, Any]) -> str:
    """The name of a column in files."""
    return str(column["metadata"].get(_PHYSICAL, column["name"]))


# -- values ------------------------------------------------------------------------------------------------------------


def plain(kind: Any, value: Any) -> Any:
    """A value of a type as one that can be counted, in which no two that differ are equal."""
    if value is None:
        return None
    if isinstance(kind, Mapping):
        if kind["type"] == "struct":
            return tuple(plain(each["type"], value.get(physical(each))) for each in kind["fields"])
        if kind["type"] == "array":
            return ("array", *(plain(kind["elementType"], each) for each in value))
        return frozenset((plain(kind["keyType"], k), plain(kind["valueType"], v)) for k, v in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return str(value) if isinstance(value, Decimal | bool) else value


def partition_value(kind: str, text: str | None) -> Any:
    """The value that a log spells so; no text is NULL."""
    if text is None or text == "":
        return None
    if kind in ("byte", "short", "integer", "long"):
        return int(text)
    if kind in _FLOATS:
        return plain(kind, float(text))
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        return str(Decimal(text).quantize(Decimal(1).scaleb(-scale)))
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind.startswith("timestamp"):
        return plain(kind, dt.datetime.fromisoformat(text.replace("Z", "+00:00")))
    return str(text == "true") if kind == "boolean" else text


# -- statistics --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statistics:
    """What a log says of a file's values, and the rows of the file, deleted ones too.

    Attributes:
        is_loose: whether bounds of floating-point numbers may be left out.
    """

    metadata: Metadata
    add: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    is_loose: bool = False

    def faults(self) -> Iterator[str]:
        """All that is wrong."""
        said = json.loads(self.add.get("stats") or "{}", parse_float=Decimal)
        if said.get("numRecords") != len(self.rows):
            yield f"numRecords is {said.get('numRecords')}, there are {len(self.rows)}"
        if self.add.get("deletionVector") is not None and said.get("tightBounds", True) is not False:
            yield "bounds are said to be tight beside a deletion vector"
        wanted = dict(self._leaves())
        for part in ("minValues", "maxValues", "nullCount"):
            for path in _paths(said.get(part) or {}):
                if path not in wanted:
                    yield f"{part} speaks of {path}"
        for path, kind in wanted.items():
            values = [_at(row, path) for row in self.rows]
            if self.is_loose and kind in _FLOATS and not {path} & {*_paths(said.get("minValues") or {})}:
                continue
            low, high, nulls = (_at(said.get(part) or {}, path) for part in ("minValues", "maxValues", "nullCount"))
            yield from (f"{'.'.join(path)}: {each}" for each in _wrong(kind, values, low, high, nulls))

    def _leaves(self) -> list[tuple[tuple[str, ...], Any]]:
        """The columns, and members of structs, that have statistics, by their names in files."""
        settings, partitions = self.metadata.configuration, self.metadata.partition_columns
        inside = [each for each in self.metadata.fields if each["name"] not in partitions]
        named = settings.get("delta.dataSkippingStatsColumns")
        if named is not None:
            return [leaf for each in inside if each["name"] == named.strip("`") for leaf in _leaves_of(each)]
        leaves = [leaf for each in inside for leaf in _leaves_of(each)]
        most = int(settings.get("delta.dataSkippingNumIndexedCols", "32"))
        return leaves if most < 0 else leaves[:most]


def _leaves_of(column: Mapping[str, Any], around: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    path, kind = (*around, physical(column)), column["type"]
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        for each in kind["fields"]:
            yield from _leaves_of(each, path)
    else:
        yield path, kind


def _paths(said: Mapping[str, Any], around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield from _paths(value, (*around, name))
        else:
            yield (*around, name)


def _at(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = None if row is None else row.get(name)
    return row


def _wrong(kind: Any, values: Sequence[Any], low: Any, high: Any, nulls: Any) -> Iterator[str]:
    true = sum(each is None for each in values)
    nested = isinstance(kind, Mapping)
    unsaid = nested or (kind in _FLOATS and any(each is not None and math.isnan(each) for each in values))
    if nulls != true and not (unsaid and nulls is None):
        yield f"{nulls} NULLs are said, there are {true}"
    there = [each for each in values if each is not None]
    if nested or kind in ("boolean", "binary") or not there:
        wanted: tuple[Any, Any] = (None, None)
    elif kind == "string":
        texts = sorted(each.encode() for each in there)
        if not _holds_texts(low, high, texts[0].decode(), texts[-1].decode()):
            yield f"the bounds {low!r} and {high!r} are not those of {texts[0]!r} and {texts[-1]!r}"
        return
    else:
        wanted = _bounds(kind, there)
    if (low, high) != wanted:
        yield f"the bounds are {low!r} and {high!r}, not {wanted!r}"


def _bounds(kind: str, values: Sequence[Any]) -> tuple[Any, Any]:
    """The bounds as JSON has them; none where NaN, or an infinite number, has no place there."""
    if kind in _FLOATS:
        if not all(map(math.isfinite, values)):
            return None, None
        return Decimal(repr(min(values))), Decimal(repr(max(values)))
    if kind == "date":
        return min(values).isoformat(), max(values).isoformat()
    if kind.startswith("timestamp"):
        least, greatest = (plain(kind, each) for each in (min(values), max(values)))
        return _moment(kind, least), _moment(kind, greatest + _ROUND_UP)
    return min(values), max(values)


def _moment(kind: str, value: dt.datetime) -> str:
    return value.isoformat(timespec="milliseconds") + ("Z" if kind == "timestamp" else "")


def _holds_texts(low: Any, high: Any, least: str, greatest: str) -> bool:
    """Whether bounds are these texts, cut to so many characters."""
    if low != least[:_PREFIX] or not isinstance(high, str):
        return False
    if len(greatest) <= _PREFIX:
        return high == greatest
    return high.encode() >= greatest.encode() and high.startswith(greatest[:_PREFIX]) and len(high) <= 2 * _PREFIX
