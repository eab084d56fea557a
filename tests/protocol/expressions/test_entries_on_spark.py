"""Each value that is computed here is the one that Spark computes: drawn trees over rows of edge values.

A tree is computed for all rows at once, or row by row where it is left to Spark for some; Spark is asked for the rows
that were computed, so that an error of Spark's is a difference, too.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch._protocol.expressions.computation import Computation, computation_over
from anabranch._protocol.expressions.resolving import ALTERING, TIMESTAMP_TYPES, TIMESTAMPS, altered_settings
from anabranch._protocol.schema.types import VOID, Field, Struct
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.columns.types import spark_schema
from tests.protocol.expressions.drawn_patterns import drawn_pattern, drawn_searched
from tests.protocol.expressions.typed_texts import COLUMNS, Texts, rows
from tests.support.tiers import examples, few_of

pytestmark = [pytest.mark.spark, pytest.mark.whole]

ZONES: dict[str, dt.tzinfo | None] = {"UTC": dt.UTC, "+05:30": dt.timezone(dt.timedelta(hours=5, minutes=30))}
ZONES |= {"Europe/Berlin": None}
SETTINGS = [
    ("true", "UTC", "TIMESTAMP_LTZ", "usual"),
    ("false", "UTC", "TIMESTAMP_LTZ", "usual"),
    ("false", "UTC", "TIMESTAMP_NTZ", "altered"),
    ("true", "+05:30", "TIMESTAMP_NTZ", "usual"),
    ("false", "Europe/Berlin", "TIMESTAMP_LTZ", "altered"),
]
_OTHERWISE = {"true": "false", "false": "true", "corrected": "LEGACY"}
_AT_ONCE = 40
_TEXT = Struct((Field("s", "string"),))


@dataclass(frozen=True)
class Case:
    """A text with what is computed of it; ``is_known`` tells for which rows."""

    text: str
    computation: Computation
    values: list[Any]
    is_known: list[bool]


def case(
    text: str,
    batch: pa.RecordBatch,
    zone: dt.tzinfo | None,
    *,
    altered: frozenset[str] = frozenset(),
    timestamp: str | None = None,
) -> Case | None:
    """None where only Spark computes it."""
    found = computation_over(text, COLUMNS, zone, altered=altered, timestamp=timestamp)
    if found.reason is not None or found.tree.type == VOID:
        return None
    try:
        return Case(text, found, found.values(batch).to_pylist(), [True] * len(batch))
    except Unsupported:
        several = [_one(found, batch.slice(i, 1)) for i in range(len(batch))]
    return Case(text, found, [value for value, _ in several], [known for _, known in several])


def _one(computation: Computation, row: pa.RecordBatch) -> tuple[Any, bool]:
    try:
        return computation.values(row)[0].as_py(), True
    except Unsupported:
        return None, False


def differences(spark: SparkSession, cases: Sequence[Case], table: pa.Table, folder: Path) -> Iterator[str]:
    """What Spark says otherwise, of several cases or, where it refuses them together, of one after the other."""
    for i, each in enumerate(cases):
        table = table.append_column(f"known_{i}", pa.array(each.is_known))
    pq.write_table(table, folder / "rows.parquet")
    yield from _differences(spark.read.parquet(str(folder / "rows.parquet")).selectExpr, list(enumerate(cases)))


def _differences(select: Callable[..., Any], cases: list[tuple[int, Case]]) -> Iterator[str]:
    texts = [f"CASE WHEN known_{i} THEN ({each.text}\n) END AS x{i}" for i, each in cases]
    try:
        asked = select(*texts)
        schema, found = asked.schema, asked.toArrow()
    except PySparkException as error:
        if len(cases) == 1:
            yield f"{cases[0][1].text}: Spark says {str(error)[:300]}"
        else:
            half = len(cases) // 2
            yield from _differences(select, cases[:half])
            yield from _differences(select, cases[half:])
        return
    for at, (_, each) in enumerate(cases):
        wanted = spark_schema(Struct((Field("x", each.computation.tree.type or VOID),))).fields[0].dataType
        if schema.fields[at].dataType != wanted:
            yield f"{each.text}: the type is {schema.fields[at].dataType}, and here {wanted}"
        theirs = found.column(at).to_pylist()
        pairs = zip(each.values, theirs, each.is_known, strict=True)
        wrong = [(_plain(a), _plain(b)) for a, b, known in pairs if known and _plain(a) != _plain(b)]
        if wrong:
            yield f"{each.text}: (here, Spark) {wrong[:3]}"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)  # a zero has a sign
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


@pytest.fixture
def settings(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    *values, how = request.param
    names = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", TIMESTAMPS)
    chosen = dict(zip(names, values, strict=True))
    for name, each in ALTERING.items() if how == "altered" else ():
        chosen[name] = _OTHERWISE[each.usual]
    before = {name: str(spark.conf.get(name)) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.classic("sessions of several settings")
@pytest.mark.parametrize("settings", SETTINGS, indirect=True)
def test_what_is_computed_is_what_spark_computes(spark: SparkSession, tmp_path: Path, settings: None) -> None:
    zone = ZONES[spark.conf.get("spark.sql.session.timeZone") or ""]
    draw, computed, known = random.Random(38), 0, 0
    altered = altered_settings({name: str(spark.conf.get(name)) for name in ALTERING})
    told: Any = {"altered": altered, "timestamp": TIMESTAMP_TYPES[spark.conf.get(TIMESTAMPS) or ""]}
    texts, rounds = Texts(draw), examples(130, 1)
    for number in range(rounds):
        table = rows(draw, 30)
        (batch,) = table.combine_chunks().to_batches()
        drawn = [case(texts.any(draw.randint(1, 6)), batch, zone, **told) for _ in range(2 * _AT_ONCE)]
        # Of one that is known for no row nothing is asked: Spark computes what is constant for all the same.
        cases = [each for each in drawn if each is not None and any(each.is_known)][:_AT_ONCE]
        folder = tmp_path / str(number)
        folder.mkdir()
        assert list(differences(spark, cases, table, folder)) == []
        computed, known = computed + len(cases), known + sum(sum(each.is_known) for each in cases)
    assert computed >= examples(4_000, 25)  # five settings: 20,000 in all
    assert known > 20 * computed


@pytest.mark.classic("sessions of several settings")
@pytest.mark.parametrize("settings", SETTINGS, indirect=True)
@pytest.mark.parametrize("form", ["moved", "difference", "widened", "counted", "since_the_epoch"])
def test_calls_of_one_kind_are_computed_as_by_spark(
    spark: SparkSession, tmp_path: Path, settings: None, form: str
) -> None:
    """Where clocks change, what is moved by less than a day and local times are known, and no difference is."""
    zone, draw, computed = ZONES[spark.conf.get("spark.sql.session.timeZone") or ""], random.Random(43), 0
    altered = altered_settings({name: str(spark.conf.get(name)) for name in ALTERING})
    told: Any = {"altered": altered, "timestamp": TIMESTAMP_TYPES[spark.conf.get(TIMESTAMPS) or ""]}
    texts = Texts(draw)
    for number in range(examples(8, 1)):
        table = rows(draw, 30)
        (batch,) = table.combine_chunks().to_batches()
        drawn = (case(getattr(texts, form)(draw.randint(0, 2)), batch, zone, **told) for _ in range(10 * _AT_ONCE))
        cases = list(islice((each for each in drawn if each is not None and any(each.is_known)), _AT_ONCE))
        folder = tmp_path / str(number)
        folder.mkdir()
        assert list(differences(spark, cases, table, folder)) == []
        computed += len(cases)
    assert computed >= examples(300, 25) or (zone is None and form == "difference")


@pytest.mark.parametrize("searching", ["s RLIKE {}", "regexp_replace(s, {}, '<é>')"])
def test_a_pattern_finds_what_spark_finds(spark: SparkSession, tmp_path: Path, searching: str) -> None:
    """Each of many drawn patterns in a few texts; Spark is given it by a column."""
    draw, found = random.Random(11), list[dict[str, Any]]()
    for _ in range(examples(15_000, 300)):
        found += _searched(searching, drawn_pattern(draw), [drawn_searched(draw) for _ in range(6)])
    assert len(found) > examples(15_000, 300)
    pq.write_table(pa.Table.from_pylist(found), tmp_path / "texts.parquet")
    theirs = spark.read.parquet(str(tmp_path)).selectExpr("*", f"{searching.format('p')} AS x").toArrow().to_pylist()
    assert [each for each in theirs if each["found"] != each["x"]][:10] == []


def _searched(searching: str, pattern: str, texts: list[str]) -> list[dict[str, Any]]:
    """What is found here of a pattern, for each text of which that is known."""
    computation = computation_over(searching.format(f"r'{pattern}'"), _TEXT)
    if computation.reason is not None:
        return []
    known = [(each, _one(computation, pa.RecordBatch.from_pydict({"s": [each]}))) for each in texts]
    return [{"s": each, "p": pattern, "found": value} for each, (value, is_known) in known if is_known]


@pytest.fixture(params=["true", "false"], ids=["by ICU", "by Java"])
def mapping(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Which library Spark folds letters by."""
    spark.conf.set("spark.sql.icu.caseMappings.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.icu.caseMappings.enabled")


