"""Another engine: commits written by hand, in one step, as a writer that knows nothing of ours would.

Knows the log's JSON only. Each returns the lines of the commit that would follow the newest version; who calls decides
when it lands. Used for winners that the product itself does not (yet) write.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._storage import Store
from laboratory.log_reader import actions_in
from laboratory.statements import COLUMNS, Row, Rows

_Body = dict[str, Any]


class OtherEngine:
    """Commits to the table in ``store`` at its newest version.

    Args:
        name: tells its files and transactions from those of others.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    def insert(self, rows: Rows, *, blind: bool) -> int:
        """Add rows in one file per partition; ``blind`` is what the commit says of itself."""
        partitioned = bool(self._metadata()["partitionColumns"])
        groups = sorted({row[1] for row in rows}, key=lambda p: (p is None, p)) if partitioned else [None]
        adds = [self._file([r for r in rows if not partitioned or r[1] == group], group) for group in groups]
        return self._commit("WRITE", adds if rows else [], {"isBlindAppend": blind})

    def restore(self, version: int) -> int:
        """Bring back the files of an old version, vectors and all."""
        now, then = self._live(), self._live(version)
        changed = {path for path in now.keys() | then.keys() if now.get(path) != then.get(path)}
        removes = [_removed(now[path]) for path in sorted(changed & now.keys())]
        adds = [{"add": {**then[path], "dataChange": True}} for path in sorted(changed & then.keys())]
        return self._commit("RESTORE", [*removes, *adds], {"isBlindAppend": False})

    def configure(self) -> int:
        """Change a property that no row depends on."""
        metadata = dict(self._metadata())
        metadata["configuration"] = {**metadata["configuration"], f"lab.{self._name}": "1"}
        return self._commit("SET TBLPROPERTIES", [{"metaData": metadata}], {})

    def upgrade(self) -> int:
        """Ask writers for a feature that nobody knows."""
        protocol = dict(self._newest("protocol"))
        features = [*protocol.get("writerFeatures", []), "unknownHere"]
        protocol |= {"minWriterVersion": 7, "writerFeatures": sorted(set(features))}
        return self._commit("UPGRADE PROTOCOL", [{"protocol": protocol}], {})

    def _file(self, rows: list[Row], partition: int | None, name: str = "") -> _Body:
        columns = self._metadata()["partitionColumns"]
        named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        data = [{n: v for n, v in row.items() if n not in columns} for row in named]
        schema = pa.schema([(name, pa.int64()) for name in COLUMNS if name not in columns])
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(data, schema=schema), sink, compression="none")
        size, path = len(sink.getvalue()), f"other-{self._name}-{len(self._names())}-{name}{partition}.parquet"
        self._store.put(path, sink.getvalue())
        values = {name: None if partition is None else str(partition) for name in columns}
        body = {"path": quote(path), "partitionValues": values, "size": size, "modificationTime": 0}
        return {"add": {**body, "dataChange": True, "stats": json.dumps({"numRecords": len(rows)})}}

    def _commit(self, operation: str, actions: list[_Body], info: Mapping[str, Any]) -> int:
        version = len(self._names())
        said = {"timestamp": version, "operation": operation, "engineInfo": "other", "txnId": self._name, **info}
        return self._put([{"commitInfo": said}, *actions])

    def _put(self, actions: list[_Body]) -> int:
        version, lines = len(self._names()), map(json.dumps, actions)
        self._store.put_if_absent(f"_delta_log/{version:020}.json", "\n".join([*lines, ""]).encode())
        return version

    def _names(self) -> list[str]:
        return [e.name for e in self._store.list_from("_delta_log/") if e.name.endswith(".json")]

    def _newest(self, wanted: str) -> _Body:
        actions = (action for number in range(len(self._names())) for action in self._of(number))
        return [body for kind, body in actions if kind == wanted][-1]

    def _metadata(self) -> _Body:
        return self._newest("metaData")

    def _live(self, version: int | None = None) -> dict[str, _Body]:
        live: dict[str, _Body] = {}
        for number in range(len(self._names()) if version is None else version + 1):
            bodies = self._of(number)
            for kind, body in bodies:
                if kind == "remove":
                    live.pop(body["path"], None)
            live.update({body["path"]: body for kind, body in bodies if kind == "add"})
        return live

    def _of(self, version: int) -> list[tuple[str, _Body]]:
        return actions_in(self._store.get(f"_delta_log/{version:020}.json"))


def _removed(add: Mapping[str, Any]) -> _Body:
    kept = {name: add[name] for name in ("path", "partitionValues", "size", "deletionVector") if add.get(name)}
    return {"remove": {**kept, "path": add["path"], "deletionTimestamp": 0, "dataChange": True}}
