"""Row ids as a plain reader of the protocol finds them, and what must be true of them in any history.

Reads logs as the laboratory's second reader does, apart from the product.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch._storage import Store
from laboratory.log_reader import Reader, Version, actions_in, rows_in
from laboratory.statements import COLUMNS, Row

_NAMES = "delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName"


@dataclass(frozen=True)
class Tracked:
    """A row, its id and its commit version."""

    row: Row
    id: int
    version: int


@dataclass
class TrackedReader(Reader):
    """Reads every version; its rows are `Tracked`, and it checks what a writer must keep of ids."""

    columns: tuple[str, ...] = COLUMNS
    mark: int = -1
    _names: tuple[str, ...] = ()
    _numbers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def _version(self, number: int, name: str) -> Version:
        bodies = actions_in(self.store.get(name))
        before = self.mark
        for kind, body in bodies:
            if kind == "metaData":
                self._names = tuple(body["configuration"][key] for key in _NAMES if key in body["configuration"])
            if kind == "domainMetadata" and body["domain"] == "delta.rowTracking":
                self.mark = json.loads(body["configuration"])["rowIdHighWaterMark"]
        adds = [body for kind, body in bodies if kind == "add"]
        for add in adds:
            self._check_numbers(number, add, before)
        return super()._version(number, name)

    def _check_numbers(self, number: int, add: Mapping[str, Any], before: int) -> None:
        base, version, path = add.get("baseRowId"), add.get("defaultRowCommitVersion"), add["path"]
        if base is None or version is None:
            self.faults.append(f"version {number} adds {path} without row ids")
            return
        known = self._numbers.setdefault(path, (base, version))
        if known != (base, version):
            self.faults.append(f"version {number} gives {path} other ids than it had")
        if path not in self._live and (base <= before or version != number):
            self.faults.append(f"version {number} gives {path} ids from {base}, below the mark {before}, of {version}")
        if base + json.loads(add["stats"])["numRecords"] - 1 > self.mark:
            self.faults.append(f"version {number} gives {path} ids above its own mark {self.mark}")

    def _physical(self, add: Mapping[str, Any]) -> list[Any]:
        from urllib.parse import unquote

        values = {name: None if text is None else int(text) for name, text in add["partitionValues"].items()}
        base, version = self._numbers.get(add["path"], (0, 0))
        return [
            Tracked(tuple({**row, **values}.get(name) for name in self.columns), *self._of_row(row, base + i, version))
            for i, row in enumerate(rows_in(self.store.get(unquote(add["path"]))))
        ]

    def _of_row(self, row: Mapping[str, Any], own: int, version: int) -> tuple[int, int]:
        kept = [row.get(name) for name in self._names] or [None, None]
        return own if kept[0] is None else kept[0], version if kept[1] is None else kept[1]


def tracked_rows(store: Store, columns: tuple[str, ...] = COLUMNS) -> list[Tracked]:
    """The rows of the newest version with their ids."""
    newest = TrackedReader(store, columns=columns).versions()[-1]
    return list(newest.rows)  # type: ignore[arg-type]


def wrong_ids(store: Store, columns: tuple[str, ...] = COLUMNS) -> list[str]:
    """Everything that is wrong with the ids of a table, over all of its versions, in words."""
    reader = TrackedReader(store, columns=columns)
    versions = reader.versions()
    return [*reader.faults, *_wrong_rows(versions)]


def _wrong_rows(versions: list[Version]) -> Iterator[str]:
    """No id twice; what stays keeps its version, what changes gets the commit's, what comes is new."""
    seen: set[int] = set()
    before: dict[int, Tracked] = {}
    for each in versions:
        rows: dict[int, Tracked] = {row.id: row for row in each.rows}  # type: ignore[attr-defined, misc]
        if len(rows) < len(each.rows):
            yield f"version {each.number} holds an id twice"
        for id_, row in rows.items():
            old = before.get(id_)
            if old is None and id_ in seen:
                yield f"version {each.number} gives the id {id_} again"
            if old is None and row.version != each.number:
                yield f"version {each.number} brings the row {row}, of another version"
            if old is not None and row.row != old.row and row.version != each.number:
                yield f"version {each.number} changes {old} to {row}, of another version"
            if old is not None and row.version not in (old.version, each.number):
                yield f"version {each.number} gives {old} the version {row.version}"
        yield from _wrong_counts(each, set(before), set(rows))
        seen |= rows.keys()
        before = rows


def _wrong_counts(version: Version, before: set[int], after: set[int]) -> Iterator[str]:
    """What came and went is what the commit says that it did."""
    said = {name: int(value) for name, value in (version.info.get("operationMetrics") or {}).items()}
    came, went = len(after - before), len(before - after)
    wanted = {
        "UPDATE": (0, 0),
        "DELETE": (0, said.get("numDeletedRows")),
        "MERGE": (said.get("numTargetRowsInserted"), said.get("numTargetRowsDeleted")),
        "SET TBLPROPERTIES": (0, 0),
        "ROW TRACKING BACKFILL": (0, 0),
    }.get(version.info["operation"])
    if wanted is not None and wanted != (came, went):
        yield f"version {version.number} is {version.info['operation']}: {came} ids came and {went} went, not {wanted}"