@cache
def _letters(name: str) -> list[str]:
    """All that are folded here."""
    computation = computation_over(f"{name}(s)", _TEXT)
    letters = [chr(code) for code in range(1, 0x11000) if not 0xD800 <= code < 0xE000]
    return [each for each in few_of(letters, 4000) if _one(computation, pa.RecordBatch.from_pydict({"s": [each]}))[1]]


@pytest.mark.parametrize("name", ["lower", "upper", "initcap"])
def test_letters_that_are_folded_here_are_folded_so_by_spark(
    spark: SparkSession, tmp_path: Path, mapping: None, name: str
) -> None:
    """Each by itself, and between two others, since some have another form at the end of a word."""
    known = _letters(name)
    assert len(known) > 1000
    texts = pa.table({"s": [*known, *(f"a{each}b" for each in known), *(f"a{each}" for each in known)]})
    pq.write_table(texts, tmp_path / "texts.parquet")
    theirs = spark.read.parquet(str(tmp_path)).selectExpr("s", f"{name}(s) AS folded").toArrow()
    (batch,) = theirs.select(["s"]).combine_chunks().to_batches()
    ours = computation_over(f"{name}(s)", _TEXT).values(batch).to_pylist()
    triples = zip(batch["s"].to_pylist(), ours, theirs["folded"].to_pylist(), strict=True)
    assert [each for each in triples if each[1] != each[2]][:10] == []


@pytest.mark.parametrize("name", ["hash", "xxhash64"])
def test_texts_of_every_length_are_hashed_as_by_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Lanes, words, half words and single bytes, those above 127 among them; and each seeds the next."""
    draw = random.Random(5)
    texts = ["".join(draw.choice("a1 é漢🙂") for _ in range(length % 131)) for length in range(400)]
    pq.write_table(pa.table({"s": [*texts, None]}), tmp_path / "texts.parquet")
    theirs = (
        spark.read.parquet(str(tmp_path)).selectExpr("s", f"{name}(s) AS x", f"{name}(s, s, 'é', 7L) AS y").toArrow()
    )
    (batch,) = theirs.select(["s"]).combine_chunks().to_batches()
    for text, column in ((f"{name}(s)", "x"), (f"{name}(s, s, 'é', 7L)", "y")):
        assert computation_over(text, _TEXT).values(batch).to_pylist() == theirs[column].to_pylist()
