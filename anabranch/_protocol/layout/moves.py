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
    """A file whose live rows were moved: its number of rows, deleted ones included, and the vector that it then had in
    the log.
    """

    path: str
    records: int
    vector: Mapping[str, Any] | None = None

    @property
    def row(self) -> FileRow:
        """The file with its vector only."""
        return {"path": self.path, "deletionVector": self.vector, "stats": None}

    @property
    def live(self) -> int:
        """The number of moved rows."""
        return self.records - (0 if self.vector is None else int(self.vector["cardinality"]))


@dataclass(frozen=True)
class Output:
    """A file that was written, with its number of rows. ``origins`` names the Parquet file (of `curves.ORIGINS`) with
    the origin of each of its rows, if that was kept.
    """

    path: str
    records: int
    origins: str | None = None


@dataclass(frozen=True)
class Group:
    """Files that were moved together: each live row of the sources is in exactly one output. If ``in_order``, there is
    one output: source after source, each with its rows in order.
    """

    sources: tuple[Origin, ...]
    outputs: tuple[Output, ...]
    in_order: bool

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the sources."""
        return frozenset(each.path for each in self.sources)

    def rename_outputs(self, names: Mapping[str, str]) -> Group:
        """With other paths for some outputs."""
        outputs = (replace(each, path=names.get(each.path, each.path)) for each in self.outputs)
        return replace(self, outputs=tuple(outputs))


class Misplaced(ValueError):
    """A row has no new address, or several: the record does not fit the table."""


def to_text(groups: Iterable[Group]) -> str:
    """The text of the tag."""
    return json.dumps({"form": _FORM, "groups": [_group_body(each) for each in groups]}, separators=(",", ":"))


def from_text(text: str) -> tuple[Group, ...]:
    """The content of a tag. Raises ValueError: its form is unknown, or it is damaged."""
    body = json.loads(text)
    if not isinstance(body, dict) or body.get("form") != _FORM:
        raise ValueError("the form of the record of moves is not known here")
    try:
        groups = tuple(_group(each) for each in body["groups"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record of moves is damaged: {error!r}") from None
    if not all(_is_sound(each) for each in groups):
        raise ValueError("the record of moves says what cannot be")
    return groups


def _is_sound(group: Group) -> bool:
    numbers = [*(each.records for each in group.sources), *(each.records for each in group.outputs)]
    whole = all(0 <= number < _MOST_ROWS for number in numbers)
    return whole and all(0 <= each.live <= each.records for each in group.sources)


def _group_body(group: Group) -> dict[str, Any]:
    sources = [[each.path, each.records, each.vector] for each in group.sources]
    outputs = [[each.path, each.records, each.origins] for each in group.outputs]
    return {"from": sources, "to": outputs, "inOrder": group.in_order}


def _group(body: Mapping[str, Any]) -> Group:
    sources = tuple(
        Origin(_text(path), _whole(records), None if row is None else Descriptor.from_row(row).to_row())
        for path, records, row in body["from"]
    )
    outputs = tuple(
        Output(_text(path), _whole(records), None if origins is None else _text(origins))
        for path, records, origins in body["to"]
    )
    return Group(sources, outputs, body["inOrder"] is True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


# -- from old addresses to new ones ------------------------------------------------------------------------------------


def locate_rows(
    group: Group, rows: Marks, vector: Callable[[FileRow], BitMap64], origins: Callable[[str], pa.Table]
) -> dict[str, BitMap64]:
    """Where these rows of a group's sources are now: path of an output -> positions. Only the complete set is known, in
    any order.

    Args:
        rows: path of a source -> positions in it.
        vector: returns the deleted positions of a file; called only for files of ``rows``.
        origins: returns the table of a name (`Output.origins`).

    Raises:
        Misplaced: one of the rows was not moved, or its new address is uncertain.
    """
    asked = {each.path: rows[each.path] for each in group.sources if rows.get(each.path)}
    if not asked:
        return {}
    dead = {each.path: _dead(each, asked[each.path], vector) for each in group.sources if each.path in asked}
    if sum(each.live for each in group.sources) != sum(each.records for each in group.outputs):
        raise Misplaced("the record of moves says another number of rows than were there")
    if all(each.live == len(asked.get(each.path, ())) for each in group.sources):
        return {each.path: _run(0, each.records) for each in group.outputs if each.records}
    return locate_in_order(group, asked, dead) if group.in_order else _by_origins(group, asked, origins)


def _dead(origin: Origin, asked: BitMap64, vector: Callable[[FileRow], BitMap64]) -> BitMap64:
    """The positions of a source that were deleted before it was moved; raises if one of them is requested."""
    dead = vector(origin.row)
    if len(dead) != origin.records - origin.live:
        raise Misplaced(f"the vector of {origin.path} is not the one that it had when it was moved")
    if asked & dead or asked.max() >= origin.records:
        raise Misplaced(f"a row of {origin.path} was deleted before it could be moved")
    return dead


def locate_in_order(group: Group, asked: Marks, dead: Marks) -> dict[str, BitMap64]:
    """Positions where one output has the live rows of all sources, in order."""
    if len(group.outputs) != 1:
        raise Misplaced("rows in their order lie in one file, and the record of moves says another number")
    before, found = 0, BitMap64()
    for each in group.sources:
        if len(asked.get(each.path, ())) == each.live:
            found |= _run(before, each.live)
        elif each.path in asked:
            positions = _array(asked[each.path])
            found |= _bitmap(positions - np.searchsorted(_array(dead[each.path]), positions) + before)
        before += each.live
    return {group.outputs[0].path: found}


def _by_origins(group: Group, asked: Marks, origins: Callable[[str], pa.Table]) -> dict[str, BitMap64]:
    """Positions where the origin of each row of each output was recorded."""
    places = {each.path: place for place, each in enumerate(group.sources)}
    wanted = np.concatenate([_code(places[path], _array(positions)) for path, positions in asked.items()])
    found, met = dict[str, BitMap64](), list[np.ndarray[Any, Any]]()
    for output in group.outputs:
        codes = _origins(output, origins)
        here = np.isin(codes, wanted)
        met.append(codes[here])
        if here.any():
            found[output.path] = _bitmap(np.flatnonzero(here))
    if not np.array_equal(np.sort(np.concatenate(met)), np.sort(wanted)):
        raise Misplaced(f"not every row of {', '.join(sorted(asked))} was moved to one place")
    return found


def _origins(output: Output, origins: Callable[[str], pa.Table]) -> np.ndarray[Any, Any]:
    """The origin of each row of an output, as one number."""
    if output.origins is None:
        raise Misplaced(f"it was not recorded which rows went to {output.path}")
    table = origins(output.origins)
    if len(table) != output.records:
        raise Misplaced(f"{output.origins} does not say where each row of {output.path} came from")
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
