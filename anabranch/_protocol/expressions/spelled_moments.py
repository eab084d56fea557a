"""Entries for dates and moments that a pattern spells: ``date_format``, and ``to_date`` and ``to_timestamp`` of a text.

A pattern is known here where it is made of years of four digits, of months, days, hours, minutes and seconds of two, of
digits of a second (to read only), and of plain signs or words in quotes between them. A text that it does not spell
letter for letter is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import check_years, instants, local
from anabranch._protocol.expressions.meeting import MOMENTS
from anabranch._protocol.expressions.table import Datum, Fit, Given, Site, Unfit, add, constant_of
from anabranch._protocol.unsupported import Unsupported

_RUN = re.compile(r"([A-Za-z])\1*|[-/:., ]|'[A-Za-z ]+'")
"""One part of a pattern, a sign between them, or a word in quotes."""
_SPELLED = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_READ = {
    "yyyy": "([0-9]{4})",
    "MM": "(0[1-9]|1[0-2])",
    "dd": "(0[1-9]|[12][0-9]|3[01])",
    "HH": "([01][0-9]|2[0-3])",
    "mm": "([0-5][0-9])",
    "ss": "([0-5][0-9])",
    **{"S" * count: f"([0-9]{{{count}}})" for count in range(1, 7)},
}
_FORM = (("yyyy", "1970"), ("-MM", "01"), ("-dd", "01"), (" HH", "00"), (":mm", "00"), (":ss", "00"), (".S", "0"))
"""A moment in full, with what each part is where a pattern does not have it."""


def _runs(pattern: str, known: dict[str, str]) -> list[str]:
    """The parts of a pattern. Raises Unfit: it has others."""
    runs = [found[0] for found in _RUN.finditer(pattern)]
    if not runs or "".join(runs) != pattern or not all(each in known for each in runs if each.isalpha()):
        raise Unfit("only by a pattern of yyyy, MM, dd, HH, mm, ss and plain signs is it computed here")
    return runs


# -- written -----------------------------------------------------------------------------------------------------------


def _date_format_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[0].type not in MOMENTS:
        raise Unfit("it is computed here for a date or timestamp and a pattern")
    runs = _runs(constant_of(given[1], "string"), _SPELLED)
    spelled = "".join(_SPELLED.get(each, each.strip("'")) for each in runs)
    return Fit("string", (str(given[0].type), "string"), (spelled,))


def _date_format(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    """Spark makes an instant of any of them, which is the same local time where clocks never change."""
    if site.zone is None:
        raise Unsupported("the clocks of the session's time zone change")
    check_years(arguments[0])
    local_times = arguments[0] if pa.types.is_date(arguments[0].type) else local(arguments[0], site)
    seconds = pc.floor_temporal(local_times.cast(pa.timestamp("us")), unit="second").cast(pa.timestamp("s"))
    return pc.strftime(seconds, options[0])


add("date_format", _date_format_fit, _date_format)


# -- read --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """How a text becomes a moment in full.

    Attributes:
        regular: what it has to match.
        full: the moment, with the groups of the match in it.
    """

    regular: str
    full: str


def _reading(pattern: str) -> _Reading:
    runs = _runs(pattern, _READ)
    parts = [each for each in runs if each in _READ]
    names = ["S" if each[0] == "S" else each for each in parts]
    if len({*names}) < len(names):
        raise Unfit("a pattern that has a part twice")
    regular = "".join(_READ.get(each) or re.escape(each.strip("'")) for each in runs)
    places = {name: f"\\{number}" for number, name in enumerate(names, 1)}
    full = "".join(
        sign.removesuffix(sign.lstrip("-: .")) + places.get(sign.lstrip("-: ."), usual) for sign, usual in _FORM
    )
    return _Reading(f"^{regular}$", full)


def _text_fit(gives: str) -> Any:
    def fit(given: Sequence[Given]) -> Fit:
        if len(given) != 2 or given[0].type != "string":
            raise Unfit("it is computed here for a text and a pattern")
        return Fit(gives, ("string",), (_reading(constant_of(given[1], "string")),))

    return fit


def _read(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    (texts,), (reading,) = arguments, options
    if not pc.all(pc.match_substring_regex(texts, reading.regular), min_count=0).as_py():
        raise Unsupported("a text is not spelled as its pattern says")
    full = pc.replace_substring_regex(texts, reading.regular, reading.full)
    found = full.cast(pa.timestamp("us"))  # raises for a day that no calendar has
    check_years(found)
    if gives == "date":
        return pc.floor_temporal(found, unit="day").cast(pa.date32())
    return found if gives == "timestamp_ntz" else instants(found, site)


add("to_date", _text_fit("date"), _read)
add("to_timestamp_ltz", _text_fit("timestamp"), _read)
add("to_timestamp_ntz", _text_fit("timestamp_ntz"), _read)
