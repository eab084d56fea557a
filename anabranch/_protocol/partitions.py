"""Partition values: the strings of the log and of Hive folders, and the values that they represent.

Knows PROTOCOL.md, section "Partition Value Serialization", and the escaping of Spark's folder names. Knows nothing of
snapshots or stores. Pure. Guarantee: ``read_value(write_value(v, t), t) == v``; null and the empty string are null for
every type; a text that is not a value of the type is refused, never guessed.

By the protocol, a ``timestamp`` without a zone is in the zone of the system that wrote it, which the log does not
record. It is read as UTC; *decisions* on such values must allow for every zone (`has_zone`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from math import isfinite, isnan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.schema.intervals import INTERVALS, interval_text, read_interval
from anabranch._protocol.schema.types import INTEGERS, Struct, arrow_type, decimal_of
from anabranch.errors import InvalidPartitionValue

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_ZONE = r"Z|[+-][0-9]{2}:?[0-9]{2}"
_CLOCK = re.compile(rf"([0-9]{{1,2}}):([0-9]{{2}}):([0-9]{{2}})(?:\.([0-9]{{1,6}}))?({_ZONE})?")
_ZONED = rf"({_ZONE})$"
_EXACTLY = Context(prec=38, traps=[Inexact, InvalidOperation])
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


# -- text to value -----------------------------------------------------------------------------------------------------


def read_value(text: str | None, data_type: str) -> Any:
    """The Python value of a partition string; None for null and for the empty string.

    ``timestamp`` gives an aware datetime in UTC, ``timestamp_ntz`` a naive one, ``binary`` the UTF-8 bytes of the text,
    an interval a number of months or a ``timedelta``. Raises `ValueError` if the text is not a value of the type, or
    partitions do not support the type.

    Example:
        >>> read_value("2020-01-31", "date"), read_value("", "string")
        (datetime.date(2020, 1, 31), None)
    """
    if text is None or text == "":
        return None
    if data_type in _BITS:
        return _integer(text, _BITS[data_type])
    if (digits := decimal_of(data_type)) is not None:
        return _decimal(text, *digits)
    if data_type in INTERVALS:
        return read_interval(text, data_type)
    if data_type not in _READERS:
        raise ValueError(f"no partition has values of the type {data_type}")
    return _READERS[data_type](text)


def _integer(text: str, bits: int) -> int:
    value = int(_require_pattern(_INTEGER, text))
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ValueError(f"{text} does not fit {bits} bits")
    return value


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    try:
        value = _EXACTLY.quantize(Decimal(_require_pattern(_NUMBER, text)), Decimal((0, (1,), -scale)))
    except ArithmeticError:
        value = None
    if value is None or len(value.as_tuple().digits) > precision:
        raise ValueError(f"{text} does not fit decimal({precision},{scale})")
    return value


def _float(text: str) -> float:
    return float(text if _SPECIAL.fullmatch(text) else _require_pattern(_NUMBER, text))


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _date(text: str) -> date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    return date(*map(int, match.groups()))


def _timestamp(text: str) -> datetime:
    moment, offset = _moment(text)
    try:
        return (moment - offset).replace(tzinfo=UTC)
    except OverflowError:  # its zone moves it before the first year, or past the last
        raise ValueError(f"{text!r} lies outside the years 1 to 9999") from None


def _timestamp_ntz(text: str) -> datetime:
    return _moment(text)[0]  # a zone has no meaning for a local time; Spark drops it too


def _moment(text: str) -> tuple[datetime, timedelta]:
    """Local date and time, and the zone's offset from UTC (zero if there is none)."""
    day, _, clock = text.strip().replace("T", " ", 1).partition(" ")
    match = _CLOCK.fullmatch(clock or "00:00:00")
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    hour, minute, second, fraction, zone = match.groups()
    moment = time(int(hour), int(minute), int(second), int((fraction or "").ljust(6, "0")))
    return datetime.combine(_date(day), moment), _offset(zone or "Z")


def _offset(zone: str) -> timedelta:
    if zone == "Z":
        return timedelta(0)
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return ahead if zone[0] == "+" else -ahead


def _require_pattern(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r} is not a number")
    return text.strip()


_READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "binary": str.encode,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "float": lambda text: _single(_float(text)),
    "double": _float,
}


# -- value to text -----------------------------------------------------------------------------------------------------


def write_value(value: Any, data_type: str) -> str | None:
    """The partition string of a Python value; None for null, an empty string, and no bytes.

    A ``timestamp`` must be aware and is written in UTC, as the protocol recommends. Raises `ValueError` if the value is
    not one of the type, or (``binary``) is not the UTF-8 bytes of a text: a partition string can represent no more.

    Example:
        >>> write_value(datetime(2020, 1, 31, tzinfo=timezone.utc), "timestamp")
        '2020-01-31T00:00:00.000000Z'
    """
    if value is None:
        return None
    value = _single(value) if data_type == "float" else value
    text = _text_of(value, data_type)
    read = read_value(text, data_type)
    if read == value or (isinstance(read, float) and isnan(read) and isnan(value)):
        return text or None
    if text == "":
        return None
    raise ValueError(f"{value!r} is not a {data_type}")


def _text_of(value: Any, data_type: str) -> str:
    if data_type in ("float", "double"):
        return _float_text(value, data_type)
    if data_type == "timestamp":
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if data_type == "timestamp_ntz":
        return value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
    if data_type == "boolean":
        return "true" if value else "false"
    if data_type == "binary":
        return bytes(value).decode()
    if data_type in INTEGERS or data_type in ("string", "date"):
        return str(value)
    if data_type in INTERVALS:
        return interval_text(value, data_type)
    return f"{_decimal(format(value, 'f'), *(decimal_of(data_type) or (0, 0))):f}"


def _float_text(value: float, data_type: str) -> str:
    """The shortest digits that parse back to the value, in Java's spelling; for some numbers, most of them very large
    or very small, Java itself writes other digits.
    """
    shortest = str(np.float32(value)) if data_type == "float" else repr(float(value))
    if not isfinite(value) or value == 0:
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(shortest, shortest)
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    figures, power = "".join(map(str, digits)), len(digits) - 1 + exponent
    if -3 <= power < 7:
        plain = f"{Decimal(shortest):f}"
        text = plain if "." in plain else f"{plain}.0"
    else:
        text = f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{power}"
    return text


# -- columns -----------------------------------------------------------------------------------------------------------


def map_column(maps: pa.Array | pa.ChunkedArray, key: str) -> pa.Array:
    """The values of one key of a ``map<string, string>`` column; null where map, key or value is missing."""
    column = pc.map_lookup(maps, pa.scalar(key, pa.string()), "last")
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def partition_arrays(
    files: pa.Table, schema: Struct, columns: Iterable[str], table: str | None = None
) -> dict[str, pa.Array]:
    """The typed partition values of files, one array per column and one value per file.

    Args:
        files: a table with the columns ``path`` and ``partitionValues`` of `anabranch._protocol.actions.FILES`.
        schema: the table's schema, with types, and with physical names if columns are mapped.
        columns: partition columns in the schema's spelling.
        table: for messages.

    Raises:
        InvalidPartitionValue: naming the first file with a text that is not a value of its column's type.
    """
    return {name: _read_column(files, schema, name, table) for name in columns}


def _read_column(files: pa.Table, schema: Struct, name: str, table: str | None) -> pa.Array:
    field = schema.field(name)
    texts = map_column(files["partitionValues"], field.physical_name)
    values, valid = read_values(texts, str(field.type))
    if valid.false_count:
        row = pc.index(valid, False).as_py()
        facts = {"file": files["path"][row].as_py(), "column": name, "type": field.type, "value": texts[row].as_py()}
        raise InvalidPartitionValue(**facts, **({} if table is None else {"table": table}))
    return values


def read_values(texts: pa.Array, data_type: str) -> tuple[pa.Array, pa.Array]:
    """Typed values of partition strings, and for each whether its text is a value of the type (null is).

    Each distinct text is parsed once, so the cost follows the number of partitions, not of files.
    """
    encoded = texts.dictionary_encode()
    read = [_read_or_error(text, data_type) for text in encoded.dictionary.to_pylist()]
    good = pa.array([not isinstance(value, ValueError) for value in read], pa.bool_())
    values = pa.array([None if isinstance(value, ValueError) else value for value in read], arrow_type(data_type))
    return values.take(encoded.indices), pc.fill_null(good.take(encoded.indices), True)


