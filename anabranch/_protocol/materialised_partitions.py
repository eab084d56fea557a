"""Partition columns inside data files: which tables have them there, and how their folders are named then.

Knows protocol_rfcs/materialize-partition-columns.md and the sections "Iceberg Compatibility" of PROTOCOL.md. Pure.
Guarantee: where a feature requires the columns in new files, no property switches them off. Reading never depends on
it: partition values come from the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from anabranch._protocol.actions import Metadata
from anabranch._protocol.iceberg import flags

FEATURE = "materializePartitionColumns"
ENABLED = "delta.enableMaterializePartitionColumnsFeature"
"""The property that adds the feature to the protocol."""
WRITTEN = "delta.writePartitionColumnsToParquet"
"""The property that asks for the columns where no feature requires them; other writers may ignore it."""


def materialises(configuration: Mapping[str, str], features: Set[str]) -> bool:
    """Whether new data files contain the partition columns.

    Args:
        configuration: the table's properties.
        features: the writer features that its protocol lists.

    Example:
        >>> materialises({"delta.writePartitionColumnsToParquet": "false"}, {"materializePartitionColumns"})
        True
    """
    asked = any(configuration.get(key, "").strip().lower() == "true" for key in (ENABLED, WRITTEN))
    return FEATURE in features or asked or bool(flags(configuration))


def folder_keys(metadata: Metadata, *, materialised: bool) -> tuple[str, ...]:
    """The keys of partition folders, in the order of the partition columns."""
    return tuple(folder_key(key, materialised=materialised) for key in metadata.partition_keys)


def folder_key(key: str, *, materialised: bool) -> str:
    """The key of the partition folders of one column. If files contain the column too, it has another name, since a
    reader of the bare folder would find two columns of one name.
    """
    return f"by_{key}" if materialised else key
