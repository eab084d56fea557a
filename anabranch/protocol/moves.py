"""Moves: where the rows of a file went when they were written anew without a change, as OPTIMIZE does.

Pure. A commit that moves rows records it here (``commitInfo.tags``), so that whoever has marked rows at their old
addresses can find them at their new ones. Guarantee: an answer is complete: each row that is asked for has exactly one
new address, or the question is refused.

Not part of Delta's protocol: other engines keep the tag and pass it by.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch.protocol.actions import FileRow
from anabranch.protocol.filesets import Marks, count_of

TAG = "anabranch.moves"
"""The tag of a commit that says where rows went."""
_FORM = 1


@dataclass(frozen=True)
class Origin:
    """A file whose live rows were moved: how many it holds, deleted ones too, and the vector that it had then (as the
    log says it).
    """

    path: str
    records: int
    vector: Mapping[str, Any] | None = None

    @property
    def row(self) -> FileRow:
        """The file, as far as its vector is concerned."""
        return {"path": self.path, "deletionVector": self.vector, "stats": None}


@dataclass(frozen=True)
class Output:
    """A file that was written, with so many rows. ``origins`` names the Parquet file (of `curves.ORIGINS`) that says
    for each of its rows in turn where it came from, if that was kept.
    """

    path: str
    records: int
    origins: str | None = None


@dataclass(frozen=True)
class Group:
    """Files that were moved together: each live row of the sources is in exactly one of the outputs. Where they are
    ``in_order``, there is one output: source after source, and the rows of each as they lay.
    """

    sources: tuple[Origin, ...]
    outputs: tuple[Output, ...]
    in_order: bool

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the sources."""
        return frozenset(each.path for each in self.sources)

    def renamed(self, names: Mapping[str, str]) -> Group:
        """With other paths for some outputs."""
        outputs = (replace(each, path=names.get(each.path, each.path)) for each in self.outputs)
        return replace(self, outputs=tuple(outputs))


class Misplaced(ValueError):
    """A row has no new address, or more than one: what was recorded does not fit the table."""


def to_text(groups: Iterable[Group]) -> str:
    """As the tag holds it."""
    return json.dumps({"form": _FORM, "groups": [_group_body(each) for each in groups]}, separators=(",", ":"))


def from_text(text: str) -> tuple[Group, ...]:
    """From a tag.

    Raises:
        ValueError: it is of a form that is not known here, or is damaged.
    """
    body = json.loads(text)
    if not isinstance(body, dict) or body.get("form") != _FORM:
        raise ValueError("the form of the record of moves is not known here")
    try:
        return tuple(_group(each) for each in body["groups"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"the record of moves is damaged: {error!r}") from None


def _group_body(group: Group) -> dict[str, Any]:
    sources = [[each.path, each.records, each.vector] for each in group.sources]
    outputs = [[each.path, each.records, each.origins] for each in group.outputs]
    return {"from": sources, "to": outputs, "inOrder": group.in_order}


def _group(body: Mapping[str, Any]) -> Group:
    sources = tuple(Origin(str(path), int(records), vector) for path, records, vector in body["from"])
    outputs = tuple(Output(str(path), int(records), origins) for path, records, origins in body["to"])
    return Group(sources, outputs, body["inOrder"] is True)


# -- from old addresses to new ones ------------------------------------------------------------------------------------


def moved(
    group: Group,
    rows: Marks,
    vector: Callable[[FileRow], BitMap64],
    origins: Callable[[str], pa.Table],
) -> dict[str, BitMap64]:
    """Where these rows of a group's sources are now: path of an output -> positions. All of them are all that is there,
    in whatever order.

    Args:
        group: what was moved together.
        rows: path of a source -> positions in it.
        vector: gives the deleted positions of a file.
        origins: gives the table of a name (`Output.origins`).

    Raises:
        Misplaced: one of the rows was not moved, or its new address is not known for certain.
    """
    dead = {each.path: vector(each.row) for each in group.sources}
    for each in group.sources:
        own = rows.get(each.path, BitMap64())
        if own & dead[each.path] or (own and own.max() >= each.records):
            raise Misplaced(f"a row of {each.path} was deleted before it could be moved")
    asked = count_of({path: rows[path] for path in group.paths & rows.keys()})
    if asked == _lives(group, dead) == sum(each.records for each in group.outputs):
        return {each.path: BitMap64(range(each.records)) for each in group.outputs if each.records}
    found = _found(group, rows, dead, origins)
    if count_of(found) != asked:
        raise Misplaced(f"not every row of {', '.join(sorted(group.paths & rows.keys()))} was moved")
    return {path: positions for path, positions in found.items() if positions}


def _found(group: Group, rows: Marks, dead: Marks, origins: Callable[[str], pa.Table]) -> dict[str, BitMap64]:
    if not group.in_order:
        return {each.path: _by_origins(group, each, rows, origins) for each in group.outputs}
    if len(group.outputs) != 1 or _lives(group, dead) != group.outputs[0].records:
        raise Misplaced("the record of moves says another number of rows than were there")
    return {group.outputs[0].path: _one_after_the_other(group, rows, dead)}


def _lives(group: Group, dead: Marks) -> int:
    return sum(each.records - len(dead[each.path]) for each in group.sources)


def _one_after_the_other(group: Group, rows: Marks, dead: Marks) -> BitMap64:
    """Positions where the sources' live rows lie one behind the other, in their order."""
    before, found = 0, BitMap64()
    for each in group.sources:
        if asked := rows.get(each.path):
            positions, gone = _array(asked), _array(dead[each.path])
            found |= _bitmap(positions - np.searchsorted(gone, positions) + before)
        before += each.records - len(dead[each.path])
    return found


def _by_origins(group: Group, output: Output, rows: Marks, origins: Callable[[str], pa.Table]) -> BitMap64:
    """Positions where a table says so for each row of the output."""
    if output.origins is None:
        raise Misplaced(f"it was not recorded which rows went to {output.path}")
    table = origins(output.origins)
    if len(table) != output.records:
        raise Misplaced(f"{output.origins} does not say where each row of {output.path} came from")
    found = BitMap64()
    for place, each in enumerate(group.sources):
        if asked := rows.get(each.path):
            here = pc.indices_nonzero(pc.equal(table["source"], pa.scalar(place, pa.int32()))).to_numpy()
            came = table["row"].to_numpy()[here]
            found |= _bitmap(here[np.isin(came, _array(asked))])
    return found


def _array(positions: BitMap64) -> np.ndarray[Any, Any]:
    return np.fromiter(positions, np.int64, len(positions))


def _bitmap(positions: np.ndarray[Any, Any]) -> BitMap64:
    return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
