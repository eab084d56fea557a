"""Records where the rows of a file went when they were rewritten unchanged, as by OPTIMIZE.

Pure. A commit that moves rows records it here (``commitInfo.tags``), so that a transaction with marks at their old
addresses can find the new ones. Guarantee: an answer is complete: each requested row has exactly one new address, or
the request is refused.

Not part of Delta's protocol: other engines keep the tag and ignore it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.layout.file_sets import Marks

TAG = "anabranch.moves"
"""The tag of a commit that records moves."""
_FORM = 1
_ROW_BITS = 40
_MOST_ROWS = 1 << _ROW_BITS


@dataclass(frozen=True)
class Origin:
    """A file whose live rows were moved: its number of rows, deleted ones included, and its deletion vector at that
    time.
    """

    path: str
    records: int
    vector: Mapping[str, Any] | None = None

    @property
    def row(self) -> FileRow:
        """The file with its deletion vector only."""
        return {"path": self.path, "deletionVector": self.vector, "stats": None}

    @property
    def live(self) -> int:
        """The number of moved rows."""
        return self.records - (0 if self.vector is None else int(self.vector["cardinality"]))


@dataclass(frozen=True)
class Output:
    """A file that was written, with its number of rows. ``origins`` names the Parquet file (of `curves.ORIGINS`) with
    the origin of each of its rows, if one was written.
    """

    path: str
    records: int
    origins: str | None = None


@dataclass(frozen=True)
class Group:
    """Files that were moved together: each live row of the sources is in exactly one output. If ``in_order``, the only
    output holds the rows of the sources in the order of the sources and of the rows in each.
    """

    sources: tuple[Origin, ...]
    outputs: tuple[Output, ...]
    in_order: bool

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the sources."""
        return frozenset(source.path for source in self.sources)

    def rename_outputs(self, names: Mapping[str, str]) -> Group:
        """The group with other paths for some outputs."""
        outputs = (replace(output, path=names.get(output.path, output.path)) for output in self.outputs)
        return replace(self, outputs=tuple(outputs))


class RowsNotLocated(ValueError):
    """A row has no new address, or several: the recorded moves do not fit the table."""


def to_text(groups: Iterable[Group]) -> str:
    """The text of the tag."""
    return json.dumps({"form": _FORM, "groups": [_group_body(group) for group in groups]}, separators=(",", ":"))


