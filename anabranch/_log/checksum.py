"""Version checksum files: the totals of a version.

Knows PROTOCOL.md, section "Version Checksum File". Guarantee: a checksum is written only from what is certain: the
previous one and the commit's changes, or the files themselves where they were read; it replaces none. Readers never
take anything from a checksum; they only compare with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._log.file_names import checksum_name
from anabranch._log.size_limits import hint
from anabranch._protocol.actions import AppTransaction, DomainMetadata, Metadata, Protocol
from anabranch._storage.contract import Store
from anabranch.errors import AlreadyExists, NotFound
from anabranch.errors.rows import cause, detail

LISTED = 100
"""Up to this many application transactions, or domains, are listed in a checksum file; more are left out."""

_IN_COMMIT = "delta.enableInCommitTimestamps"
_NOT_WHOLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Checksum:
    """The totals of one version; an unknown one is None: ``vectors`` (the number of files with a deletion vector),
    ``deleted`` (the number of deleted rows), ``app_transactions``, ``domains``.
    """

    version: int
    size: int
    files: int
    metadata: Metadata
    protocol: Protocol
    vectors: int | None = None
    deleted: int | None = None
    app_transactions: Mapping[str, AppTransaction] | None = None
    domains: Mapping[str, DomainMetadata] | None = None
    txn_id: str | None = None
    in_commit_timestamp: int | None = None

    @classmethod
    def of_files(
        cls,
        version: int,
        files: pa.Table,
        metadata: Metadata,
        protocol: Protocol,
        app_transactions: Mapping[str, AppTransaction],
        domains: Mapping[str, DomainMetadata],
        timestamp: int,
        txn_id: str | None,
    ) -> Checksum:
        """The checksum of a version with these live files."""
        sums = _sums(files)
        return cls(
            version=version,
            size=sums["size"],
            files=sums["files"],
            metadata=metadata,
            protocol=protocol,
            vectors=sums["vectors"],
            deleted=sums["deleted"],
            app_transactions=app_transactions,
            domains=domains,
            txn_id=txn_id,
            in_commit_timestamp=timestamp if _has_in_commit(metadata) else None,
        )

    @classmethod
    def from_json(cls, version: int, text: bytes) -> Checksum:
        """The content of a checksum file. Raises ValueError: it is malformed."""
        try:
            return cls._from_json(version, json.loads(text))
        except _NOT_WHOLE as error:
            raise ValueError(f"it is no checksum file ({detail(error)})") from cause(error)

    @classmethod
    def _from_json(cls, version: int, document: Mapping[str, Any]) -> Checksum:
        if document["numMetadata"] != 1 or document["numProtocol"] != 1:
            raise ValueError("it counts several protocols or metadatas")
        apps, domains = document.get("setTransactions"), document.get("domainMetadata")
        return cls(
            version=version,
            size=_count(document["tableSizeBytes"]),
            files=_count(document["numFiles"]),
            metadata=Metadata.from_json(document["metadata"]),
            protocol=Protocol.from_json(document["protocol"]),
            vectors=_count(document["numDeletionVectorsOpt"])
            if document.get("numDeletionVectorsOpt") is not None
            else None,
            deleted=_count(document["numDeletedRecordsOpt"])
            if document.get("numDeletedRecordsOpt") is not None
            else None,
            app_transactions=None if apps is None else {t.app_id: t for t in map(AppTransaction.from_json, apps)},
            domains=None if domains is None else {d.domain: d for d in map(DomainMetadata.from_json, domains)},
            txn_id=document.get("txnId"),
            in_commit_timestamp=document.get("inCommitTimestampOpt"),
        )

    def to_json(self) -> bytes:
        """The file's one JSON object."""
        fields: dict[str, Any] = {
            "txnId": self.txn_id,
            "tableSizeBytes": self.size,
            "numFiles": self.files,
            "numDeletedRecordsOpt": self.deleted,
            "numDeletionVectorsOpt": self.vectors,
            "numMetadata": 1,
            "numProtocol": 1,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": _to_json_list(self.app_transactions),
            "domainMetadata": _to_json_list(self.domains),
            "metadata": self.metadata.to_json(),
            "protocol": self.protocol.to_json(),
        }
        present = {name: value for name, value in fields.items() if value is not None}
        return json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode()

    def advance_by(self, commit: Commit, restated: Collection[str] = ()) -> Checksum | None:
        """The checksum of the next version, or None where the commit does not determine the totals; ``restated`` are
        paths of live files for which the commit has an ``add`` that changes no total.
        """
        change = _change(b"".join(commit.file_lines()), frozenset(restated))
        if commit.version != self.version + 1 or change is None:
            return None
        head = commit.head
        metadata = head.metadata or self.metadata
        apps, domains = self.app_transactions, self.domains
        if apps is not None:
            apps = {**apps, **{app.app_id: app for app in head.app_transactions}}
        if domains is not None:
            merged = {**domains, **{domain.domain: domain for domain in head.domains}}
            domains = {name: domain for name, domain in merged.items() if not domain.removed}
        return replace(
            self,
            version=commit.version,
            size=self.size + change.size,
            files=self.files + change.files,
            metadata=metadata,
            protocol=head.protocol or self.protocol,
            vectors=None if self.vectors is None else self.vectors + change.vectors,
            deleted=None if self.deleted is None else self.deleted + change.deleted,
            app_transactions=apps,
            domains=domains,
            txn_id=commit.txn_id,
            in_commit_timestamp=commit.timestamp if _has_in_commit(metadata) else None,
        )

    def differs(self, truth: Checksum) -> list[str]:
        """The differences from the truth, in words; a total that it does not state is no difference."""
        return self._differs({name: getattr(truth, name) for name in _COMPARED})

    def differs_from(self, files: pa.Table) -> list[str]:
        """The differences from the totals of these live files, in words."""
        return self._differs(_sums(files))

    def describes(self, metadata: Metadata, protocol: Protocol) -> bool:
        """Whether it has this protocol, and the same metadata as far as reading and writing rows depends on it."""
        return self.protocol == protocol and row_metadata(self.metadata) == row_metadata(metadata)

    def _differs(self, truth: Mapping[str, Any]) -> list[str]:
        differences = []
        for name, true in truth.items():
            stated, words = getattr(self, name), _COMPARED[name]
            if stated is not None and stated != true:
                suffix = f" {stated}, not {true}" if isinstance(true, int) else ""
                differences.append(f"it states other {words}{suffix}")
        return differences


