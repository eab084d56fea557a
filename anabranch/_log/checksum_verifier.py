"""Verifies the files that were read for a version against its checksum file.

Knows the checksum files (PROTOCOL.md, "Version Checksum File") and the hint; reads no other action. Guarantee: the
commits decide. Files that contradict the checksum file of their version are only returned where they come from commits
alone, or where a second segment gives the same: a checkpoint, and the commits before it that it replaces. Then the
checksum file is wrong, and a warning names it. A checksum file of another table, such as an earlier one at this path,
or an unreadable one is ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.checkpoint import Checkpoint
from anabranch._log.checkpoint_parts import CheckpointFiles
from anabranch._log.checksum import Checksum, read_checksum
from anabranch._log.file_names import checksum_name
from anabranch._log.replay import keys
from anabranch._protocol.actions import Metadata, Protocol
from anabranch._storage.contract import Store
from anabranch.errors import CorruptLog, StoreError

_logger = logging.getLogger(__name__)


class ChecksumVerifier:
    """Verifies the files of one version while they are read."""

    def __init__(self, store: Store, metadata: Metadata, protocol: Protocol, version: int) -> None:
        self._store, self._metadata, self._protocol, self._version = store, metadata, protocol, version
        self._stated: Future[Checksum | None] | None = None
        self._refused: list[pa.Table] = []

    @contextmanager
    def reading_checksum(self, checkpoint: CheckpointFiles | None) -> Iterator[None]:
        """Read the checksum file in parallel to the block, so that it takes no extra time."""
        with ThreadPoolExecutor(1, thread_name_prefix="anabranch-checksum") as pool:
            self._stated = pool.submit(self._read, checkpoint)
            yield

    def verify(
        self, checkpoint: CheckpointFiles | None, base: pa.Table, files: pa.Table, compaction: str | None = None
    ) -> None:
        """Raises CorruptLog unless the files of this version, of which the checkpoint had ``base``, agree with the
        checksum; and where nothing confirms ``compaction``, a log compaction file that was read in place of commits.
        The error names the compaction, or else the checkpoint if there is one, so that the caller reads another
        segment.
        """
        assert self._stated is not None
        stated = self._stated.result()
        if compaction is not None and (stated is None or stated.version != self._version or stated.differs_from(files)):
            reason = f"{checksum_name(self._version)} does not confirm it."
            raise CorruptLog(table=self._store.url, file=compaction, reason=reason)
        if stated is None:
            if checkpoint is not None:
                Checkpoint(self._store, checkpoint).check_hint(base)
            return
        differences = stated.differs_from(files if stated.version == self._version else base)
        if stated.version == self._version and not stated.describes(self._metadata, self._protocol):
            differences = [*differences, "it states another protocol or metadata"]
        if not differences:
            return
        if not self._is_outvoted(checkpoint, files):
            raise self._contradiction(stated, checkpoint, base, "; ".join(differences))
        checksum_file = checksum_name(stated.version)
        _logger.warning("%s of %s is wrong, and is ignored: %s", checksum_file, self._store.url, "; ".join(differences))

    def _is_outvoted(self, checkpoint: CheckpointFiles | None, files: pa.Table) -> bool:
        """Whether these files come from commits alone, or another segment has given the same."""
        if checkpoint is None or any(same_files(files, other) for other in self._refused):
            return True
        self._refused.append(files)
        return False

    def _contradiction(
        self, stated: Checksum, checkpoint: CheckpointFiles | None, base: pa.Table, differences: str
    ) -> CorruptLog:
        """The error; it names the checkpoint where that differs from the checksum file of its own version."""
        table, own = self._store.url, checksum_name(stated.version)
        more = {} if checkpoint is None else {"checkpoint": checkpoint.name}
        summed = stated if checkpoint and checkpoint.version == stated.version else self._checksum_of(checkpoint)
        if checkpoint is not None and summed is not None and summed.differs_from(base):
            reason = f"it is at odds with {checksum_name(summed.version)}: {'; '.join(summed.differs_from(base))}."
            return CorruptLog(table=table, file=checkpoint.name, reason=reason, **more)
        fault = f"{differences}, by the other files of the log"
        reason = f"{fault}. If those are right, remove this one: nothing is lost with it."
        return CorruptLog(table=table, file=own, reason=reason, **more)

    def _read(self, checkpoint: CheckpointFiles | None) -> Checksum | None:
        """The checksum of the version, or else of the checkpoint."""
        return self._checksum_at(self._version) or self._checksum_of(checkpoint)

    def _checksum_of(self, checkpoint: CheckpointFiles | None) -> Checksum | None:
        is_other = checkpoint is not None and checkpoint.version != self._version
        return self._checksum_at(checkpoint.version) if checkpoint is not None and is_other else None

    def _checksum_at(self, version: int) -> Checksum | None:
        try:
            checksum = read_checksum(self._store, version)
        except StoreError as error:
            _logger.warning("%s of %s cannot be read: %s", checksum_name(version), self._store.url, error)
            return None
        return checksum if checksum is not None and checksum.metadata.id == self._metadata.id else None


def same_files(one: pa.Table, other: pa.Table) -> bool:
    """Whether these are the same live files, with the same sizes and vectors."""
    if len(one) != len(other):
        return False
    first, second = _sort_by_key(one), _sort_by_key(other)
    return first.equals(second)


def _sort_by_key(files: pa.Table) -> pa.Table:
    deleted = pc.struct_field(files["deletionVector"], "cardinality")
    named = pa.table({"key": keys(files), "size": files["size"], "deleted": deleted})
    return named.sort_by("key").combine_chunks()
