"""Plans of changes of rows: which backend does each step, as a table of changes, tables and sites."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import anabranch
from anabranch._arrow.change_plans import plan_change, plan_merge
from anabranch._arrow.merge_source import source_columns
from anabranch._arrow.site import Site, site_without_spark
from anabranch._expressions import Context, condition
from anabranch._expressions.computations import computation_of
from anabranch._protocol.change_feed import records_changes
from anabranch._protocol.merges import NOTHING_MORE, Clause, MergePlan, SourceColumn
from anabranch._protocol.rules.table_rules import Check
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch.commands.command_plans import optimize_plan
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.opening import file_set, open_log

ROWS = [{"id": i, "f": i / 2, "word": f"w{i}", "l": [i]} for i in range(9)]
TABLES: Mapping[str, Mapping[str, Any]] = {
    "vectors": {},
    "no vectors": {"properties": {"delta.enableDeletionVectors": "false"}},
    "feed": {"properties": {"delta.enableChangeDataFeed": "true"}},
    "feed, no vectors": {"properties": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}},
    "by f": {"partition_by": "f"},
}
SITES: Mapping[str, Mapping[str, Any]] = {
    "alone": {},
    "session": {"spells": False},
    "session's writer": {"is_plain": False},
    "cluster": {"most_bytes": 100},
    "session's memory": {"copies": False},
}
RULE = Check("c", "hex(id) < '5'", frozenset({"id"}))
HERE, DELETE = "", None
HEX, SETTINGS = (
    "`hex` is not in the table of functions",
    "the session's settings are for Spark's own reader and writer",
)
AWAY = "Spark's executors are elsewhere, and the files take more than 0 MB"
RULED, SPELLED = "the constraint c is checked by Spark", "Spark spells the values of the partition column f"
FIND, NEW, ANEW, RECORD = "find rows", "write new rows", "write files anew", "record changes"
ALL = {FIND: HERE, RECORD: HERE, NEW: HERE, ANEW: HERE}

GRID: list[tuple[str, str | None, str, str, dict[str, str]]] = [
    # WHERE            SET word =     table               site                steps, and why Spark does them
    ("id = 1",         DELETE,        "vectors",          "alone",            {FIND: HERE}),
    ("id = 1",         DELETE,        "no vectors",       "alone",            {FIND: HERE, ANEW: HERE}),
    ("id = 1",         DELETE,        "feed",             "alone",            {FIND: HERE}),
    ("id = 1",         DELETE,        "feed, no vectors", "alone",            {FIND: HERE, ANEW: HERE, RECORD: HERE}),
    ("id = 1",         DELETE,        "rule",             "alone",            {FIND: HERE}),
    ("hex(id) = '1'",  DELETE,       "no vectors",       "session",          {FIND: HEX, ANEW: HERE}),
    ("id = 1",         DELETE,        "vectors",          "session's writer", {FIND: SETTINGS}),
    ("id = 1",         DELETE,        "no vectors",       "cluster",          {FIND: AWAY, ANEW: AWAY}),
    ("id = 1",         "upper(word)", "vectors",          "alone",            {FIND: HERE, NEW: HERE}),
    ("id = 1",         "upper(word)", "no vectors",       "session",          {FIND: HERE, ANEW: HERE}),
    ("id = 1",         "upper(word)", "feed",             "session",          {FIND: HERE, RECORD: HERE, NEW: HERE}),
    ("id = 1",         "upper(word)", "feed, no vectors", "session",          ALL),
    ("id = 1",         "upper(word)", "rule",             "session",          {FIND: HERE, NEW: RULED}),
    ("id = 1",         "upper(word)", "by f",             "alone",            {FIND: HERE, NEW: HERE}),
    ("id = 1",         "upper(word)", "by f",             "session",          {FIND: HERE, NEW: SPELLED}),
    ("id = 1",         "hex(id)",     "vectors",          "session",          {FIND: HERE, NEW: HEX}),
    ("id = 1",         "upper(word)", "vectors",          "session's writer", {FIND: SETTINGS, NEW: SETTINGS}),
    ("id = 1",         "upper(word)", "vectors",          "cluster",          {FIND: AWAY, NEW: AWAY}),
]  # fmt: skip


@pytest.mark.parametrize(("where", "value", "table", "site", "steps"), GRID)
def test_a_plan_says_who_does_each_step_and_why(
    where: str, value: str | None, table: str, site: str, steps: dict[str, str]
) -> None:
    path = f"memory://{uuid4()}/t"
    anabranch.append(path, ROWS, **TABLES.get(table, {}))
    snapshot = open_log(path).snapshot()
    context = Context(snapshot.table, snapshot.schema, dt.datetime.now(dt.UTC), "UTC", lambda _: True)
    values = None if value is None else {"word": ComputedExpression(value, computation_of(value, context))}
    at: Site = replace(site_without_spark(snapshot.store), **SITES[site])
    vectors, recorded = snapshot.properties.vectors, records_changes(snapshot.metadata)
    files = file_set(snapshot)
    files = replace(files, rules=replace(files.rules, checks=(RULE,))) if table == "rule" else files
    plan = plan_change(at, files, condition(where, context), values, vectors=vectors, records=recorded)
    assert {step.does: step.reason or HERE for step in plan.steps} == steps


# -- MERGE -------------------------------------------------------------------------------------------------------------

JOIN, INSERT = "join", "insert rows"
OURS = {"id": SourceColumn("id"), "word": SourceColumn("word")}
UPDATES, DELETES, INSERTS = (
    Clause("matched", "update", None, {"word": SourceColumn("word")}),
    Clause("matched", "delete", None),
    Clause("not matched", "insert", None, OURS),
)
MERGES: list[tuple[tuple[Clause, ...], str, list[str]]] = [
    ((UPDATES, INSERTS), "vectors",          [JOIN, NEW, INSERT]),
    ((UPDATES, INSERTS), "feed, no vectors", [JOIN, NEW, INSERT, RECORD, ANEW]),
    ((UPDATES,),         "feed",             [JOIN, NEW, RECORD]),
    ((DELETES, INSERTS), "feed",             [JOIN, INSERT]),
    ((DELETES,),         "feed, no vectors", [JOIN, RECORD, ANEW]),
    ((INSERTS,),         "feed",             [JOIN, INSERT]),
    ((INSERTS,),         "feed, no vectors", [JOIN, INSERT]),
]  # fmt: skip


@pytest.mark.parametrize(("clauses", "table", "steps"), MERGES)
def test_a_plan_of_a_merge_has_the_steps_that_its_clauses_take(
    clauses: tuple[Clause, ...], table: str, steps: list[str]
) -> None:
    path = f"memory://{uuid4()}/t"
    anabranch.append(path, ROWS, **TABLES[table])
    snapshot = open_log(path).snapshot()
    recorded, source = (
        records_changes(snapshot.metadata),
        source_columns(pa.schema({"id": pa.int64(), "word": pa.string()})),
    )
    matching = MergePlan("", clauses, keys=(("id", "id"),), rest=NOTHING_MORE, recorded=recorded)
    vectors = snapshot.properties.vectors
    plan = plan_merge(site_without_spark(snapshot.store), file_set(snapshot), matching, source, vectors=vectors)
    assert [step.does for step in plan.steps if step.reason is None] == steps == [step.does for step in plan.steps]


# -- OPTIMIZE ----------------------------------------------------------------------------------------------------------

PACK, ORDER = "pack 2 files, in 1 group", "order 2 files by id, word, in 1 group"
DISK = "the files lie on no disk"
LAYOUTS: list[tuple[str, str, tuple[str, ...], dict[str, str]]] = [
    # table        site                Z-order          steps, and why Spark does them
    ("vectors",    "alone",            (),              {PACK: HERE}),
    ("vectors",    "alone",            ("id", "word"),  {ORDER: HERE}),
    ("vectors",    "session's writer", (),              {PACK: SETTINGS}),
    ("vectors",    "session's writer", ("id", "word"),  {ORDER: SETTINGS}),
    ("vectors",    "memory",           (),              {PACK: HERE}),
    ("vectors",    "memory",           ("id", "word"),  {ORDER: HERE}),
    ("vectors",    "session's memory", (),              {PACK: DISK}),
    ("vectors",    "session's memory", ("id", "word"),  {ORDER: DISK}),
    ("by f",       "alone",            (),              {"pack 18 files, in 9 groups": HERE}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "site", "columns", "steps"), LAYOUTS)
def test_a_plan_of_a_layout_says_which_files_are_written_anew_together(
    tmp_path: Path, table: str, site: str, columns: tuple[str, ...], steps: dict[str, str]
) -> None:
    path = f"memory://{uuid4()}/t" if "memory" in site else str(tmp_path)
    for _ in range(2):
        anabranch.append(path, ROWS, **TABLES[table])
    snapshot = open_log(path).snapshot()
    at: Site = replace(site_without_spark(snapshot.store), **SITES.get(site, {}))
    command = Optimize(path, zorder_by=tuple((each,) for each in columns))
    plan = optimize_plan(command, snapshot, lambda files, obeys: at)[1]
    assert {step.does: step.reason or HERE for step in plan.steps} == steps
