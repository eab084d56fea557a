"""A table that is all log: as many adds as wanted, none with a data file, made by columns within seconds.

The adds stand either in a checkpoint, as delta-spark lays it out (one file, snappy), or in one JSON commit. Each states
its rows, minima and maxima and null counts of three columns; there is one partition column of 365 values; ids do not
overlap, so that a look-up of one id leaves one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

IDS_PER_FILE = 1000
_DAYS = 365
_ADDS_AT_ONCE = 100_000
_MODIFIED = 1_700_000_000_000
_BEYOND = 100_000_000
"""Adds that are committed later are numbered from here."""
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_COLUMNS = {"id": "long", "amount": "double", "word": "string", "day": "date"}
_METADATA = {
    "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(
        {
            "type": "struct",
            "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in _COLUMNS.items()],
        }
    ),
    "partitionColumns": ["day"],
    "configuration": {"delta.checkpointInterval": "1000000"},
    "createdTime": _MODIFIED,
}
_TEXTS = pa.map_(pa.string(), pa.string())


def with_checkpoint(folder: Path, adds: int) -> Path:
    """A table at version 1, with a checkpoint of it that holds the adds."""
    path, log = _begun(folder / "checkpoint")
    parts = [_struct(numbers) for numbers in _parts(adds)]
    added = pa.chunked_array(parts)
    first = pa.table(
        {
            "protocol": pa.array([_PROTOCOL, None], pa.struct([(n, pa.int32()) for n in _PROTOCOL])),
            "metaData": pa.array([None, _METADATA], _metadata_type()),
        }
    )
    table = pa.concat_tables([first, pa.table({"add": added})], promote_options="default")
    pq.write_table(table, log / f"{1:020d}.checkpoint.parquet", compression="snappy")
    (log / f"{1:020d}.json").write_text(_lines({"commitInfo": {"timestamp": _MODIFIED, "operation": "WRITE"}}))
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": adds + 2}))
    return path


def with_json(folder: Path, adds: int) -> Path:
    """A table at version 0, whose one commit holds the adds."""
    path, log = _begun(folder / "json")
    with (log / f"{0:020d}.json").open("wb") as file:
        file.write(_lines({"protocol": _PROTOCOL}, {"metaData": _METADATA}).encode())
        for numbers in _parts(adds):
            lines = _add_lines(numbers)
            file.write(memoryview(lines.buffers()[2])[: lines.buffers()[2].size])
    return path


def commit_of_one(table: Path, version: int) -> None:
    """Commit one more add, as any writer might."""
    line = _add_lines(np.array([_BEYOND + version]))[0].as_py()
    (table / "_delta_log" / f"{version:020d}.json").write_text(line)


def _begun(path: Path) -> tuple[Path, Path]:
    (path / "_delta_log").mkdir(parents=True)
    return path, path / "_delta_log"


def _parts(adds: int) -> Iterator[np.ndarray]:
    yield from (np.arange(start, min(start + _ADDS_AT_ONCE, adds)) for start in range(0, adds, _ADDS_AT_ONCE))


def _struct(numbers: np.ndarray) -> pa.StructArray:
    count, days = len(numbers), _days(numbers)
    keys = pa.array(["day"]).take(pa.array(np.zeros(count, np.int32)))
    values = pa.MapArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), keys, days)
    fields = {
        "path": _paths(numbers, days),
        "partitionValues": values,
        "size": pa.array(_sizes(numbers)),
        "modificationTime": pa.array(np.full(count, _MODIFIED)),
        "dataChange": pa.array(np.zeros(count, bool)),
        "stats": _stats(numbers),
        "tags": pa.nulls(count, _TEXTS),
    }
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _add_lines(numbers: np.ndarray) -> pa.StringArray:
    days = _days(numbers)
    stats = pc.replace_substring(_stats(numbers), '"', r"\"")
    return _joined(
        '{"add":{"path":"', _paths(numbers, days), '","partitionValues":{"day":"', days, '"},"size":', _sizes(numbers),
        f',"modificationTime":{_MODIFIED},"dataChange":true,"stats":"', stats, '"}}\n',
    )  # fmt: skip


def _paths(numbers: np.ndarray, days: pa.StringArray) -> pa.StringArray:
    return _joined("day=", days, "/part-", pc.utf8_lpad(_texts(numbers), 5, "0"), "-", _ids(numbers), ".c000.parquet")


def _ids(numbers: np.ndarray) -> pa.StringArray:
    """Thirty-two random digits each, as the names of data files have them: they do not compress."""
    digits = np.random.default_rng(int(numbers[0])).bytes(16 * len(numbers)).hex().encode()
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(digits))


def _days(numbers: np.ndarray) -> pa.StringArray:
    return pa.array((19_000 + numbers % _DAYS).astype(np.int32)).cast(pa.date32()).cast(pa.string())


def _sizes(numbers: np.ndarray) -> np.ndarray:
    return 1_000_000 + numbers % 9973


def _stats(numbers: np.ndarray) -> pa.StringArray:
    least, low = numbers * IDS_PER_FILE, np.random.default_rng(int(numbers[0])).integers(0, 100_000, len(numbers)) / 100
    return _joined(
        f'{{"numRecords":{IDS_PER_FILE},"minValues":{{"id":', least, ',"amount":', low, ',"word":"word', numbers % 50,
        '"},"maxValues":{"id":', least + IDS_PER_FILE - 1, ',"amount":', low + 1000.5, ',"word":"word',
        50 + numbers % 49, '"},"nullCount":{"id":0,"amount":', numbers % 7, ',"word":0}}',
    )  # fmt: skip


def _joined(*parts: str | np.ndarray | pa.StringArray) -> pa.StringArray:
    texts = [_texts(each) if isinstance(each, np.ndarray) else each for each in parts]
    return pc.binary_join_element_wise(*texts, "")


def _texts(numbers: np.ndarray) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())


def _metadata_type() -> pa.DataType:
    format_ = pa.struct([("provider", pa.string()), ("options", _TEXTS)])
    types = {"format": format_, "configuration": _TEXTS, "partitionColumns": pa.list_(pa.string())}
    return pa.struct([(n, types.get(n, pa.int64() if n == "createdTime" else pa.string())) for n in _METADATA])


def _lines(*actions: object) -> str:
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in actions)
