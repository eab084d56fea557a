"""Values of rows, where they are switched off: no error of a door without Spark holds one."""

from __future__ import annotations

import ast
import datetime as dt
import pickle
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.partitions import partition_arrays
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert
from anabranch.errors.rows import note, without_partitions
from anabranch.testing import at_phase
from tests.support.raw_logs import PROTOCOL, add, metadata, put_commit, put_rows
from tests.support.worlds import World

PLANTED = "planted value"
NUMBER = 987654321
NAMED_CAUSE = re.compile(r"\) from (?!None\b)[A-Za-z_]\w*\s*$|raise .* from (?!None\b)[A-Za-z_]", re.MULTILINE)
"""A text without this raises nothing from an error that has a name; most files need not be parsed."""
OWN_CAUSES = {
    "plain_reader",
    "put",
    "rebase",
    "changes",
    "checkpoint",
    "commits",
    "fallback",
    "identity",
    "log",
    "size_limits",
    "types",
}
"""Where the cause is an error of ours, or quotes metadata alone."""
HOW = ("environment", "property")
COLUMNS = Struct(
    (
        Field("id", "integer", nullable=False),
        Field("s", "string"),
        Field("short", "string", metadata={LENGTH: "varchar(3)"}),
        Field("p", "date"),
    )
)
WHOLE = {"id": 1, "s": "a", "short": "b", "p": dt.date(2026, 1, 1)}


def said(error: BaseException) -> str:
    """All that an error shows or carries."""
    return f"{error} {error!r} {getattr(error, 'facts', {})} {pickle.dumps(error)!r} {error.__cause__}"


