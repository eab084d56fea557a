"""Entries that format and parse dates and timestamps by a pattern: ``date_format``, and ``to_date`` and
``to_timestamp`` of a text.

A pattern is supported if it consists of four-digit years, two-digit months, days, hours, minutes and seconds, digits of
a second (only when parsing), and plain signs or quoted words between them. A text that does not match its pattern
letter for letter is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import check_years, date_or_local, instants
from anabranch._protocol.expressions.common_types import MOMENTS
from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported, Datum, Fit, Site, add, constant_of
from anabranch._protocol.unsupported import Unsupported

_RUN = re.compile(r"([A-Za-z])\1*|[-/:., ]|'[A-Za-z ]+'")
"""One field of a pattern, a sign between fields, or a quoted word."""
_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_FIELDS = {
    "yyyy": "([0-9]{4})",
    "MM": "(0[1-9]|1[0-2])",
    "dd": "(0[1-9]|[12][0-9]|3[01])",
    "HH": "([01][0-9]|2[0-3])",
    "mm": "([0-5][0-9])",
    "ss": "([0-5][0-9])",
    **{"S" * count: f"([0-9]{{{count}}})" for count in range(1, 7)},
}
_FULL = (
    *(("", "yyyy", "1970"), ("-", "MM", "01"), ("-", "dd", "01")),
    *((" ", "HH", "00"), (":", "mm", "00"), (":", "ss", "00"), (".", "S", "0")),
)
"""A full timestamp: its fields, each with the sign before it, and with its value if a pattern lacks it."""


def _runs(pattern: str, fields: dict[str, str]) -> list[str]:
    """Split a pattern into runs. Raises ArgumentsNotSupported: it has an unsupported one."""
    runs = [match[0] for match in _RUN.finditer(pattern)]
    if not runs or "".join(runs) != pattern or not all(run in fields for run in runs if run.isalpha()):
        raise ArgumentsNotSupported("the pattern may only have yyyy, MM, dd, HH, mm, ss and plain signs")
    return runs


# -- formatting --------------------------------------------------------------------------------------------------------


def _date_format_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type not in MOMENTS:
        raise ArgumentsNotSupported("the arguments must be a date or timestamp and a pattern")
    runs = _runs(constant_of(arguments[1], "string"), _FORMATS)
    spelled = "".join(_FORMATS.get(run, run.strip("'")) for run in runs)
    return Fit("string", (str(arguments[0].type), "string"), (spelled,))


def _date_format(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    """Spark converts each value to an instant, which has the same local time if the zone's offset never changes."""
    if site.zone is None:
        raise Unsupported("the offset of the session's time zone changes")
    local_times = date_or_local(arguments[0], site).cast(pa.timestamp("us"))
    seconds = pc.floor_temporal(local_times, unit="second").cast(pa.timestamp("s"))
    return pc.strftime(seconds, options[0])


add("date_format", _date_format_fit, _date_format)


# -- parsing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """How to complete a text to a full timestamp.

    Attributes:
        regular: the regular expression that it has to match.
        full: the replacement that spells the timestamp, with the groups of the match.
    """

    regular: str
    full: str


def _reading(pattern: str) -> _Reading:
    runs = _runs(pattern, _FIELDS)
    fields = [run for run in runs if run in _FIELDS]
    names = ["S" if field[0] == "S" else field for field in fields]
    if len({*names}) < len(names):
        raise ArgumentsNotSupported("a pattern that has a field twice")
    regular = "".join(_FIELDS.get(run) or re.escape(run.strip("'")) for run in runs)
    places = {name: f"\\{number}" for number, name in enumerate(names, 1)}
    full = "".join(sign + places.get(name, usual) for sign, name, usual in _FULL)
    return _Reading(f"^{regular}$", full)


def _text_fit(gives: str) -> Any:
    def fit(arguments: Sequence[Argument]) -> Fit:
        if len(arguments) != 2 or arguments[0].type != "string":
            raise ArgumentsNotSupported("the arguments must be a text and a pattern")
        return Fit(gives, ("string",), (_reading(constant_of(arguments[1], "string")),))

    return fit


def _parse(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    (texts,), (reading,) = arguments, options
    if not pc.all(pc.match_substring_regex(texts, reading.regular), min_count=0).as_py():
        raise Unsupported("a text does not match its pattern")
    full = pc.replace_substring_regex(texts, reading.regular, reading.full)
    moments = full.cast(pa.timestamp("us"))  # raises for a day that does not exist
    check_years(moments)
    if gives == "date":
        return pc.floor_temporal(moments, unit="day").cast(pa.date32())
    return moments if gives == "timestamp_ntz" else instants(moments, site)


add("to_date", _text_fit("date"), _parse)
add("to_timestamp_ltz", _text_fit("timestamp"), _parse)
add("to_timestamp_ntz", _text_fit("timestamp_ntz"), _parse)
