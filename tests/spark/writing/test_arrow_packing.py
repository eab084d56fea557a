"""Packing by Arrow: the same file as Spark's writer makes of the same rows, or none, and nothing is left of it."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as Theirs
from pyroaring import BitMap64
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._arrow import files as arrow_files
from anabranch._arrow import packing
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.parquet_files import read_nan_free
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, Field, Map, Struct, to_arrow
from anabranch._protocol.stats.footers import footer_stats
from anabranch._spark.columns.types import arrow_rows
from anabranch._spark.writing import arrow_clustering, arrow_packing
from anabranch._spark.writing.arrow_packing import local_slots, pack_bins
from anabranch._spark.writing.relocating import pack
from anabranch.commands.staging import is_data_file
from anabranch.errors.process_state import forget
from tests.spark.tables import file_row, file_set, numbered
from tests.support.patience import happens, until

pytestmark = pytest.mark.spark


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be packed without a Spark job."""
    keep_out(monkeypatch)


def keep_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the session for one whose tasks run elsewhere, and everything for large."""
    for module in (arrow_packing, arrow_clustering):
        monkeypatch.setattr(module, "SMALL_BYTES", -1)
        monkeypatch.setattr(module, "local_slots", lambda spark: 0)


def files_in(root: Path, folder: str) -> list[Path]:
    return sorted((root / folder).rglob("*.parquet"))


def left_in(root: Path, folder: str) -> list[Path]:
    return sorted(path for path in (root / folder).rglob("*") if path.is_file())


# -- the same as Spark's writer makes ----------------------------------------------------------------------------------


def some(runtime: random.Random, make: Callable[[], Any], count: int) -> list[Any]:
    return [None if runtime.random() < 0.1 else make() for _ in range(count)]


def value_of(runtime: random.Random, kind: Any) -> Any:
    """A value of one of Delta's types, at random; those at the ends of it too."""
    if isinstance(kind, Struct):
        return {each.name: some(runtime, lambda each=each: value_of(runtime, each.type), 1)[0] for each in kind}
    if isinstance(kind, Array):
        return some(runtime, lambda: value_of(runtime, kind.element), runtime.randrange(4))
    if isinstance(kind, Map):
        keys = {value_of(runtime, kind.key) for _ in range(runtime.randrange(4))}
        return [(key, some(runtime, lambda: value_of(runtime, kind.value), 1)[0]) for key in keys]
    day = dt.datetime(1, 1, 1) + dt.timedelta(days=runtime.randrange(3_652_000), microseconds=runtime.randrange(10**11))
    makers: dict[str, Callable[[], Any]] = {
        "string": lambda: runtime.choice(["", "é\U0001f40b", "a" * 40, "b" * 5000, str(runtime.random())]),
        "long": lambda: runtime.choice([-(2**63), 2**63 - 1, runtime.randrange(100)]),
        "integer": lambda: runtime.choice([-(2**31), 2**31 - 1, 7]),
        "short": lambda: runtime.choice([-(2**15), 2**15 - 1]),
        "byte": lambda: runtime.choice([-128, 127, 0]),
        "float": lambda: runtime.choice([0.0, -0.0, 1.5, -2.25]),
        "double": lambda: runtime.choice([0.0, -0.0, runtime.random(), -1e300]),
        "boolean": lambda: runtime.random() < 0.5,
        "binary": lambda: runtime.randbytes(runtime.randrange(5)),
        "date": lambda: day.date(),
        "timestamp": lambda: day.replace(tzinfo=dt.UTC),
        "timestamp_ntz": lambda: day,
        "decimal(9,2)": lambda: Decimal(runtime.randrange(-(10**9) + 1, 10**9)).scaleb(-2),
        "decimal(18,0)": lambda: Decimal(runtime.randrange(-(10**18) + 1, 10**18)),
        "decimal(38,10)": lambda: Decimal(runtime.randrange(-(10**20), 10**20)).scaleb(-10),
    }
    return makers[kind]()


PLAIN = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(9,2)",
    "decimal(18,0)",
    "decimal(38,10)",
]