@pytest.fixture(params=HOW)
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A table that keeps its rows out of errors."""
    if request.param == "environment":
        monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    properties = {"anabranch.rowsInErrors": "false"} if request.param == "property" else {}
    constraint = {"delta.constraints.plain": "s <> 'planted value'"}
    Create(str(tmp_path / "t"), NewTable(COLUMNS, ("p",), {**properties, **constraint})).run()
    return World(str(tmp_path / "t"))


def chain(error: BaseException) -> str:
    """All that a traceback shows: an error, what it came from, and what it arose with."""
    shown, at = "".join(traceback.format_exception(error)), error
    while at is not None:
        shown += said(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return shown


def _damaged(world: World) -> dict[str, Callable[[], Any]]:
    """What fails in commands that have a path with a partition's value in their hands, each for its own reason."""
    path = world.path.removeprefix("file://")
    (file,) = Path(path).glob("**/*.parquet")
    whole = file.read_bytes()

    def put(data: bytes | None) -> None:
        file.unlink(missing_ok=True)
        if data is not None:
            file.write_bytes(data)

    def deep(name: str) -> Callable[[], Any]:
        return lambda: Clone(path, f"{path}_{name}").run()

    def after(data: bytes | None, run: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: (put(data), run())

    return {
        "a deep clone of a cut file": after(whole[:50], deep("cut")),
        "a deep clone of a file of zeros": after(bytes(len(whole)), deep("zeros")),
        "a deep clone of a file that is gone": after(None, deep("gone")),
        "a shallow clone of it": after(None, lambda: Clone(path, f"{path}_s", shallow=True).run()),
        "a change of a cut file": after(whole[:50], lambda: world.delete("id = 1")),
        "a change of a file that is gone": after(None, lambda: world.delete("id = 1")),
        "a file that may not be read": after(whole, lambda: (file.unlink(), file.mkdir(), world.delete("id = 1"))),
    }


def test_no_traceback_shows_a_partition_s_value(tmp_path: Path) -> None:
    properties = {"anabranch.rowsInErrors": "false"}
    columns = Struct((Field("id", "integer"), Field("p", "string")))
    Create(str(tmp_path / "t"), NewTable(columns, ("p",), properties)).run()
    world = World(str(tmp_path / "t"))
    Append(world.path, [{"id": 1, "p": PLANTED}, {"id": 2, "p": PLANTED}]).run()
    for name, run in _damaged(world).items():
        with pytest.raises(errors.AnabranchError) as failed:
            run()
        assert "planted" not in chain(failed.value), name


@pytest.mark.slow
def test_every_cause_of_an_error_is_asked_whether_it_may_be_shown() -> None:
    """``raise … from error`` shows what an error of somebody else's says: `cause` decides whether it may."""
    found = set()
    for file in sorted(Path(anabranch.__file__).parent.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if NAMED_CAUSE.search(text) else ():
            if isinstance(node, ast.Raise) and isinstance(node.cause, ast.Name):
                found.add(file.stem)
    assert found == OWN_CAUSES


BROKEN: dict[str, tuple[type[errors.AnabranchError], Any]] = {
    "constraint": (errors.CheckConstraintViolated, [{**WHOLE, "s": PLANTED}]),
    "not null": (errors.NotNullViolated, [{**WHOLE, "id": None, "s": PLANTED}]),
    "length": (errors.LengthExceeded, [{**WHOLE, "short": PLANTED}]),
    "overflow": (errors.SchemaMismatch, pa.table({"id": pa.array([NUMBER * 10], pa.int64())})),
    "no table": (errors.InvalidOption, [{"id": 1}, {"id": PLANTED}]),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_append_quotes_no_row(kind: str, world: World) -> None:
    expected, rows = BROKEN[kind]
    with pytest.raises(expected) as told:
        Append(world.path, rows).run()
    assert PLANTED not in said(told.value).replace("s <> 'planted value'", "")
    assert str(NUMBER) not in said(told.value)
    assert "not shown" in str(told.value)


@pytest.mark.parametrize("kind", BROKEN)
def test_the_same_append_quotes_its_row_where_nobody_minds(kind: str, tmp_path: Path) -> None:
    constraint = {"delta.constraints.plain": "s <> 'planted value'"}
    Create(str(tmp_path / "t"), NewTable(COLUMNS, ("p",), constraint)).run()
    expected, rows = BROKEN[kind]
    with pytest.raises(expected) as told:
        Append(str(tmp_path / "t"), rows).run()
    assert PLANTED in said(told.value) or str(NUMBER) in said(told.value)


def test_an_error_says_what_is_wrong_and_where_all_the_same(world: World) -> None:
    with pytest.raises(errors.CheckConstraintViolated, match=r"plain \(s <> 'planted value'\)") as told:
        Append(world.path, [{**WHOLE, "s": PLANTED}]).run()
    assert (told.value.constraint, told.value.values) == ("plain", {})
    with pytest.raises(errors.LengthExceeded) as long:
        Append(world.path, [{**WHOLE, "short": PLANTED}]).run()
    assert (long.value.column, long.value.limit) == ("short", "varchar(3)")


def test_a_partition_value_is_quoted_neither_as_a_value_nor_in_a_path(world: World) -> None:
    files = [{"path": f"p={NUMBER}/x.parquet", "partitionValues": {"p": str(NUMBER)}}]
    table = pa.Table.from_pylist(
        files, pa.schema([("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string()))])
    )
    world.log.snapshot()
    with pytest.raises(errors.InvalidPartitionValue) as told:
        partition_arrays(table, COLUMNS, ["p"], world.log.table)
    assert str(NUMBER) not in said(told.value)
    assert "p=*/x.parquet" in str(told.value)
    assert told.value.column == "p"


@pytest.mark.parametrize("how", HOW)
def test_a_missing_file_is_named_without_its_partition(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = {} if how == "environment" else {"anabranch_rowsInErrors": "false"}
    if how == "environment":
        monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    put_commit(
        tmp_path,
        0,
        PROTOCOL,
        metadata(partition_by=("x",), **on),
        add(f"x={NUMBER}/gone.parquet", partitionValues={"x": str(NUMBER)}),
    )
    with pytest.raises((errors.MissingDataFile, errors.StoreError)) as told:
        World(str(tmp_path)).delete("id = 1")
    assert "gone.parquet" in str(told.value)
    assert str(NUMBER) not in said(told.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("how", HOW)
def test_a_conversion_quotes_no_folder(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "environment":
        monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    properties = {"anabranch.rowsInErrors": "false"} if how == "property" else {}
    put_rows(tmp_path, f"d={PLANTED}/a.parquet", [{"id": 1}])
    with pytest.raises(errors.InvalidPartitionValue) as told:
        Convert(str(tmp_path), Struct((Field("d", "date"),)), properties).run()
    assert PLANTED not in said(told.value)
    assert told.value.column == "d"


def test_a_conflict_names_no_partition_and_no_value(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create(
        [{"id": 1, "day": PLANTED}, {"id": 2, "day": "b"}],
        partition_by=("day",),
        anabranch_rowsInErrors="false",
        anabranch_conflictResolution="file",
    )
    error = errors.ConcurrentDeleteReadException(table=world.log.table, file=f"day={PLANTED}/x.parquet")
    assert PLANTED not in said(error)
    assert "day=*/x.parquet" in str(error)


# -- what counts -------------------------------------------------------------------------------------------------------


def violation(table: str) -> str:
    return said(errors.NotNullViolated(table=table, column="c", values={"c": PLANTED}))


def test_an_older_version_that_shows_rows_does_not_count() -> None:
    table, off = "memory://rows/a", {"anabranch.rowsInErrors": "FALSE"}
    note(table, 0, {})
    assert PLANTED in violation(table)
    note(table, 3, off)
    note(table, 1, {})
    assert PLANTED not in violation(table)
    assert PLANTED in violation("memory://rows/b")
    note(table, 4, {})
    assert PLANTED in violation(table)


def test_a_table_that_was_to_hide_rows_and_was_never_made_hides_none_of_the_one_that_is(tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def stopped() -> None:
        raise InterruptedError

    hidden = {"anabranch.rowsInErrors": "false"}
    with pytest.raises(InterruptedError), at_phase("put", stopped):
        Append(path, [{"id": 1}], properties=hidden).run()
    table = World(path).log.table
    assert PLANTED not in violation(table)
    World(path).create([{"id": 1}])
    assert World(path).version == 0
    assert PLANTED in violation(table)


@pytest.mark.parametrize("value", ["false", "FALSE", " 0 ", "off", "no"])
def test_every_no_in_the_environment_is_one(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", value)
    assert PLANTED not in violation("memory://rows/c")


def test_what_a_table_says_is_read_before_its_rows_are(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Create(path, NewTable(COLUMNS, (), {"anabranch.rowsInErrors": "false"})).run()
    forget()
    refused: Callable[[], Any] = lambda: Append(path, [{"id": 1}, {"id": PLANTED}]).run()  # noqa: E731
    with pytest.raises(errors.InvalidOption) as told:
        refused()
    assert PLANTED not in said(told.value)


def test_folders_keep_their_columns_and_lose_their_values() -> None:
    assert without_partitions("file:/t/a=1/b=x%20y/f=1.parquet") == "file:/t/a=*/b=*/f=1.parquet"