def from_text(text: str) -> tuple[Group, ...]:
    """Parse the content of a tag. Raises ValueError: the form is unknown, or the text is damaged."""
    body = json.loads(text)
    if not isinstance(body, dict) or body.get("form") != _FORM:
        raise ValueError("the form of the record of moves is unknown")
    try:
        groups = tuple(_group(group_body) for group_body in body["groups"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record of moves is damaged: {error!r}") from None
    if not all(_is_sound(group) for group in groups):
        raise ValueError("the record of moves is contradictory")
    return groups


def _is_sound(group: Group) -> bool:
    numbers = [*(source.records for source in group.sources), *(source.records for source in group.outputs)]
    whole = all(0 <= number < _MOST_ROWS for number in numbers)
    return whole and all(0 <= source.live <= source.records for source in group.sources)


def _group_body(group: Group) -> dict[str, Any]:
    sources = [[source.path, source.records, source.vector] for source in group.sources]
    outputs = [[output.path, output.records, output.origins] for output in group.outputs]
    return {"from": sources, "to": outputs, "inOrder": group.in_order}


def _group(body: Mapping[str, Any]) -> Group:
    sources = tuple(
        Origin(_require_text(path), _require_int(records), None if row is None else Descriptor.from_row(row).to_row())
        for path, records, row in body["from"]
    )
    outputs = tuple(
        Output(_require_text(path), _require_int(records), None if origins is None else _require_text(origins))
        for path, records, origins in body["to"]
    )
    return Group(sources, outputs, body["inOrder"] is True)


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _require_int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


# -- from old addresses to new ones ------------------------------------------------------------------------------------


def locate_rows(
    group: Group, rows: Marks, vector: Callable[[FileRow], BitMap64], origins: Callable[[str], pa.Table]
) -> dict[str, BitMap64]:
    """Find the present addresses of rows of a group's sources: path of an output -> positions. The result does not pair
    each old address with a new one; only the complete set is known.

    Args:
        rows: path of a source -> positions in it.
        vector: returns the deleted positions of a file; called only for files of ``rows``.
        origins: returns the table of a name (`Output.origins`).

    Raises:
        RowsNotLocated: one of the rows was not moved, or its new address is uncertain.
    """
    requested = {source.path: rows[source.path] for source in group.sources if rows.get(source.path)}
    if not requested:
        return {}
    dead = {
        source.path: _deleted_positions(source, requested[source.path], vector)
        for source in group.sources
        if source.path in requested
    }
    if sum(source.live for source in group.sources) != sum(source.records for source in group.outputs):
        raise RowsNotLocated("the record of moves has another number of rows than the files")
    if all(source.live == len(requested.get(source.path, ())) for source in group.sources):
        return {output.path: _run(0, output.records) for output in group.outputs if output.records}
    return locate_in_order(group, requested, dead) if group.in_order else _by_origins(group, requested, origins)


def _deleted_positions(origin: Origin, requested: BitMap64, vector: Callable[[FileRow], BitMap64]) -> BitMap64:
    """The positions of a source that were deleted before the move. Raises RowsNotLocated: one of them is requested."""
    dead = vector(origin.row)
    if len(dead) != origin.records - origin.live:
        raise RowsNotLocated(f"the deletion vector of {origin.path} has changed since the move")
    if requested & dead or requested.max() >= origin.records:
        raise RowsNotLocated(f"a row of {origin.path} was deleted before it could be moved")
    return dead


def locate_in_order(group: Group, requested: Marks, dead: Marks) -> dict[str, BitMap64]:
    """Find the rows if one output holds the live rows of all sources, in order."""
    if len(group.outputs) != 1:
        raise RowsNotLocated("rows moved in order must lie in one file, but the record of moves names several")
    before, new_positions = 0, BitMap64()
    for source in group.sources:
        if len(requested.get(source.path, ())) == source.live:
            new_positions |= _run(before, source.live)
        elif source.path in requested:
            old_positions = _array(requested[source.path])
            new_positions |= _bitmap(old_positions - np.searchsorted(_array(dead[source.path]), old_positions) + before)
        before += source.live
    return {group.outputs[0].path: new_positions}


def _by_origins(group: Group, requested: Marks, origins: Callable[[str], pa.Table]) -> dict[str, BitMap64]:
    """Find the rows by the recorded origin of each row of each output."""
    places = {source.path: place for place, source in enumerate(group.sources)}
    wanted_codes = np.concatenate([_code(places[path], _array(positions)) for path, positions in requested.items()])
    located, matches = dict[str, BitMap64](), list[np.ndarray[Any, Any]]()
    for output in group.outputs:
        codes = _origin_codes(output, origins)
        is_wanted = np.isin(codes, wanted_codes)
        matches.append(codes[is_wanted])
        if is_wanted.any():
            located[output.path] = _bitmap(np.flatnonzero(is_wanted))
    if not np.array_equal(np.sort(np.concatenate(matches)), np.sort(wanted_codes)):
        raise RowsNotLocated(f"not every row of {', '.join(sorted(requested))} was moved to exactly one place")
    return located


def _origin_codes(output: Output, origins: Callable[[str], pa.Table]) -> np.ndarray[Any, Any]:
    """The origin of each row of an output, encoded as one number."""
    if output.origins is None:
        raise RowsNotLocated(f"the origins of the rows of {output.path} were not recorded")
    table = origins(output.origins)
    if len(table) != output.records:
        raise RowsNotLocated(f"{output.origins} does not have the origin of each row of {output.path}")
    return _code(table["source"].to_numpy().astype(np.int64), table["row"].to_numpy())


def _code(source: Any, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    code: np.ndarray[Any, Any] = (source << _ROW_BITS) | row
    return code


def _run(first: int, count: int) -> BitMap64:
    """A range of positions, in constant memory."""
    run = BitMap64()
    run.add_range(first, first + count)
    return run


def _array(positions: BitMap64) -> np.ndarray[Any, Any]:
    return np.asarray(positions.to_array(), dtype=np.int64)


def _bitmap(positions: np.ndarray[Any, Any]) -> BitMap64:
    return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
