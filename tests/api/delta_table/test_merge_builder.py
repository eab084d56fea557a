"""The merge builder: what it asks of the command, and what it refuses before anything is read. No JVM is started."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import anabranch
from anabranch import DeltaTable, errors
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._protocol.merges import Clause, SourceColumn
from anabranch._protocol.predicates import And, Compare, Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.dml.merge import Merge, MergeResult
from anabranch.commands.opening import open_log

ON = "t.id = s.id"


@dataclass(frozen=True)
class Source:
    """A DataFrame as far as the builder looks at one."""

    columns: tuple[str, ...] = ("ID", "x", "more")


class SessionWithoutSettings:
    """A session in which nothing is set."""

    conf = SimpleNamespace(get=lambda name, default: default)

    def sql(self, text: str, args: Any) -> SimpleNamespace:
        return SimpleNamespace(collect=list)


@dataclass
class Engine:
    """An engine that knows what the builder asks of it, and no rows."""

    name: str | None = "s"
    session_merges: bool = False
    spark: Any = field(default_factory=lambda: SessionWithoutSettings())

    def merges_schema(self) -> bool:
        return self.session_merges

    def describe(self, source: Any) -> Struct:
        return Struct(tuple(Field(name, "long") for name in source.columns))

    def alias(self, source: Any) -> str | None:
        return self.name

    def settings(self) -> Mapping[str, str]:
        return {"spark.sql.session.timeZone": "UTC"}

    def has_usual_quotes(self) -> bool:
        return True

    def are_builtin(self, functions: Any) -> bool:
        return True

    def rows(self, table: pa.Table) -> pa.Table:
        return table


@pytest.fixture
def path(tmp_path: Path) -> str:
    anabranch.append(tmp_path / "t", [{"id": 1, "X": 2}])
    return (tmp_path / "t").as_uri()


@pytest.fixture
def builder(path: str) -> DeltaMergeBuilder:
    return building(path)


def building(path: str, on: Any = ON, *, alias: str | None = "t", source: Source | None = None) -> DeltaMergeBuilder:
    engine, rows = Engine(), source or Source()
    return DeltaMergeBuilder(path, engine, rows, on, alias)  # type: ignore[arg-type]


def clauses_of(builder: DeltaMergeBuilder) -> tuple[Clause, ...]:
    return builder.command(open_log(builder.table).snapshot()).matching.clauses


# -- what each step means ----------------------------------------------------------------------------------------------

STAR = {"id": SourceColumn("ID"), "X": SourceColumn("x")}

STEPS: dict[str, tuple[Callable[[DeltaMergeBuilder], DeltaMergeBuilder], Clause]] = {
    "update": (lambda b: b.whenMatchedUpdate(set={"x": "s.x"}), Clause("matched", "update", None, {"X": "s.x"})),
    "update where": (
        lambda b: b.whenMatchedUpdate("s.x > 1", {"t.x": "s.x"}),
        Clause("matched", "update", "s.x > 1", {"X": "s.x"}),
    ),
    "update all": (lambda b: b.whenMatchedUpdateAll("s.x > 1"), Clause("matched", "update", "s.x > 1", STAR)),
    "delete": (lambda b: b.whenMatchedDelete("s.x > 1"), Clause("matched", "delete", "s.x > 1")),
    "insert": (
        lambda b: b.whenNotMatchedInsert(condition="s.x > 1", values={"id": "s.id"}),
        Clause("not matched", "insert", "s.x > 1", {"id": "s.id"}),
    ),
    "insert all": (lambda b: b.whenNotMatchedInsertAll(), Clause("not matched", "insert", None, STAR)),
    "update by source": (
        lambda b: b.whenNotMatchedBySourceUpdate("t.x > 1", {"x": "0"}),
        Clause("not matched by source", "update", "t.x > 1", {"X": "0"}),
    ),
    "delete by source": (
        lambda b: b.whenNotMatchedBySourceDelete(),
        Clause("not matched by source", "delete"),
    ),
}


@pytest.mark.parametrize(("step", "expected"), STEPS.values(), ids=STEPS.keys())
def test_each_step_adds_its_clause(builder: DeltaMergeBuilder, step: Any, expected: Clause) -> None:
    (found,) = clauses_of(step(builder))
    assert (found.when, found.action) == (expected.when, expected.action)
    assert str(found.condition) == str(expected.condition)
    assert {name: str(value) for name, value in found.values.items()} == {
        name: str(value) for name, value in expected.values.items()
    }


def test_a_step_leaves_the_builder_as_it_is(builder: DeltaMergeBuilder) -> None:
    one = builder.whenMatchedDelete()
    assert builder.clauses == ()
    assert clauses_of(one.whenNotMatchedInsertAll())[:1] == clauses_of(one) == (Clause("matched", "delete"),)


def test_a_mapping_that_changes_later_changes_nothing(builder: DeltaMergeBuilder) -> None:
    values = {"x": "1"}
    with_values = builder.whenMatchedUpdate(set=values)
    values["x"] = "2"
    assert str(clauses_of(with_values)[0].values["X"]) == "1"


def test_the_command_says_everything_once(path: str) -> None:
    builder = building(path, "t.id = s.id AND t.x > 5").whenMatchedUpdateAll().whenNotMatchedInsertAll("s.x > 1")
    command = builder.command(open_log(builder.table).snapshot())
    assert command.table == path
    assert command.source is builder.source
    assert command.where.text == "t.id = s.id AND t.x > 5"
    assert command.where.predicate == And((Unknown(), Compare("X", ">", 5)))
    assert command.where.row_local
    assert (command.matching.target, command.matching.source) == ("t", "s")
    assert {key: json.loads(value) for key, value in command.parameters.items()} == {
        "predicate": ["t.id = s.id AND t.x > 5"],
        "matchedPredicates": [{"actionType": "update"}],
        "notMatchedPredicates": [{"predicate": "s.x > 1", "actionType": "insert"}],
        "notMatchedBySourcePredicates": [],
    }


def test_a_table_without_an_alias_is_spoken_of_by_its_columns(path: str) -> None:
    builder = building(path, "id = only_s", alias=None, source=Source(("only_s",))).whenMatchedDelete()
    command = builder.command(open_log(builder.table).snapshot())
    assert command.matching.target is None
    assert command.where.row_local


def test_execute_counts_the_rows_as_delta_does(builder: DeltaMergeBuilder, monkeypatch: Any) -> None:
    metrics = {"numTargetRowsUpdated": 3, "numTargetRowsDeleted": 2, "numTargetRowsInserted": 1, "other": 9}
    monkeypatch.setattr(Merge, "run", lambda self, engine, at: MergeResult(None, metrics))
    (row,) = builder.whenMatchedDelete().execute().to_pylist()  # type: ignore[operator]
    assert list(row.items()) == [
        ("num_affected_rows", 6),
        ("num_updated_rows", 3),
        ("num_deleted_rows", 2),
        ("num_inserted_rows", 1),
    ]


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[DeltaMergeBuilder], Any], type[Exception], str]] = {
    "no clause": (lambda b: b.execute(), errors.InvalidOption, "at least one WHEN clause"),
    "no set": (lambda b: b.whenMatchedUpdate("s.x > 1"), errors.InvalidOption, "set cannot be None"),
    "no set by source": (lambda b: b.whenNotMatchedBySourceUpdate("t.x > 1"), errors.InvalidOption, "set cannot be"),
    "no values": (lambda b: b.whenNotMatchedInsert("s.x > 1"), errors.InvalidOption, "values cannot be None"),
    "a dict in the place of the condition": (
        lambda b: b.whenMatchedUpdate({"x": "1"}),
        errors.InvalidOption,
        "set cannot be None",
    ),
    "an empty set": (lambda b: b.whenMatchedUpdate(set={}).execute(), errors.InvalidOption, "names no column"),
    "empty values": (lambda b: b.whenNotMatchedInsert(values={}).execute(), errors.InvalidOption, "values cannot be"),
    "a number to set": (lambda b: b.whenMatchedUpdate(set={"x": 1}), errors.InvalidOption, "SQL text or Columns"),
    "a number as a key": (lambda b: b.whenMatchedUpdate(set={1: "x"}), errors.InvalidOption, "only names"),
    "a list to set": (lambda b: b.whenMatchedUpdate(set=["x"]), errors.InvalidOption, "SQL text or Columns"),
    "a boolean": (lambda b: b.whenMatchedDelete(True), errors.InvalidOption, "Spark SQL Column"),
    "a dict as a condition": (lambda b: b.whenMatchedDelete({"x": "1"}), errors.InvalidOption, "Spark SQL Column"),
    "set twice": (lambda b: b.whenMatchedUpdate(set={"x": "1", "t.X": "2"}).execute(), errors.InvalidOption, "twice"),
    "unknown column": (lambda b: b.whenMatchedUpdate(set={"y": "1"}).execute(), errors.UnknownColumn, "no column y"),
    "the source's column": (
        lambda b: b.whenNotMatchedInsert(values={"s.x": "1"}).execute(),
        errors.UnknownColumn,
        "no column s.x",
    ),
    "a column that neither side has, though columns may be added": (
        lambda b: b.withSchemaEvolution().whenMatchedUpdate(set={"y": "1"}).execute(),
        errors.UnknownColumn,
        "no column y",
    ),
    "a subquery": (lambda b: b.whenMatchedDelete("s.id IN (SELECT 1)").execute(), errors.NotBuilt, "a subquery"),
}


@pytest.mark.parametrize(("run", "expected", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(builder: DeltaMergeBuilder, run: Any, expected: Any, words: str) -> None:
    with pytest.raises(expected, match=words):
        run(builder)
    assert len(anabranch.history(builder.table)) == 1


PAIRS: dict[str, Callable[[DeltaMergeBuilder, str | None], DeltaMergeBuilder]] = {
    "MATCHED": lambda b, where: b.whenMatchedUpdateAll(where),
    "NOT MATCHED": lambda b, where: b.whenNotMatchedInsertAll(where),
    "NOT MATCHED BY SOURCE": lambda b, where: b.whenNotMatchedBySourceDelete(where),
}


@pytest.mark.parametrize(("kind", "step"), PAIRS.items(), ids=PAIRS.keys())
def test_only_the_last_clause_of_a_kind_may_lack_a_condition(builder: DeltaMergeBuilder, kind: str, step: Any) -> None:
    with pytest.raises(errors.InvalidOption, match=f"only the last {kind} clause"):
        step(step(builder, None), "true").execute()
    with pytest.raises(errors.InvalidOption, match=f"only the last {kind} clause"):
        step(step(builder, None), None).execute()
    assert len(clauses_of(step(step(builder, "true"), None))) == 2


def test_clauses_of_different_kinds_may_all_lack_a_condition(builder: DeltaMergeBuilder) -> None:
    for step in PAIRS.values():
        builder = step(builder, None)
    assert len(clauses_of(builder)) == 3


@pytest.mark.parametrize("step", ["whenMatchedUpdateAll", "whenNotMatchedInsertAll"])
def test_a_star_names_the_column_that_the_source_lacks(path: str, step: str) -> None:
    builder = building(path, source=Source(("id", "y")))
    with pytest.raises(errors.SchemaMismatch) as refused:
        getattr(builder, step)().execute()
    assert refused.value.column == "X"


@pytest.mark.parametrize("source", [None, 5, [{"id": 1}], pa.table({"id": [1]})])
def test_a_source_is_a_data_frame(path: str, source: Any) -> None:
    with pytest.raises(errors.InvalidOption, match=r"must be DataFrame \(pyspark\.sql\.DataFrame\)"):
        DeltaTable(None, path).merge(source, ON)  # type: ignore[arg-type]


def test_a_data_frame_of_pandas_is_told_apart_from_one_of_spark(path: str) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(errors.InvalidArgument, match=r"cannot be pandas.*: it must be DataFrame \(pyspark"):
        DeltaTable(None, path).merge(pandas.DataFrame({"id": [1]}), ON)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, "", 5])
def test_an_alias_is_a_name(path: str, name: Any) -> None:
    with pytest.raises(errors.InvalidOption, match="it takes a name"):
        DeltaTable(None, path).alias(name)  # type: ignore[arg-type]


# -- name for name as in delta.tables ----------------------------------------------------------------------------------

SIGNATURES = {
    "whenMatchedUpdate": ["condition", "set"],
    "whenMatchedUpdateAll": ["condition"],
    "whenMatchedDelete": ["condition"],
    "whenNotMatchedInsert": ["condition", "values"],
    "whenNotMatchedInsertAll": ["condition"],
    "whenNotMatchedBySourceUpdate": ["condition", "set"],
    "whenNotMatchedBySourceDelete": ["condition"],
    "withSchemaEvolution": [],
    "execute": [],
}


def test_every_method_has_deltas_name_and_arguments() -> None:
    public = {name: value for name, value in vars(DeltaMergeBuilder).items() if callable(value) and name[0] != "_"}
    found = {name: [*inspect.signature(value).parameters.values()][1:] for name, value in public.items()}
    assert {name: [argument.name for argument in arguments] for name, arguments in found.items()} == SIGNATURES
    assert all(argument.default is None for arguments in found.values() for argument in arguments)
    merge = inspect.signature(DeltaTable.merge).parameters
    assert [name for name, each in merge.items() if each.kind is not each.KEYWORD_ONLY] == [
        "self",
        "source",
        "condition",
    ]
    assert all(each.default is False for each in merge.values() if each.kind is each.KEYWORD_ONLY)
    assert list(inspect.signature(DeltaTable.alias).parameters) == ["self", "aliasName"]


# -- columns that are added --------------------------------------------------------------------------------------------


def schema_of(builder: DeltaMergeBuilder) -> tuple[str, ...] | None:
    schema = builder.command(open_log(builder.table).snapshot()).schema
    return None if schema is None else schema.names


def test_the_command_says_what_the_columns_become_where_it_may_add_some(builder: DeltaMergeBuilder) -> None:
    assert schema_of(builder.whenMatchedUpdateAll()) is None
    evolving = builder.withSchemaEvolution()
    assert schema_of(evolving.whenMatchedUpdateAll()) == ("id", "X", "more")
    assert schema_of(evolving.whenNotMatchedInsertAll("s.x > 0")) == ("id", "X", "more")
    assert schema_of(evolving.whenMatchedUpdate(set={"x": "s.more"})) == ("id", "X")
    assert schema_of(evolving.whenMatchedUpdate(set={"t.more": "s.x"})) == ("id", "X", "more")
    assert schema_of(evolving.whenMatchedDelete().whenNotMatchedBySourceUpdate(set={"x": "0"})) == ("id", "X")
    matching = evolving.whenMatchedDelete().command(open_log(builder.table).snapshot()).matching
    assert matching.evolves


def test_the_session_may_let_every_merge_add_columns(path: str) -> None:
    engine = Engine(session_merges=True)
    merge = DeltaMergeBuilder(path, engine, Source(), ON, "t")  # type: ignore[arg-type]
    assert schema_of(merge.whenMatchedUpdateAll()) == ("id", "X", "more")


def test_rows_that_match_nothing_add_no_column(builder: DeltaMergeBuilder) -> None:
    with pytest.raises(errors.UnknownColumn):
        builder.withSchemaEvolution().whenNotMatchedBySourceUpdate(set={"more": "1"}).execute()
