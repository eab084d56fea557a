"""Texts as dictionaries: only where files hold them as small ones, and nothing is written that no row says."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._arrow.dictionaries import KIND, compact_dictionaries, with_dictionaries
from anabranch._arrow.files import write_packed_file
from tests.support.tiers import examples

WANTED = pa.schema([pa.field("word", pa.string(), metadata={"PARQUET:field_id": "7"}), pa.field("n", pa.int64())])


def few(count: int = 1_000) -> pa.Table:
    return pa.table({"word": [f"word {i % 5}" for i in range(count)], "n": list(range(count))})


def task_of(folder: Path, *tables: pa.Table, deleted: Any = None, **options: Any) -> dict[str, Any]:
    """What is told of files with these rows."""
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **({"store_schema": False} | options))
    said = {"deleted": deleted, "first_id": None, "version": None}
    files = [said | {"path": str(folder / f"{i}.parquet"), "number": i} for i in range(len(tables))]
    told = {"folder": str(folder / "made"), "codec": "none", "group_bytes": 1 << 20, "says": {"a": "b"}}
    return {**told, "files": files, "wanted": WANTED, "hidden": None}


def test_words_that_repeat_themselves_in_each_file_are_read_as_dictionaries(tmp_path: Path) -> None:
    task = with_dictionaries(task_of(tmp_path, few(), few().drop_columns(["word"])))
    assert [file["dictionaries"] for file in task["files"]] == [["word"], []]
    assert task["wanted"].field("word").equals(WANTED.field("word").with_type(KIND), check_metadata=True)


NOT_SMALL: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "others in each row": (pa.table({"word": [f"word {i}" for i in range(1_000)], "n": range(1_000)}), {}),
    "others in each row of a later row group": (
        pa.concat_tables([few(), pa.table({"word": [f"word {i}" for i in range(1_000)], "n": range(1_000)})]),
        {"row_group_size": 1_000},
    ),
    "long": (pa.table({"word": [f"{i:01000d}" for i in range(1_000)], "n": range(1_000)}), {}),
    "of another type": (few().set_column(0, "word", few()["word"].cast(pa.large_string())), {"store_schema": True}),
}


@pytest.mark.parametrize("what", NOT_SMALL)
def test_others_are_read_as_they_are(tmp_path: Path, what: str) -> None:
    table, options = NOT_SMALL[what]
    task = task_of(tmp_path, few(), table)
    pq.write_table(table, tmp_path / "1.parquet", **({"store_schema": False} | options))
    assert with_dictionaries(task)["wanted"].equals(WANTED, check_metadata=True)


def test_a_column_whose_name_may_be_that_of_a_member_is_read_as_it_is(tmp_path: Path) -> None:
    """Arrow calls both by the same path."""
    inside = pa.table({"a": pa.StructArray.from_arrays([few()["word"].combine_chunks()], ["b"]), "n": few()["n"]})
    wanted = pa.schema([inside.schema.field("a"), pa.field("a.b", pa.string()), inside.schema.field("n")])
    task = {**task_of(tmp_path, inside), "wanted": wanted}
    assert with_dictionaries(task)["wanted"].equals(wanted)
    path, _ = write_packed_file(task)
    assert pq.read_table(path)["a"].to_pylist() == inside["a"].to_pylist()


def test_what_was_deleted_is_in_no_dictionary_of_the_new_file(tmp_path: Path) -> None:
    """A dictionary is in the file as it is: a text that no row has would outlive a PURGE, and widen the bounds."""
    secret = few().set_column(0, "word", pa.array(["secret" if i == 3 else f"word {i % 5}" for i in range(1_000)]))
    bits = np.packbits(np.arange(8) == 3, bitorder="little").tobytes()
    path, rows = write_packed_file(task_of(tmp_path, secret, deleted=zlib.compress(bits)))
    assert rows == 999
    assert b"secret" in (tmp_path / "0.parquet").read_bytes()
    assert b"secret" not in Path(path).read_bytes()
    assert pq.read_table(path)["word"].to_pylist() == [f"word {i % 5}" for i in range(1_000) if i != 3]
    statistics = pq.read_metadata(path).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max, statistics.null_count) == ("word 0", "word 4", 0)


def test_dictionaries_become_one_that_holds_what_is_in_the_rows() -> None:
    parts = [
        pa.array(["a", None, "b"]).dictionary_encode().slice(0, 2),
        pa.array(["c", "a"]).dictionary_encode(),
        pa.nulls(1, KIND),
    ]
    rows = compact_dictionaries(pa.table({"word": pa.chunked_array(parts), "n": [1, 2, 3, 4, 5]}))
    assert rows["word"].to_pylist() == ["a", None, "c", "a", None]
    assert rows["word"].chunk(0).dictionary.to_pylist() == ["a", "c"]
    assert rows["n"].to_pylist() == [1, 2, 3, 4, 5]


def test_a_file_without_the_column_has_nulls_for_it(tmp_path: Path) -> None:
    path, _ = write_packed_file(task_of(tmp_path, few(), few().slice(0, 0), few(3).drop_columns(["word"]), few()))
    words = few()["word"].to_pylist()
    assert pq.read_table(path)["word"].to_pylist() == [*words, None, None, None, *words]


def test_where_no_file_has_the_column_all_of_it_is_null(tmp_path: Path) -> None:
    table = pa.table({"word": pa.nulls(3, KIND), "n": [1, 2, 3]})
    assert compact_dictionaries(table)["word"].to_pylist() == [None] * 3
    path, _ = write_packed_file(task_of(tmp_path, few(3).drop_columns(["word"])))
    assert pq.read_table(path)["word"].to_pylist() == [None] * 3


GARBLED = """
import random, sys
from pathlib import Path
from anabranch._arrow.dictionaries import with_dictionaries
from anabranch._arrow.files import write_packed_file
sys.path.insert(0, sys.argv[1])
from tests.arrow.test_dictionaries import few, task_of

folder, count = Path(sys.argv[2]), 0
task = task_of(folder, few())
whole = (folder / "0.parquet").read_bytes()
begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
for at in range(begin, len(whole), int(sys.argv[4])):
    for value in random.Random(at).sample(range(256), int(sys.argv[3])):
        (folder / "0.parquet").write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        try:
            write_packed_file(task)
        except Exception:
            count += 1
print("refused", count)
"""


@pytest.mark.slow
def test_no_byte_of_a_footer_ends_the_process_that_packs(tmp_path: Path) -> None:
    """In a local session that is the user's own."""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", GARBLED, root, tmp_path, str(examples(4, 1)), str(examples(1, 5))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout[:7]) == (0, "refused"), ran.stderr[-500:]
