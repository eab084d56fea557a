"""Reads and writes repetitive texts as dictionaries, without copying or hashing the text of each row.

Imports pyarrow and numpy only, since it travels to executors by value, as `anabranch._arrow.files` does. Guarantee: a
file contains no text that its rows do not, such as texts of deleted rows; and no type in it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_MOST_BYTES = 1 << 19
"""Maximum size of a dictionary, in bytes. Writers give up dictionaries at 1 MiB, and store what follows plainly."""
_ROWS_OF_TEXT = 4
"""Minimum average number of rows that share a text."""
_PROBED_ROWS = 4096
KIND = pa.dictionary(pa.int32(), pa.string())


def with_dictionaries(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """The task, with dictionary types for text columns that each of its files stores as small dictionaries, or
    lacks.

    The types are in ``wanted``; ``dictionaries`` of each file lists the columns of that file.
    """
    schema: pa.Schema = task["wanted"]
    # A name with a dot might be that of a member of a struct in a file.
    texts = {field.name for field in schema if pa.types.is_string(field.type) and "." not in field.name}
    flags_by_file = [_are_small(file["path"], texts) for file in task["files"]]
    names = {name for name in texts if all(flags.get(name, True) for flags in flags_by_file)}
    kinds = (field.with_type(KIND) if field.name in names else field for field in schema)
    files_and_flags = zip(task["files"], flags_by_file, strict=True)
    files = [{**file, "dictionaries": sorted(names & flags.keys())} for file, flags in files_and_flags]
    return {**task, "wanted": pa.schema(kinds, schema.metadata), "files": files}


def _are_small(path: str, texts: Collection[str]) -> dict[str, bool]:
    """For each of these text columns that a file has, whether the file stores it as small dictionaries."""
    with pa.OSFile(path) as opened:
        source = pq.ParquetFile(opened)
        are_texts = {field.name: pa.types.is_string(field.type) for field in source.schema_arrow if field.name in texts}
        names = [name for name, is_text in are_texts.items() if is_text]
        groups = range(source.metadata.num_row_groups) if names else ()
        small_by_group = [columns_with_small_dictionaries(opened, source.metadata, group, names) for group in groups]
        return {
            name: is_text and all(name in small_names for small_names in small_by_group)
            for name, is_text in are_texts.items()
        }


def columns_with_small_dictionaries(opened: Any, footer: pq.FileMetaData, group: int, names: Sequence[str]) -> set[str]:
    """Those of these text columns that a row group seems to store as small dictionaries, judging by its first rows.

    The statistics of its chunks are not used: Arrow kills the process if that part of a footer is garbled.
    """
    rows = footer.row_group(group).num_rows
    if not rows:
        return set(names)
    source = pq.ParquetFile(opened, metadata=footer, read_dictionary=list(names), pre_buffer=False)
    first = next(source.iter_batches(_PROBED_ROWS, row_groups=[group], columns=list(names), use_threads=False))
    return {name for name in names if _is_small(first.column(name), rows)}


def _is_small(column: pa.Array, rows: int) -> bool:
    if column.type != KIND:
        return False
    return len(column.dictionary) * _ROWS_OF_TEXT <= rows and column.dictionary.nbytes <= _MOST_BYTES


def compact_dictionaries(rows: pa.Table) -> pa.Table:
    """The rows with one dictionary for each dictionary column, which holds exactly the values of these rows."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(at, field, _compact(rows.column(at)))
    return rows


def _compact(column: pa.ChunkedArray) -> pa.Array:
    whole = column.unify_dictionaries().combine_chunks()
    array = whole if isinstance(whole, pa.DictionaryArray) else pa.concat_arrays(whole.chunks)
    indexes = array.indices
    is_used = np.zeros(len(array.dictionary), dtype=bool)
    is_used[indexes.drop_null().to_numpy()] = True
    if is_used.all():
        return array
    places = pa.array(np.cumsum(is_used, dtype=np.int32) - np.int32(1))
    return pa.DictionaryArray.from_arrays(places.take(indexes), array.dictionary.filter(pa.array(is_used)))
