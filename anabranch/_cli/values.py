"""Values of commands and of SQL as JSON has them, and as a cell of a table shows them.

Pure. Guarantee: every value of Spark's has a JSON value, without loss: what JSON cannot hold exactly (moments,
decimals, bytes, numbers that are not finite) becomes text.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def json_value(value: Any) -> Any:
    """A value as JSON has it.

    Example:
        >>> json_value({"day": dt.date(2026, 1, 31), "price": Decimal("1.50"), "found": [float("nan")]})
        {'day': '2026-01-31', 'price': '1.50', 'found': ['NaN']}
    """
    if hasattr(value, "asDict"):  # a row of Spark's
        value = value.asDict()
    if isinstance(value, Mapping):
        return {_key(name): json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return json.loads(value.toJson()) if hasattr(value, "toJson") else plain_text(value)  # a variant


def cell_text(value: Any) -> str:
    """A value as a cell shows it: what has parts as JSON, anything else as text."""
    if isinstance(value, Mapping | list | tuple) or hasattr(value, "asDict") or hasattr(value, "toJson"):
        return json.dumps(json_value(value), ensure_ascii=False)
    return plain_text(value)


def plain_text(value: Any) -> str:
    """One value without parts as text: moments and decimals in full, bytes in base64."""
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ", timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def _key(name: Any) -> str:
    """The key of a map as the name of a field."""
    return name if isinstance(name, str) else cell_text(name)