def any_type(runtime: random.Random, depth: int = 0) -> Any:
    kind = runtime.random() if depth < 2 else 1.0
    if kind < 0.12:
        return Struct(tuple(Field(f"m{i}", any_type(runtime, depth + 1)) for i in range(runtime.randrange(1, 4))))
    if kind < 0.22:
        return Array(any_type(runtime, depth + 1))
    if kind < 0.3:
        return Map(runtime.choice(["string", "long", "date"]), any_type(runtime, depth + 1))
    return runtime.choice(PLAIN)


def any_files(spark: SparkSession, root: Path, runtime: random.Random) -> FileSet:
    """Files of one schema, by Spark or by Arrow, of which older ones lack its last columns; some rows are deleted."""
    mapped, tracked = runtime.random() < 0.5, runtime.random() < 0.5
    kinds = [*runtime.sample(PLAIN, 4), *(any_type(runtime) for _ in range(3))]
    fields = [Field(f"c{i}", kind) for i, kind in enumerate(kinds)]
    rows, deleted = [], {}
    for number in range(runtime.randrange(1, 5)):
        there = fields[: runtime.randrange(4, len(fields) + 1)]
        count = runtime.choice([0, 1, 50, 700])
        data = {each.name: some(runtime, lambda k=each.type: value_of(runtime, k), count) for each in there}
        schema = Struct(tuple(there))
        if tracked and runtime.random() < 0.5:
            schema = Struct((*there, Field("hidden_id", "long"), Field("hidden_version", "long")))
            data |= {name: some(runtime, lambda: runtime.randrange(9), count) for name in schema.names[-2:]}
        name = f"f{number}.parquet"
        row = file_row(root, name, pa.table(data, to_arrow(schema)))
        if count and runtime.random() < 0.5:
            by_spark(spark, root / name, schema)
        elif runtime.random() < 0.5:
            pq.write_table(pq.ParquetFile(root / name).read(), root / name, row_group_size=100, store_schema=False)
        rows.append(row | {"baseRowId": 1000 * number, "defaultRowCommitVersion": number} if tracked else row)
        if runtime.random() < 0.6:
            deleted[name] = runtime.sample(range(count), count // runtime.choice([1, 2, 10]))
    found = file_set(root, rows, Struct(tuple(map(numbered_field, fields) if mapped else fields)), deleted=deleted)
    codec = runtime.choice(["snappy", "zstd", "gzip", "lz4_raw", "uncompressed"])
    return replace(
        found,
        rules=Rules(codec=codec),
        tracked=HiddenColumns("hidden_id", "hidden_version") if tracked else None,
    )


def numbered_field(field: Field) -> Field:
    """The column under another name in the table than in files, members too, as of a table with column mapping."""
    number = int(field.name[1:]) + 1
    said = {"delta.columnMapping.physicalName": field.name, "delta.columnMapping.id": number}
    return Field(f"logical_{field.name}", field.type, metadata=said)


def by_spark(spark: SparkSession, file: Path, schema: Struct) -> None:
    """Have Spark write the file."""
    rows = arrow_rows(spark, pq.ParquetFile(file).read().cast(to_arrow(schema)))
    options = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    rows.coalesce(1).write.mode("overwrite").options(**options).parquet(f"{file}.folder")
    [written] = Path(f"{file}.folder").glob("*.parquet")
    written.replace(file)


@pytest.mark.parametrize("seed", range(14))
def test_arrow_makes_the_file_that_spark_makes(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files with columns of any types, mapped or tracked or not: rows, order, types, numbers and statistics."""
    runtime = random.Random(seed)
    files = any_files(spark, tmp_path, runtime)
    if runtime.random() < 0.5:
        keep_out(monkeypatch)
    monkeypatch.setattr(packing, "GROUP_BYTES", runtime.choice([1, 20_000, 1 << 27]))
    pack(spark, files, "native")
    assert pack_bins(spark, [(files, "arrow")]) == {0}
    theirs = [each for each in files_in(tmp_path, "native") if pq.read_metadata(each).num_rows]
    ours = files_in(tmp_path, "arrow")
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert_alike(one, other, files)
        assert_read_alike(spark, one, other)


def assert_alike(ours: Path, theirs: Path, files: FileSet) -> None:
    one, other = pq.ParquetFile(ours), pq.ParquetFile(theirs)
    assert one.schema_arrow.remove_metadata().equals(other.schema_arrow.remove_metadata(), check_metadata=True)
    assert shapes(one) == shapes(other)
    assert one.read().equals(other.read())
    for column in range(one.metadata.num_columns):
        chunks = [each.metadata.row_group(0).column(column).compression for each in (one, other)]
        assert chunks[0] == chunks[1]
    stats = json.loads(footer_stats(one.metadata, files.schema, -1, nan_free=read_nan_free(one.metadata)))
    known = json.loads(footer_stats(other.metadata, files.schema, -1))
    # Spark's writer tells nothing of a column of long texts, Arrow's how many are NULL.
    assert holds(stats.pop("nullCount"), known.pop("nullCount"))
    assert stats == known
    duck = [duckdb.sql(f"SELECT * FROM '{each}'").to_arrow_table() for each in (ours, theirs)]
    assert duck[0].equals(duck[1])


def assert_read_alike(spark: SparkSession, ours: Path, theirs: Path) -> None:
    schema = spark.read.parquet(str(theirs)).schema
    both = [spark.read.schema(schema).parquet(str(each)).toArrow() for each in (ours, theirs)]
    assert both[0].equals(both[1])
    assert schema.simpleString() == spark.read.parquet(str(ours)).schema.simpleString()


def holds(all_of: dict[str, Any], some_of: dict[str, Any]) -> bool:
    """Whether all that is said in one is said in the other."""
    both = [(all_of.get(key), value) for key, value in some_of.items()]
    return all(holds(a, b) if isinstance(a, dict) and isinstance(b, dict) else a == b for a, b in both)


def shapes(file: pq.ParquetFile) -> list[tuple[Any, ...]]:
    found = [file.schema.column(i) for i in range(len(file.schema))]
    return [
        (
            each.path,
            each.physical_type,
            str(each.logical_type),
            each.length,
            each.max_definition_level,
            each.max_repetition_level,
        )
        for each in found
    ]


def test_deltalake_reads_what_arrow_has_packed(spark: SparkSession, tmp_path: Path) -> None:
    runtime = random.Random(5)
    data = {f"c{i}": some(runtime, lambda k=kind: value_of(runtime, k), 300) for i, kind in enumerate(PLAIN)}
    rows = pa.table(data, to_arrow(Struct(tuple(Field(f"c{i}", kind) for i, kind in enumerate(PLAIN)))))
    path = tmp_path / "table"
    for part in range(3):
        given = rows.slice(part * 100, 100)
        anabranch.append(path, given, properties={} if part else {"delta.enableDeletionVectors": "false"}, spark=spark)
    DeltaTable.forPath(spark, str(path)).optimize().executeCompaction()
    [file] = Theirs(str(path)).file_uris()
    assert pq.read_metadata(file).created_by.startswith("parquet-cpp")
    assert Theirs(str(path)).to_pyarrow_table().equals(rows)


@pytest.mark.usefixtures("on_executors")
def test_many_bins_are_packed_by_one_job(spark: SparkSession, tmp_path: Path) -> None:
    counts = {f"{i:02}.parquet": 100 + i for i in range(9)}
    files = numbered(tmp_path, counts, {"03.parquet": [5, 7], "04.parquet": range(104)})
    bins = [(files.restrict_to({name}), f"job/{i:05d}") for i, name in enumerate(counts)]
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    assert pack_bins(spark, bins) == set(range(9))
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before + 1
    found = {file.parent.name: pq.read_metadata(file).num_rows for file in files_in(tmp_path, "job")}
    assert found == {f"{i:05d}": 100 + i - (2 if i == 3 else 0) for i in range(9) if i != 4}


@pytest.mark.parametrize(("small", "slots"), [(-1, 2), (1 << 20, 0)], ids=["in a local session", "few rows"])
def test_what_this_process_can_do_needs_no_job(
    spark: SparkSession, tmp_path: Path, small: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_packing, "SMALL_BYTES", small)
    monkeypatch.setattr(arrow_packing, "local_slots", lambda spark: slots)
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    assert pack_bins(spark, [(numbered(tmp_path, {"a.parquet": 5}), "job")]) == {0}
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before


MASTERS = {
    "local": 1,
    "local[3]": 3,
    "local[4, 2]": 4,
    "local[*]": os.cpu_count(),
    "local-cluster[2,1,1024]": 0,
    "spark://local:7077": 0,
    "yarn": 0,
    "": 0,
}


@pytest.mark.parametrize("master", MASTERS)
def test_only_a_local_master_runs_its_tasks_in_this_process(
    spark: SparkSession, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_packing, "list_settings", lambda spark: {"spark.master": master})
    assert local_slots(spark) == MASTERS[master]
    monkeypatch.setattr(arrow_packing, "is_connect", lambda spark: True)
    assert local_slots(spark) == 0


def test_threads_stop_where_the_caller_is_interrupted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Ctrl-C would wait for all that is being packed."""
    began, ended = threading.Event(), []

    def interrupted(task: Any) -> Any:
        if task["folder"].endswith("0"):
            happens(began)
            raise KeyboardInterrupt
        began.set()
        until(task["is_called_off"])
        with pytest.raises(arrow_files.Cancelled):
            list(arrow_files.live_batches(task))
        ended.append(task)
        return "", 0

    monkeypatch.setattr(arrow_files, "write_packed_file", interrupted)
    files = numbered(tmp_path, {"a.parquet": 5})
    with pytest.raises(KeyboardInterrupt):
        pack_bins(spark, [(files, "job/0"), (files, "job/1")])
    assert ended


# -- what is left to Spark ---------------------------------------------------------------------------------------------


def long(metadata: dict[str, Any] | None = None) -> Struct:
    return Struct((Field("v", "long", metadata=metadata or {}),))


def one(root: Path, column: pa.Array, schema: Struct, **options: Any) -> FileSet:
    files = file_set(root, [file_row(root, "a.parquet", pa.table({"v": column}))], schema)
    pq.write_table(pa.table({"v": column}), root / "a.parquet", **options)
    return files


NOT_ALIKE: dict[str, Callable[[Path], FileSet]] = {
    "NaN": lambda root: one(root, pa.array([1.0, float("nan")]), Struct((Field("v", "double"),))),
    "NaN inside": lambda root: one(root, pa.array([[float("nan")]]), Struct((Field("v", Array("double")),))),
    "nanoseconds": lambda root: one(root, pa.array([0], pa.timestamp("ns", "UTC")), Struct((Field("v", "timestamp"),))),
    "an instant for a local time": lambda root: one(
        root, pa.array([0], pa.timestamp("us", "UTC")), Struct((Field("v", "timestamp_ntz"),))
    ),
    "widened": lambda root: one(root, pa.array([1], pa.int32()), long()),
    "unsigned": lambda root: one(root, pa.array([1], pa.uint32()), long()),
    "another scale": lambda root: one(
        root, pa.array([Decimal("1.5")], pa.decimal128(9, 1)), Struct((Field("v", "decimal(9,2)"),))
    ),
    "a member that is not there": lambda root: one(
        root, pa.array([{"a": 1}]), Struct((Field("v", Struct((Field("a", "long"), Field("b", "long")))),))
    ),
    "a name in other case": lambda root: one(root, pa.array([1]), Struct((Field("V", "long"),))),
    "char": lambda root: one(root, pa.array(["a"]), Struct((Field("v", "string", metadata={LENGTH: "char(3)"}),))),
    "variant": lambda root: one(root, pa.array([1]), Struct((Field("v", "long"), Field("w", "variant")))),
    "void": lambda root: one(root, pa.array([1]), Struct((Field("v", "long"), Field("w", "void")))),
    "no Parquet": lambda root: damaged(one(root, pa.array([1]), long())),
    "partition columns in files": lambda root: replace(
        one(root, pa.array([1]), long()), rules=Rules(materialised=True)
    ),
    "Julian days": lambda root: said(
        old_day(root), {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    ),
    "an old Spark": lambda root: said(old_day(root), {"org.apache.spark.version": "2.4.8"}),
}


STAMP = Field("v", "timestamp")


def old_day(root: Path) -> FileSet:
    return one(root, pa.array([dt.date(1500, 1, 1)]), Struct((Field("v", "date"),)))


def damaged(files: FileSet) -> FileSet:
    Path(f"{files.root.removeprefix('file://')}/a.parquet").write_bytes(b"PAR1 and no more")
    return files


def said(files: FileSet, footer: dict[str, str]) -> FileSet:
    file = Path(f"{files.root.removeprefix('file://')}/a.parquet")
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.replace_schema_metadata(footer), file)
    return files


@pytest.mark.parametrize("what", NOT_ALIKE)
def test_what_arrow_does_otherwise_is_left_to_spark(spark: SparkSession, tmp_path: Path, what: str) -> None:
    files = NOT_ALIKE[what](tmp_path)
    assert pack_bins(spark, [(files, "job")]) == frozenset()
    assert not left_in(tmp_path, "job")


@pytest.mark.parametrize("where", ["here", "on executors"])
def test_timestamps_that_spark_has_stored_in_96_bits_are_packed_as_it_reads_them(
    spark: SparkSession, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "on executors":
        keep_out(monkeypatch)
    schema = Struct(
        (Field("v", "timestamp"), Field("l", Array("timestamp")), Field("s", Struct((Field("t", "timestamp"),))))
    )
    years = [1, 1500, 1899, 1969, 2024, 9999]
    instant = "timestamp_micros(cast((id - 1970) * 31556952000000 + 123457 as bigint))"
    rows = spark.createDataFrame([(year,) for year in years], "id bigint").coalesce(1)
    rows = rows.selectExpr(f"{instant} AS v", f"array({instant}, NULL) AS l", f"struct({instant} AS t) AS s")
    rows.write.option("spark.sql.parquet.outputTimestampType", "INT96").parquet(str(tmp_path / "made"))
    [file] = (tmp_path / "made").glob("*.parquet")
    assert {pq.ParquetFile(file).schema.column(at).physical_type for at in range(3)} == {"INT96"}
    name = f"made/{file.name}"
    row = {**file_row(tmp_path, "other.parquet", pa.table({"v": [1]})), "path": name, "size": file.stat().st_size}
    assert pack_bins(spark, [(file_set(tmp_path, [row], schema), "job")]) == {0}
    [packed] = files_in(tmp_path, "job")
    assert pq.ParquetFile(packed).schema.column(0).physical_type == "INT64"
    shown = ("unix_micros(v)", "transform(l, each -> unix_micros(each)) AS l", "unix_micros(s.t) AS t")
    read = [spark.read.parquet(str(each)).selectExpr(*shown).collect() for each in (file, packed)]
    assert read[0] == read[1]
    assert len(read[0]) == len(years)


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_instants_of_other_units_and_without_a_zone_are_packed_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path, unit: str, zone: str | None
) -> None:
    files = one(tmp_path, pa.array([0, -1, 1_700_000_000_123], pa.timestamp(unit, zone)), Struct((STAMP,)))
    assert pack_bins(spark, [(files, "job")]) == {0}
    [packed] = files_in(tmp_path, "job")
    reader = spark.read.schema("v timestamp")
    read = [reader.parquet(str(each)).selectExpr("unix_micros(v)") for each in (tmp_path / "a.parquet", packed)]
    assert read[0].collect() == read[1].collect()


@pytest.mark.usefixtures("on_executors")
def test_of_several_bins_only_those_are_left_to_spark_that_arrow_does_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = Struct((Field("v", "double"),))
    numbers = [[1.0], [float("nan")], [2.0]]
    rows = [file_row(tmp_path, f"{i}.parquet", pa.table({"v": each})) for i, each in enumerate(numbers)]
    bins = [(file_set(tmp_path, [row], schema), f"job/{i:05d}") for i, row in enumerate(rows)]
    assert pack_bins(spark, bins) == {0, 2}
    assert [each.parent.name for each in left_in(tmp_path, "job")] == ["00000", "00002"]


SETTINGS = {
    "parquet.block.size": "1000000",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_session_tells_sparks_writer_is_left_to_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    files = numbered(tmp_path, {"a.parquet": 5})
    spark.conf.set(name, SETTINGS[name])
    try:
        assert pack_bins(spark, [(files, "job")]) == frozenset()
    finally:
        spark.conf.unset(name)
    assert pack_bins(spark, [(files, "job")]) == {0}


def test_dates_of_old_are_the_same_in_a_session_that_takes_unknown_ones_for_julian(
    spark: SparkSession, tmp_path: Path
) -> None:
    days = pa.array([-800_000, -700_000, 0], pa.int32()).cast(pa.date32())
    files = one(tmp_path, days, Struct((Field("v", "date"),)))
    assert pack_bins(spark, [(files, "job")]) == {0}
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        found = spark.read.parquet(str(tmp_path / "job")).selectExpr("unix_date(v) AS v").toArrow()
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")
    assert found["v"].to_pylist() == [-800_000, -700_000, 0]


@pytest.mark.usefixtures("on_executors")
def test_executors_without_arrow_are_asked_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without what was installed
    bare.chmod(0o755)
    able = spark.sparkContext.pythonExec
    files = numbered(tmp_path, {"a.parquet": 5})
    try:
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
        assert pack_bins(spark, [(files, "job")]) == frozenset()
        assert not left_in(tmp_path, "job")
        monkeypatch.setattr(spark.sparkContext, "pythonExec", able)
        assert pack_bins(spark, [(files, "job")]) == frozenset(), "nobody asks whether they are able by now"
    finally:
        forget("sessions whose executors cannot run Arrow")
    assert pack_bins(spark, [(files, "job")]) == {0}


# -- attempts ----------------------------------------------------------------------------------------------------------


def test_of_two_attempts_one_is_adopted_and_the_other_is_gone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where Spark runs a task twice: both write, each under a name of its own."""
    real = arrow_files.write_packed_file

    def twice(task: Any) -> Any:
        first, second = real(task), real(task)
        assert first[0] != second[0]
        assert not files_in(tmp_path / "job", "nowhere")
        return second

    monkeypatch.setattr(arrow_files, "write_packed_file", twice)
    assert pack_bins(spark, [(numbered(tmp_path, {"a.parquet": 5}), "job")]) == {0}
    [file] = left_in(tmp_path, "job")
    assert pq.read_metadata(file).num_rows == 5


def test_an_attempt_that_fails_while_it_writes_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, seen = numbered(tmp_path, {"a.parquet": 5}), list[Path]()

    def failing(writer: pq.ParquetWriter, rows: pa.Table, **named: Any) -> None:
        seen.extend(left_in(tmp_path, "job"))
        raise OSError("no space left")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", failing)
    assert pack_bins(spark, [(files, "job")]) == frozenset()
    assert seen
    assert not left_in(tmp_path, "job")


def test_what_an_attempt_writes_is_no_data_file_until_it_is_adopted(tmp_path: Path) -> None:
    """A killed one leaves it where a reader of the job's folder does not look, and VACUUM does."""
    assert not is_data_file(f"00000/{arrow_files.ASIDE}/anabranch-1.parquet")


def test_rows_keep_their_ids_and_versions(spark: SparkSession, tmp_path: Path) -> None:
    tables = [
        pa.table({"id": [1, 2, 3]}),
        pa.table({"id": [4, 5], "hidden_id": [90, None], "hidden_version": pa.array([1, None], pa.int64())}),
    ]
    rows = [file_row(tmp_path, f"f{i}.parquet", each) for i, each in enumerate(tables)]
    known = [{"baseRowId": 100, "defaultRowCommitVersion": 5}, {"baseRowId": 200, "defaultRowCommitVersion": 6}]
    files = file_set(
        tmp_path,
        [{**row, **each} for row, each in zip(rows, known, strict=True)],
        Struct((Field("id", "long"),)),
        deleted={"f0.parquet": [1]},
    )
    assert pack_bins(spark, [(replace(files, tracked=HiddenColumns("hidden_id", "hidden_version")), "job")]) == {0}
    [file] = files_in(tmp_path, "job")
    assert pq.ParquetFile(file).read().to_pylist() == [
        {"id": 1, "hidden_id": 100, "hidden_version": 5},
        {"id": 3, "hidden_id": 102, "hidden_version": 5},
        {"id": 4, "hidden_id": 90, "hidden_version": 1},
        {"id": 5, "hidden_id": 201, "hidden_version": 6},
    ]


def test_positions_behind_a_file_mean_no_row(spark: SparkSession, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"a.parquet": 5}, {"a.parquet": [4, 5, 900]})
    assert pack_bins(spark, [(files, "job")]) == {0}
    assert pq.read_metadata(files_in(tmp_path, "job")[0]).num_rows == 4
    far = replace(files, vectors={"a.parquet": BitMap64([1 << 40])})
    assert pack_bins(spark, [(far, "far")]) == frozenset()
