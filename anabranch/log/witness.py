"""Witness: what else says which files of a version are live, held against what was read.

Knows the checksum files (PROTOCOL.md, "Version Checksum File") and the hint; reads no other action. Guarantee: files at
odds with the checksum file of their version are never given, unless two ways through the log that share no file agree
on them (a checkpoint of that very version, and the commits); then it is the checksum file that is wrong. One of another
table, as of one that stood at this path before, or one that cannot be read, says nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import CorruptLog, StoreError
from anabranch.log.checkpoint import Checkpoint
from anabranch.log.checksum import Checksum, read_checksum
from anabranch.log.names import checksum_name
from anabranch.log.parts import Found
from anabranch.log.replay import keys
from anabranch.protocol.actions import Metadata, Protocol
from anabranch.storage.contract import Store

_logger = logging.getLogger(__name__)


class Witness:
    """What speaks for the files of one version, asked while they are read."""

    def __init__(self, store: Store, metadata: Metadata, protocol: Protocol, version: int) -> None:
        self._store, self._metadata, self._protocol, self._version = store, metadata, protocol, version
        self._stated: Future[Checksum | None] | None = None
        self._refused: list[pa.Table] = []

    @contextmanager
    def asked(self, checkpoint: Found | None) -> Iterator[None]:
        """Ask for the checksum file beside what is done meanwhile, so that it takes no time of its own."""
        with ThreadPoolExecutor(1, thread_name_prefix="anabranch-witness") as pool:
            self._stated = pool.submit(self._read, checkpoint)
            yield

    def hold(self, checkpoint: Found | None, base: pa.Table, files: pa.Table, compaction: str | None = None) -> None:
        """Hold that the files of this version, of which the checkpoint had those of ``base``, are what is stated.

        Args:
            compaction: a log compaction file that was read in place of commits.

        Raises:
            CorruptLog: they are not; it names the compaction, or else the checkpoint, where there is one, so that
                another way is tried. So it does where nothing speaks for a compaction: the commits are there.
        """
        assert self._stated is not None
        stated = self._stated.result()
        if compaction is not None and (stated is None or not self._agrees(stated, files)):
            reason = f"{checksum_name(self._version)} does not say that it is right."
            raise CorruptLog(table=self._store.url, file=compaction, reason=reason)
        if stated is None:
            if checkpoint is not None:
                Checkpoint(self._store, checkpoint).check_hint(base)
            return
        different = stated.differs_from(files if stated.version == self._version else base)
        if stated.version == self._version and not stated.describes(self._metadata, self._protocol):
            different = [*different, "it states another protocol or metadata"]
        if different and not self._is_second(checkpoint, files):
            raise self._contradicted(stated, checkpoint, base, "; ".join(different))

    def _agrees(self, stated: Checksum, files: pa.Table) -> bool:
        return stated.version == self._version and not stated.differs_from(files)

    def _is_second(self, checkpoint: Found | None, files: pa.Table) -> bool:
        """Whether another way gave the same files before, and shared no commit with this one."""
        if any(same_files(files, other) for other in self._refused):
            _logger.warning("%s of %s is wrong, and is passed over", checksum_name(self._version), self._store.url)
            return True
        if checkpoint is not None and checkpoint.version == self._version:
            self._refused.append(files)
        return False

    def _contradicted(self, stated: Checksum, checkpoint: Found | None, base: pa.Table, said: str) -> CorruptLog:
        """The error, which names the checkpoint where that is at odds with the checksum file of its own version."""
        table, own = self._store.url, checksum_name(stated.version)
        more = {} if checkpoint is None else {"checkpoint": checkpoint.name}
        summed = stated if checkpoint and checkpoint.version == stated.version else self._of(checkpoint)
        if checkpoint is not None and summed is not None and summed.differs_from(base):
            reason = f"it is at odds with {checksum_name(summed.version)}: {'; '.join(summed.differs_from(base))}."
            return CorruptLog(table=table, file=checkpoint.name, reason=reason, **more)
        reason = f"{said}, by the other files of the log. If those are right, remove this one: nothing is lost with it."
        return CorruptLog(table=table, file=own, reason=reason, **more)

    def _read(self, checkpoint: Found | None) -> Checksum | None:
        """That of the version, or else of the checkpoint."""
        return self._at(self._version) or self._of(checkpoint)

    def _of(self, checkpoint: Found | None) -> Checksum | None:
        is_other = checkpoint is not None and checkpoint.version != self._version
        return self._at(checkpoint.version) if checkpoint is not None and is_other else None

    def _at(self, version: int) -> Checksum | None:
        try:
            found = read_checksum(self._store, version)
        except StoreError as error:
            _logger.warning("%s of %s cannot be read: %s", checksum_name(version), self._store.url, error)
            return None
        return found if found is not None and found.metadata.id == self._metadata.id else None


def same_files(one: pa.Table, other: pa.Table) -> bool:
    """Whether these are the same live files, of the same sizes, with the same vectors."""
    if len(one) != len(other):
        return False
    first, second = _sorted(one), _sorted(other)
    return first.equals(second)


def _sorted(files: pa.Table) -> pa.Table:
    deleted = pc.struct_field(files["deletionVector"], "cardinality")
    named = pa.table({"key": keys(files), "size": files["size"], "deleted": deleted})
    return named.sort_by("key").combine_chunks()
