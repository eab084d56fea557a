"""Switching on Iceberg compatibility: checks that the existing files meet its requirements.

Knows snapshots and footers. Guarantee: it is never switched on over a file that does not meet them; no file is
rewritten.
"""

from __future__ import annotations

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, Metadata
from anabranch._protocol.features.row_tracking import hidden_names
from anabranch._protocol.iceberg import flags, lacks_numbers
from anabranch._protocol.schema.column_mapping import ICEBERG_V3
from anabranch._protocol.stats.statistics import num_records
from anabranch.commands.field_id_names import schema_of
from anabranch.errors import InvalidProperty


def check_files(base: Snapshot, metadata: Metadata) -> None:
    """Raises InvalidProperty if compatibility is switched on and a live file has deletion vectors (which the third
    version allows), no row count, no field ids or no partition columns. Otherwise no file is read.
    """
    for flag in set(flags(metadata.configuration)) - set(flags(base.metadata.configuration)):
        for file in base.files.to_pylist():
            reason = incompatibility(base, metadata, file)
            if reason is not None:
                explanation = f"the file {file['path']} {reason}; write the rows into a new table."
                raise InvalidProperty(property=flag, value="true", reason=explanation)


def incompatibility(base: Snapshot, metadata: Metadata, file: FileRow) -> str | None:
    """Why a file does not suit a table with this metadata, in words; None if it does."""
    third = ICEBERG_V3 in flags(metadata.configuration)
    if file["deletionVector"] is not None and not third:
        return "has deleted rows in it, which must be purged first"
    if num_records(file["stats"]) is None:
        return "has no number of rows in the log"
    file_schema = schema_of(base.store, base.metadata, file["path"])
    if lacks_numbers(file_schema, metadata.configuration, hidden_names(metadata)):
        return "lacks field ids"
    if not set(metadata.partition_keys) <= set(file_schema.names):
        return "lacks the columns by which the table is partitioned"
    return None
