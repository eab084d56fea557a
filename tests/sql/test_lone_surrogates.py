"""Half of a character is refused by a typed error in every door, with Spark and without, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch.errors import AnabranchError, LoneSurrogate

HALF = "\ud800"


@pytest.fixture
def path(tmp_path: Path) -> str:
    anabranch.append(f"{tmp_path}/t", pa.table({"id": [1], "s": ["a"]}))
    return f"{tmp_path}/t"


def _files(path: str) -> list[str]:
    return sorted(str(each) for each in Path(path).parent.rglob("*"))


@pytest.mark.parametrize(
    "append",
    [
        {"path_or_name": f"/data/{HALF}"},
        {"path_or_name": f"s3://bucket/{HALF}"},
        {"rows": [{"id": 1, "s": HALF}]},
        {"rows": {"id": [1], "s": [HALF]}},
        {"rows": [{"id": 1, HALF: "a"}]},
        {"path_or_name": "new", "properties": {"key": HALF}},
        {"path_or_name": "new", "properties": {HALF: "value"}},
        {"path_or_name": "new", "partition_by": [HALF]},
        {"path_or_name": "new", "cluster_by": [HALF]},
        {"txn_app_id": HALF, "txn_version": 1},
    ],
    ids=ascii,
)
def test_half_of_a_character_is_not_appended(path: str, append: dict[str, Any]) -> None:
    before, rows = _files(path), pa.table({"id": [1], "s": ["a"]})
    given: dict[str, Any] = {"path_or_name": path, "rows": rows, **append}
    if given["path_or_name"] == "new":
        given["path_or_name"] = f"{path}-new"
    with pytest.raises(AnabranchError) as raised:
        anabranch.append(**given)
    str(raised.value).encode()
    assert _files(path) == before


def test_half_of_a_character_is_no_path_and_no_condition(path: str) -> None:
    for refused in (
        lambda: anabranch.history(path + HALF),
        lambda: anabranch.check(path + HALF),
        lambda: anabranch.files(path, f"s = '{HALF}'"),
        lambda: anabranch.explain(path, f"`{HALF}` = 1"),
        lambda: anabranch.clone(path, path + "-clone", shallow=True, properties={"key": HALF}),
    ):
        with pytest.raises(LoneSurrogate) as raised:
            refused()
        str(raised.value).encode()
    assert anabranch.history(path)[0]["version"] == 0


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


@pytest.mark.spark
def test_half_of_a_character_is_refused_before_spark_sees_it(session: Any, path: str) -> None:
    from pyspark.sql import functions as F

    table, sql, name = anabranch.DeltaTable.forPath(session, path), session.sql, f"delta.`{path}`"
    rows = session.range(1).select("id", F.lit("a").alias("s"))
    made = anabranch.DeltaTable.create(session).location(path + "-new")
    for refused in (
        lambda: sql(f"SELECT * FROM {name} WHERE s = '{HALF}'"),
        lambda: sql(f"SELECT '{HALF}'"),
        lambda: sql(f"SELECT * FROM {name} WHERE s = :p", {"p": HALF}),
        lambda: sql(f"SELECT * FROM {name} WHERE s = ?", [HALF]),
        lambda: sql(f"INSERT INTO {name} VALUES (1, :p)", {"p": HALF}),
        lambda: sql(f"INSERT INTO {name} VALUES (1, ?)", [HALF]),
        lambda: sql(f"UPDATE {name} SET s = :p", {"p": HALF}),
        lambda: sql(f"DELETE FROM {name} WHERE s = '{HALF}'"),
        lambda: sql(f"DELETE FROM {name} WHERE `{HALF}` = 1"),
        lambda: sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{HALF}' = '{HALF}')"),
        lambda: sql(f"SELECT * FROM `{HALF}`"),
        lambda: sql(f"SELECT * FROM delta.`/data/{HALF}`"),
        lambda: table.delete(f"s = '{HALF}'"),
        lambda: table.update(set={"s": f"'{HALF}'"}),
        lambda: table.update(set={HALF: "1"}),
        lambda: table.merge(rows, f"s = '{HALF}'").whenMatchedDelete().execute(),
        lambda: table.optimize().where(f"s = '{HALF}'").executeCompaction(),
        lambda: table.restoreToTimestamp(HALF),
        lambda: anabranch.DeltaTable.forName(session, HALF),
        lambda: anabranch.DeltaTable.forPath(session, HALF),
        lambda: anabranch.DeltaTable.isDeltaTable(session, f"/data/{HALF}"),
        lambda: anabranch.read(path, where=f"s = '{HALF}'", spark=session),
        lambda: anabranch.read(path, columns=[HALF], spark=session),
        lambda: session.read.format("delta").load(f"/data/{HALF}"),
        lambda: session.read.format("delta").table(HALF),
        lambda: rows.write.format("delta").save(f"{path}/{HALF}"),
        lambda: rows.write.format("delta").mode("append").option("userMetadata", HALF).save(path),
        lambda: rows.write.format("delta").mode("overwrite").option("replaceWhere", f"s = '{HALF}'").save(path),
        lambda: rows.write.format("delta").saveAsTable(HALF),
        lambda: rows.write.format("delta").partitionBy(HALF).save(path + "-new"),
        lambda: rows.writeTo(HALF).append(),
        lambda: rows.writeTo("t").tableProperty("key", HALF),
        lambda: made.addColumn(HALF, "INT").execute(),
        lambda: made.addColumn("a", "INT", comment=HALF).execute(),
        lambda: made.addColumn("a", "INT").property(HALF, HALF).execute(),
    ):
        with pytest.raises(AnabranchError) as raised:
            refused()
        str(raised.value).encode()
    assert [each["version"] for each in anabranch.history(path)] == [0]
    assert not Path(path + "-new").exists()
