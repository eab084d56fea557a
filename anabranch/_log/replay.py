"""Replay: from file actions to the set of live files.

Knows PROTOCOL.md, section "Action Reconciliation": the newest action on a (path, vector) decides. Pure and columnar:
one key per action, processed by Arrow and numpy; never an object per file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import line_numbers
from anabranch._protocol.actions import FILES, REMOVES

_SEPARATOR = "\x00"


def keys(actions: pa.Table) -> pa.ChunkedArray:
    """The identity of logical files: path and vector."""
    vector = actions["deletionVector"]
    if vector.null_count == len(vector):
        return actions["path"]
    offset = pc.fill_null(pc.cast(pc.struct_field(vector, "offset"), pa.string()), "")
    parts = [pc.struct_field(vector, "storageType"), pc.struct_field(vector, "pathOrInlineDv"), offset]
    identity = pc.fill_null(pc.binary_join_element_wise(*parts, _SEPARATOR), "")
    joined = pc.binary_join_element_wise(actions["path"], identity, _SEPARATOR)
    return pc.if_else(pc.is_valid(vector), joined, actions["path"])


def replay(adds: pa.Table, removes: pa.Table) -> tuple[pa.Table, pa.Table, pa.ChunkedArray]:
    """The final state of a series of commits, given by ``add`` and ``remove`` actions with their ``line``.

    Returns:
        the live files (`FILES`), the tombstones (`REMOVES`), and the keys of all actions.
    """
    all_keys = pa.chunked_array(keys(adds).chunks + keys(removes).chunks, pa.string())
    if not len(removes) and (len(all_keys) == 0 or pc.count_distinct(all_keys).as_py() == len(all_keys)):
        # Nothing is removed or repeated: the usual case when a table is first loaded.
        return adds.select(FILES.names), removes.select(REMOVES.names), all_keys
    last = _last_per_key(all_keys, np.concatenate([line_numbers(adds), line_numbers(removes)]))
    live, removed = _select_rows(adds, last[: len(adds)]), _select_rows(removes, last[len(adds) :])
    return live.select(FILES.names), removed.select(REMOVES.names), all_keys


def apply_actions(files: pa.Table, adds: pa.Table, removes: pa.Table) -> tuple[pa.Table, pa.BooleanArray | None]:
    """The live files after a further series of commits.

    Returns:
        the files, and a mask of the older ones that remain (None: all); these come first, in their order.
    """
    live, _, touched = replay(adds, removes)
    remaining = _untouched_mask(files, touched)
    if remaining is None or remaining.false_count == 0:
        return pa.concat_tables([files, live]), None
    return pa.concat_tables([files.filter(remaining), live]), remaining


def without(actions: pa.Table, touched: pa.ChunkedArray) -> pa.Table:
    """The actions whose key is not among ``touched``."""
    mask = _untouched_mask(actions, touched)
    return actions if mask is None else actions.filter(mask)


def _select_rows(actions: pa.Table, mask: np.ndarray[Any, Any]) -> pa.Table:
    """The rows of the mask; not copied where it selects all, as in the first load of a large table."""
    return actions if mask.all() else actions.filter(pa.array(mask))


def _untouched_mask(actions: pa.Table, touched: pa.ChunkedArray) -> pa.BooleanArray | None:
    """A mask of the actions whose key is not among ``touched``; None: all."""
    if len(touched) == 0 or len(actions) == 0:
        return None
    mask = pc.invert(pc.is_in(keys(actions), value_set=touched.combine_chunks()))
    return pa.concat_arrays(mask.chunks) if mask.num_chunks else pa.array([], pa.bool_())


def _last_per_key(all_keys: pa.ChunkedArray, lines: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A mask of the actions that have the highest line of their key."""
    codes = all_keys.combine_chunks().dictionary_encode().indices.to_numpy()
    highest = np.full(int(codes.max()) + 1, -1, np.int64)
    np.maximum.at(highest, codes, lines)
    return lines == highest[codes]
