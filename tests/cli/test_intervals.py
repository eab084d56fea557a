"""Intervals are printed as Spark spells them, with a session and without one."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from anabranch import append
from anabranch._cli import app
from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH
from anabranch._protocol.schema.types import Array, Field, Struct
from anabranch.errors import NeedsSpark
from tests.support.raw_logs import PROTOCOL, metadata, put_commit

ROW = "INTERVAL '-1-6' YEAR TO MONTH,INTERVAL '1 00:00:01.5' DAY TO SECOND"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, with a table ``t`` in it."""
    monkeypatch.chdir(tmp_path)
    columns = Struct((Field("ym", YEAR_MONTH), Field("ds", DAY_SECOND), Field("inside", Array(YEAR_MONTH))))
    put_commit("t", 0, PROTOCOL, metadata(columns))
    rows = {
        "ym": pa.array([-18, None], pa.int32()),
        "ds": [dt.timedelta(days=1, seconds=1.5), None],
        "inside": [[1], None],
    }
    append("t", rows)


def printed(*arguments: str) -> list[str]:
    done = CliRunner().invoke(app, ["sql", *arguments, "--csv"])
    if done.exception is not None:
        raise done.exception
    return done.stdout.splitlines()


def test_intervals_are_printed_without_spark() -> None:
    assert printed("--without-spark", "SELECT ym, ds FROM delta.`t`") == ["ym,ds", ROW, ","]
    assert printed("--without-spark", "SELECT count(ym) AS n FROM delta.`t`") == ["n", "1"]


@pytest.mark.parametrize("value", ["*", "inside", "max(ym)"])
def test_what_arrow_would_print_otherwise_needs_spark(value: str) -> None:
    with pytest.raises(NeedsSpark):
        printed("--without-spark", f"SELECT {value} FROM delta.`t`")


def test_months_are_no_numbers_to_a_merge() -> None:
    append("u", {"n": pa.array([-18], pa.int32())})
    source = "(SELECT ym AS n FROM delta.`t`) s"
    with pytest.raises(NeedsSpark, match="the column n"):
        printed("--without-spark", f"MERGE INTO delta.`u` u USING {source} ON u.n = s.n WHEN MATCHED THEN DELETE")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_intervals_are_printed_with_a_session() -> None:
    assert printed("SELECT ym, ds FROM delta.`t` ORDER BY ym DESC") == ["ym,ds", ROW, ","]
    assert (
        "INTERVAL '0-1' YEAR TO MONTH" in printed("SELECT inside, max(ym) FROM delta.`t` GROUP BY 1 ORDER BY 1 DESC")[1]
    )
