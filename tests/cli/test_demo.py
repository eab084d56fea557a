"""The demo's words fit into 80 columns, its comparison counts every row, and Spark's lines go to a file."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from rich.console import Console

from anabranch._cli.demo.bank import ACCOUNTS, EACH, TURNS, WRITERS, count_together, transfer_together
from anabranch._cli.demo.race import Race, Run, writers
from anabranch._cli.demo.story import LOG, TABLES, demo, differing_rows, table_of
from anabranch._cli.sessions import java_prints_to
from anabranch._transaction.commit import CommitResult
from anabranch.errors import ConcurrentAppendException, InvalidOption

ROWS = pa.table({"carrier": ["AA"] * 600})


@dataclass(frozen=True)
class Frame:
    """What the comparison asks of a DataFrame."""

    rows: pa.Table

    def toArrow(self) -> pa.Table:
        return self.rows


def differing(left: list[Any], right: list[Any]) -> int:
    frames = [Frame(pa.table({"a": pa.array(each, pa.int64())})) for each in (left, right)]
    return differing_rows(*cast(list[DataFrame], frames))


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        ([1, 2, None], [None, 2, 1], 0),
        ([1, 2], [1], 1),
        ([1, 1], [1], 1),
        ([1, None], [2, None], 2),
        ([None, None], [None], 1),
        ([], [], 0),
    ],
)
def test_rows_that_only_one_table_has_are_counted_as_often_as_they_occur(
    left: list[Any], right: list[Any], count: int
) -> None:
    assert differing(left, right) == differing(right, left) == count


@pytest.mark.parametrize("name", [*TABLES, LOG])
def test_nothing_that_is_there_already_is_removed_or_written_to(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).symlink_to(kept)
    for folder in (tmp_path / "in", tmp_path / "beside"):
        folder.mkdir(exist_ok=True)
        if not (folder / name).is_symlink():
            (folder / name).mkdir()
            (folder / name / "mine").touch()
        with pytest.raises(InvalidOption, match=name):
            demo(folder, Console(file=io.StringIO()))
    assert kept.read_text() == "mine"
    assert (tmp_path / "beside" / name / "mine").exists()


def lines_of(race: Race) -> list[str]:
    shown = io.StringIO()
    Console(file=shown, width=80).print(table_of(race))
    return shown.getvalue().splitlines()


def test_each_writer_has_one_line_of_80_columns_whatever_becomes_of_it() -> None:
    crew = writers(cast(Any, None), ROWS, {"AA": ROWS, "WN": ROWS})
    over = tuple(range(1, len(crew)))
    ends = [
        {"committed": CommitResult(len(crew), over, 1, {}), "seconds": 159.9},
        {"refused": ConcurrentAppendException.__new__(ConcurrentAppendException), "seconds": 159.9},
        {"phase": "committed"},
    ]
    for end in ends:
        lines = lines_of(Race("", [Run(writer, **cast(Any, end)) for writer in crew]))
        assert len(lines) == 1 + len(crew)
        assert all(writer.says in line for writer, line in zip(crew, lines[1:], strict=True))


def test_what_a_child_process_prints_goes_to_the_file_and_what_comes_later_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "spark.log"
    with java_prints_to(log):
        subprocess.run([sys.executable, "-c", "import sys; print('WARN log4j', file=sys.stderr)"], check=True)
    print("later", file=sys.stderr)
    assert log.read_text() == "WARN log4j\n"
    assert capfd.readouterr().err == "later\n"


def test_what_spark_said_is_printed_where_it_did_not_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError), java_prints_to(tmp_path / "spark.log"):
        subprocess.run([sys.executable, "-c", "raise SystemExit('no memory')"], check=True)
    assert capfd.readouterr().err == "no memory\n"


@pytest.mark.slow
def test_a_counter_that_all_writers_raise_misses_none(tmp_path: Path) -> None:
    scene, count = count_together(str(tmp_path / "counter"))
    assert (count, scene.refused) == (WRITERS * TURNS, 0)
    assert scene.redone > 0


@pytest.mark.slow
def test_transfers_of_all_writers_keep_the_sum_at_each_version(tmp_path: Path) -> None:
    scene, sums = transfer_together(str(tmp_path / "accounts"))
    assert sums == [ACCOUNTS * EACH] * (WRITERS * TURNS + 1)
    assert scene.refused == 0
