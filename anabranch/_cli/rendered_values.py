"""Values of commands and of SQL as JSON, and as text in a cell of a table.

Pure. Guarantee: every value of Spark's has a JSON value, without loss: values that JSON cannot represent exactly
(timestamps, spans, decimals, bytes, numbers that are not finite) become text.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from anabranch._protocol.schema.intervals import DAY_SECOND, interval_text


def json_value(value: Any) -> Any:
    """A value as JSON has it.

    Example:
        >>> json_value({"day": dt.date(2026, 1, 31), "price": Decimal("1.50"), "found": [float("nan")]})
        {'day': '2026-01-31', 'price': '1.50', 'found': ['NaN']}
    """
    if hasattr(value, "asDict"):  # a Spark row
        value = value.asDict()
    if isinstance(value, Mapping):
        return {_key(name): json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return json.loads(value.toJson()) if hasattr(value, "toJson") else plain_text(value)  # a variant


def cell_text(value: Any) -> str:
    """A value as text in a cell: values with parts as JSON, others as plain text."""
    if isinstance(value, Mapping | list | tuple) or hasattr(value, "asDict") or hasattr(value, "toJson"):
        return json.dumps(json_value(value), ensure_ascii=False)
    return plain_text(value)


def plain_text(value: Any) -> str:
    """A value without parts as text: timestamps and decimals in full, spans as Spark spells them, bytes in base64."""
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ", timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return interval_text(value, DAY_SECOND)
    if isinstance(value, Decimal):
        return f"{value:f}"
    value = getattr(value, "wkb", value)  # of a geometry or geography
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def _key(name: Any) -> str:
    """The key of a map as the name of a field."""
    return name if isinstance(name, str) else cell_text(name)