_COMPARED = {
    "size": "bytes",
    "files": "numbers of files",
    "metadata": "metadata",
    "protocol": "protocol",
    "vectors": "numbers of vectors",
    "deleted": "numbers of deleted rows",
    "app_transactions": "application transactions",
    "domains": "domains",
}


def first_checksum(commit: Commit) -> Checksum | None:
    """The checksum of version 0, which holds what its commit adds."""
    if commit.head.metadata is None or commit.head.protocol is None:
        return None
    nothing = Checksum(-1, 0, 0, commit.head.metadata, commit.head.protocol, 0, 0, {}, {})
    return nothing.advance_by(commit)


def read_checksum(store: Store, version: int) -> Checksum | None:
    """The checksum of a version, or None where it is missing or broken."""
    try:
        return Checksum.from_json(version, hint(store, checksum_name(version)))
    except (NotFound, ValueError, MemoryError):
        return None


def put_checksum(store: Store, checksum: Checksum) -> None:
    """Put a checksum unless there is one; it need not survive a power cut."""
    try:
        store.put_hint(checksum_name(checksum.version), checksum.to_json())
    except AlreadyExists:
        return


@dataclass(frozen=True)
class _Change:
    """How a commit changes the totals."""

    size: int
    files: int
    vectors: int
    deleted: int


def _change(lines: bytes, restated: frozenset[str]) -> _Change | None:
    """The change by a commit's file actions; None where they do not determine it.

    They are read one by one, which is cheapest for a small commit. Without any remove, an add that changes no data may
    restate a live file, even if ``restated`` does not list it.
    """
    actions = [json.loads(text) for text in lines.split(b"\n") if text.strip()]
    removes = [action["remove"] for action in actions if "remove" in action]
    skipped = restated - {action["path"] for action in removes}
    adds = [action["add"] for action in actions if "add" in action and action["add"]["path"] not in skipped]
    signed = [(1, add) for add in adds] + [(-1, remove) for remove in removes]
    if any(file.get("size") is None for _, file in signed):
        return None
    if not removes and not all(add.get("dataChange") for add in adds):
        return None
    vectors = [(sign, file["deletionVector"]) for sign, file in signed if file.get("deletionVector")]
    return _Change(
        size=sum(sign * file["size"] for sign, file in signed),
        files=len(adds) - len(removes),
        vectors=sum(sign for sign, _ in vectors),
        deleted=sum(sign * vector["cardinality"] for sign, vector in vectors),
    )


def _has_in_commit(metadata: Metadata) -> bool:
    return metadata.configuration.get(_IN_COMMIT, "").strip().lower() == "true"


def _to_json_list(actions: Mapping[str, AppTransaction] | Mapping[str, DomainMetadata] | None) -> list[Any] | None:
    return None if actions is None or len(actions) > LISTED else [action.to_json() for action in actions.values()]


def _sums(files: pa.Table) -> dict[str, int]:
    vectors = files["deletionVector"]
    deleted = _sum(pc.struct_field(vectors, "cardinality"))
    return {
        "size": _sum(files["size"]),
        "files": len(files),
        "vectors": len(files) - vectors.null_count,
        "deleted": deleted,
    }


def row_metadata(metadata: Metadata) -> tuple[Any, ...]:
    """The part of metadata on which reading and writing rows depends."""
    return metadata.schema_string, metadata.partition_columns, dict(metadata.configuration)


def _sum(numbers: pa.ChunkedArray) -> int:
    return int(pc.sum(numbers).as_py() or 0)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
