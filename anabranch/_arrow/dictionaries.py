"""Texts that repeat themselves, read as dictionaries and written as such: no text is copied or hashed for each row.

Imports pyarrow and numpy only, since it travels to executors by value, as `anabranch._arrow.files` does.
Guarantee: a file says nothing that its rows do not, as a text of deleted rows; of the types in it none is another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_MOST_BYTES = 1 << 19
"""Of a dictionary; writers give up those of 1 MiB, and what follows them is held as it is."""
_ROWS_OF_TEXT = 4
"""So many rows a text has at least, on average."""
_PROBED_ROWS = 4096
KIND = pa.dictionary(pa.int32(), pa.string())


def with_dictionaries(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """The task, with dictionaries for the columns of texts that each of its files holds as small ones, if at all.

    ``wanted`` says so of their types, and ``dictionaries`` of each file names those that it has.
    """
    wanted: pa.Schema = task["wanted"]
    # A name with a dot might be that of a member of a struct in a file.
    texts = {field.name for field in wanted if pa.types.is_string(field.type) and "." not in field.name}
    are_small = [_are_small(file["path"], texts) for file in task["files"]]
    names = {name for name in texts if all(each.get(name, True) for each in are_small)}
    kinds = (field.with_type(KIND) if field.name in names else field for field in wanted)
    both = zip(task["files"], are_small, strict=True)
    files = [{**file, "dictionaries": sorted(names & each.keys())} for file, each in both]
    return {**task, "wanted": pa.schema(kinds, wanted.metadata), "files": files}


def _are_small(path: str, texts: Collection[str]) -> dict[str, bool]:
    """Of those columns of texts that a file has, whether it holds them as small dictionaries."""
    with pa.OSFile(path) as opened:
        source = pq.ParquetFile(opened)
        there = {field.name: pa.types.is_string(field.type) for field in source.schema_arrow if field.name in texts}
        names = [name for name, is_text in there.items() if is_text]
        groups = range(source.metadata.num_row_groups) if names else ()
        small = [small_in(opened, source.metadata, group, names) for group in groups]
        return {name: is_text and all(name in each for each in small) for name, is_text in there.items()}


def small_in(opened: Any, footer: pq.FileMetaData, group: int, names: Sequence[str]) -> set[str]:
    """Of these columns of texts those that a row group seems to hold as small dictionaries, by its first rows.

    What its chunks say of themselves is not asked: Arrow ends the process where a footer is garbled there.
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
    """The rows with one dictionary for each column that has any, which holds what is in these rows and nothing else."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(at, field, _compact(rows.column(at)))
    return rows


def _compact(column: pa.ChunkedArray) -> pa.Array:
    whole = column.unify_dictionaries().combine_chunks()
    found = whole if isinstance(whole, pa.DictionaryArray) else pa.concat_arrays(whole.chunks)
    indexes = found.indices
    is_used = np.zeros(len(found.dictionary), dtype=bool)
    is_used[indexes.drop_null().to_numpy()] = True
    if is_used.all():
        return found
    places = pa.array(np.cumsum(is_used, dtype=np.int32) - np.int32(1))
    return pa.DictionaryArray.from_arrays(places.take(indexes), found.dictionary.filter(pa.array(is_used)))
