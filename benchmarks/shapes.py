"""DELETE, UPDATE and MERGE in many shapes of expressions: eleven with targets, and others out of other people's work.

All engines run each shape by turns on copies of one table, and must end with the same rows. Both Sparks run the same
SQL; deltalake has its own spelling where DataFusion's SQL differs, and is left out where it cannot run a shape.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

import anabranch
from benchmarks import judge, peers
from benchmarks.harness import Ratio, Result, Tell
from benchmarks.race import ROUNDS, OnCopies, Race, bounded, figures, of_all, race_on_copies
from benchmarks.shape_list import HELD, SHAPES
from benchmarks.statements import Of, Shape

NAME = "shapes"
SHARE = 10
"""The large tables of the other benchmarks have so many times the rows of this one."""
FILES = 8
PARTITIONS = 50
SMALL_FILES = 500
MARKED = "id % 50 = 3"
"""The rows that are deleted already in one of the tables."""
SOURCE_SHARE = 100
"""The table has so many times the rows of the source of a MERGE."""
WARM_UPS = 1
"""One shape warms up the next, more or less."""
AT_MOST = {peers.DELTA_SPARK: 0.3, peers.DELTALAKE: 0.6}

_TEXTS = "concat_ws('|', word, name, coalesce(note, '-'), coalesce(CAST(closed AS VARCHAR), '-'))"
PROOF = judge.held(
    *("count(*)", "sum(id)", "sum(percent)", "sum(p)", "count(note)", "count(closed)"),
    *("sum(CASE WHEN flag THEN id % 1009 ELSE 0 END)", "sum(CAST(at AS BIGINT) / 1000000)", "sum(CAST(day AS INT))"),
    *("sum(CAST(round(amount * 100) AS BIGINT))", "sum(id % 1009 * CAST(round(price * 100) AS BIGINT))"),
    "sum(id % 1009 * CAST(round(amount * 100) AS BIGINT))",
    f"sum(id % 1009 * ascii(md5({_TEXTS})))",
)


def run(folder: Path, rows: int, tell: Tell, *, shapes: Sequence[Shape] = SHAPES) -> Result:
    """Measure on a tenth of this many rows."""
    data = made(folder, rows // SHARE, tell)
    races = [_raced(each, data, tell) for each in shapes]
    held = [race for shape, race in zip(shapes, races, strict=True) if shape in HELD]
    found = figures(NAME, races)
    return Result(
        name=NAME,
        title="DELETE, UPDATE and MERGE in many shapes",
        setting=f"{rows // SHARE:,} rows, {len(_TYPES)} columns, {FILES} or {SMALL_FILES} files or {PARTITIONS}"
        " partitions;"
        f" MERGE of a table of 1% of the rows, half of them new; {peers.SETTING}, warm, a fresh copy for each run,"
        f" {ROUNDS} rounds by turns",
        lines=found.lines,
        ratios=[*_overall(held, races), *_bounded(found.ratios, held)],
        differences=found.differences,
        notes=[
            peers.BESIDE,
            "Whose statement each shape is stands in `benchmarks/shape_list.py` and `shape_merges.py`.",
            *(f"{each.what}: without deltalake, since {each.why_not}." for each in shapes if each.why_not),
            peers.MEMORY_NOTE,
        ],
    )


def _overall(held: Sequence[Race], races: Sequence[Race]) -> list[Ratio]:
    found = [of_all(NAME, "the slowest of the shapes with a target", held, peer, max) for peer in AT_MOST]
    found += [of_all(NAME, "the slowest of all shapes", races, peer, max) for peer in AT_MOST]
    found += [of_all(NAME, "the median of all shapes", races, peer, statistics.median) for peer in AT_MOST]
    return [ratio for each in found for ratio in each]


def _bounded(ratios: Sequence[Ratio], held: Sequence[Race]) -> list[Ratio]:
    names = {ratio.what for race in held for ratio in race.ratios(NAME)}
    return [bounded(each, AT_MOST) if each.what in names else each for each in ratios]


def _raced(shape: Shape, data: Data, tell: Tell) -> Race:
    sides = sides_of(shape, data)
    found = race_on_copies(shape.what, sides, tell, warm_ups=WARM_UPS)
    peers.clear(sides)
    return found


def sides_of(shape: Shape, data: Data) -> dict[str, OnCopies]:
    """Who runs a shape."""
    rust = shape.rust or shape.statement
    sides = peers.changing(
        shape.statement.text(data.source),
        lambda path: rust.by_deltalake(path, data.source),
        data.tables[shape.of],
        PROOF,
    )
    return {name: side for name, side in sides.items() if name != peers.DELTALAKE or not shape.why_not}


# -- data --------------------------------------------------------------------------------------------------------------


_DAY = 24 * 60 * 60 * 1_000_000
_TYPES = pa.schema(
    {
        **{"id": pa.int64(), "percent": pa.int32(), "p": pa.int32(), "word": pa.string(), "name": pa.string()},
        **{"amount": pa.float64(), "price": pa.decimal128(12, 2), "day": pa.date32()},
        **{"at": pa.timestamp("us", "UTC"), "flag": pa.bool_(), "note": pa.string(), "closed": pa.date32()},
    }
)


@dataclass(frozen=True)
class Data:
    """The tables, each in both forms, and what is merged into them."""

    tables: Mapping[Of, peers.Tables]
    source: Path


def made(folder: Path, rows: int, tell: Tell) -> Data:
    """All tables; the same rows each time."""
    tables = {
        of: peers.Tables(*(made_of(folder, rows, of, vectors=vectors, tell=tell) for vectors in (True, False)))
        for of in Of
    }
    tell("marking rows")
    peers.session().sql(f"DELETE FROM delta.`{tables[Of.MARKED].marking}` WHERE {MARKED}")
    return Data(tables, source(folder, rows))


def made_of(folder: Path, rows: int, of: Of, *, vectors: bool, tell: Tell) -> Path:
    """One table; without vectors the marked one lacks the rows that the other will mark."""
    path = folder / f"{of.name.lower()}-{'vectors' if vectors else 'plain'}"
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    parts = {Of.SPLIT: 1, Of.SMALL: SMALL_FILES}.get(of, FILES)
    tell(f"writing {path.name}, {rows:,} rows")
    for part in range(parts):
        ids = np.arange(part * rows // parts, (part + 1) * rows // parts)
        given, first = rows_of(ids, part), part == 0
        given = given.filter(pa.array(ids % 50 != 3)) if of is Of.MARKED and not vectors else given
        partition_by = "p" if of is Of.SPLIT else None
        anabranch.append(path, given, partition_by=partition_by, properties=properties if first else None)
    return path


def source(folder: Path, rows: int) -> Path:
    """A table of one file with 1% as many rows, half of them new, each with what shall be done with it."""
    path, count, dice = folder / "source", rows // SOURCE_SHARE, np.random.default_rng(7)
    ids = np.concatenate([dice.choice(rows, count // 2, replace=False), np.arange(rows, rows + count - count // 2)])
    dice.shuffle(ids)
    op = pa.array(["INSERT", "UPDATE", "DELETE"]).take(pa.array(np.arange(count) % 3))
    given = rows_of(ids, 99).append_column("op", op).append_column("deleted", pc.equal(op, "DELETE"))
    write_deltalake(path, given)
    return path


def rows_of(ids: np.ndarray, seed: int) -> pa.Table:
    """Random rows of these ids: but the id and the partition, which follow from it, all is drawn."""
    dice, count = np.random.default_rng(seed), len(ids)
    numbers, closed = dice.integers(0, 10_000, count), dice.integers(0, 1000, count)
    letters = pa.array([chr(65 + i) for i in range(26)]).take(pa.array(numbers % 26))
    notes = pa.array([None, *(f"note {i}" for i in range(49))], pa.string())
    words = pa.array([f"{start}{i:02d}" for i in range(PARTITIONS) for start in ("word", "Word")])
    columns = {
        "id": ids,
        "percent": dice.integers(0, 100, count),
        "p": ids // 100 % PARTITIONS,
        "word": words.take(pa.array(dice.integers(0, len(words), count))),
        "name": pc.binary_join_element_wise(letters, pa.array(numbers).cast(pa.string()), "nna "),
        "amount": dice.integers(0, 100_000, count) / 100,
        "price": pc.multiply(pa.array(dice.integers(0, 100_000, count)).cast(pa.decimal128(19, 0)), Decimal("0.01")),
        "day": dice.integers(19_000, 20_000, count).astype("datetime64[D]"),
        "at": dice.integers(19_000 * _DAY, 20_000 * _DAY, count).astype("datetime64[us]"),
        "flag": dice.integers(0, 20, count) > 0,
        "note": notes.take(pa.array(dice.integers(0, len(notes), count))),
        "closed": pa.array((19_300 + closed).astype("datetime64[D]"), mask=closed >= 100),
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()}).cast(_TYPES)