def write_values(values: pa.Array | pa.ChunkedArray, data_type: str) -> pa.Array:
    """The partition strings of typed values; each distinct value is written once. Raises ValueError as
    `write_value`.
    """
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = whole.dictionary_encode()
    words = [write_value(value, data_type) for value in encoded.dictionary.to_pylist()]
    return pa.array(words, pa.string()).take(encoded.indices)


def split(
    rows: pa.Table, texts: Mapping[str, pa.Array | pa.ChunkedArray]
) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Split rows by their combination of partition strings; an empty string is null.

    Args:
        texts: for each partition key, the string of each row.
    """
    if not texts:
        yield {}, rows
        return
    keys = {
        str(i): pc.if_else(pc.equal(texts_of_key, ""), None, texts_of_key)
        for i, texts_of_key in enumerate(texts.values())
    }
    numbered = pa.table({**keys, "row": pa.array(np.arange(len(rows)))})
    # Without Arrow's threads: the rows may be Python's (see `storage.native`), and writing files costs the most anyway.
    groups = numbered.group_by(list(keys), use_threads=False).aggregate([("row", "list")])
    places = groups["row_list"].combine_chunks()
    for i, group in enumerate(groups.select([*keys]).to_pylist()):
        yield dict(zip(texts, group.values(), strict=True)), rows.take(places[i].values)


def has_zone(texts: pa.Array) -> pa.Array:
    """Whether each ``timestamp`` string determines its instant, in any writer's zone; null for null."""
    return pc.match_substring_regex(texts, _ZONED)


def names_no_instant(files: pa.Table, key: str) -> bool:
    """Whether some timestamp among the partition values of these files has no zone."""
    return not pc.all(has_zone(map_column(files["partitionValues"], key).drop_null()), min_count=0).as_py()


def _read_or_error(text: str, data_type: str) -> Any:
    try:
        return read_value(text, data_type)
    except ValueError as error:
        return error


# -- folders -----------------------------------------------------------------------------------------------------------


def hive_segment(column: str, value: str | None) -> str:
    """The folder name ``column=value`` of a partition in Spark; ``value`` as in the log.

    The characters of Spark's ``ExternalCatalogUtils`` are escaped as ``%XX``. In an ``add.path`` the segment is
    URL-encoded once more, as all paths there are.

    Example:
        >>> hive_segment("day", "a/b"), hive_segment("day", None)
        ('day=a%2Fb', 'day=__HIVE_DEFAULT_PARTITION__')
    """
    return f"{_escape(column)}={_escape(value) if value else HIVE_NULL}"


def parse_hive_path(path: str, columns: Iterable[str]) -> dict[str, str | None]:
    """The partition strings in the folders of a '/'-separated path that is not URL-encoded, such as
    ``year=2020/day=a%2Fb/part-0.parquet``, for those of ``columns`` that occur, ignoring case.
    """
    pairs = (segment.partition("=") for segment in path.split("/")[:-1])
    folders = {_unescape(name).lower(): _unescape(value) for name, equals, value in pairs if equals}
    present = [column for column in columns if column.lower() in folders]
    return {column: None if (text := folders[column.lower()]) in ("", HIVE_NULL) else text for column in present}


def partition_folders(path: str) -> list[str | None]:
    """The partition strings in the folders of such a path, whatever the columns are called.

    Example:
        >>> partition_folders("00000/by_year=2020/day=a%2Fb/part-0.parquet")
        ['2020', 'a/b']
    """
    values = [value for name, value in folders_of(path) if name is not None]
    return [None if value in ("", HIVE_NULL) else value for value in values]


def folders_of(path: str) -> list[tuple[str | None, str]]:
    """The folders of a path: column and value of each, or None and its own name."""
    parts = [segment.partition("=") for segment in path.split("/")[:-1]]
    return [(_unescape(name), _unescape(value)) if equals else (None, name) for name, equals, value in parts]


def _escape(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
