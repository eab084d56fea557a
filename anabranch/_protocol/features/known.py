"""The known table features, one line each: who must support them, what activates them, how far they are supported.

Knows PROTOCOL.md, sections "Table Features" and "Appendix: Valid Feature Names in Table Features". Pure data; the logic
is in `anabranch._protocol.features.table_features`. A feature that is not in `KNOWN` is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._protocol.in_commit_timestamps import ENABLED, IN_COMMIT
from anabranch._protocol.materialised_partitions import ENABLED as MATERIALISES
from anabranch._protocol.materialised_partitions import FEATURE as MATERIALISED_PARTITIONS
from anabranch._protocol.rules import table_rules
from anabranch._protocol.schema.geospatial import KINDS


@dataclass(frozen=True)
class Feature:
    """One feature.

    Attributes:
        name: as in the protocol action.
        binds_readers: whether it is a reader feature as well.
        reader_version, writer_version: the legacy versions that imply it, if any.
        flag: the property that activates it with ``flag_value``.
        column_key: the key in a column's metadata that activates it.
        type_names: the column types that activate it, without their parameters.
        is_rule: whether it constrains rows (`anabranch._protocol.rules.table_rules`), so that only its use requires it.
        needs: features that must be listed with it.
        preview_of: the final feature if this is its preview name; a table that lists it needs no other, and new tables
            do not get it.
    """

    name: str
    binds_readers: bool = False
    reader_version: int | None = None
    writer_version: int | None = None
    flag: str | None = None
    flag_value: str = "true"
    column_key: str | None = None
    type_names: tuple[str, ...] = ()
    is_rule: bool = False
    needs: tuple[str, ...] = ()
    preview_of: str | None = None


DELETION_VECTORS = "deletionVectors"
TIMESTAMP_NTZ = "timestampNtz"
CHECK_CONSTRAINTS = "checkConstraints"
COLUMN_MAPPING = "columnMapping"
V2_CHECKPOINT = "v2Checkpoint"
CHECKPOINT_PROTECTION = "checkpointProtection"
CHECKPOINT_POLICY = "delta.checkpointPolicy"
ROW_TRACKING = "rowTracking"
COORDINATED_COMMITS = "coordinatedCommits-preview"
COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
"""The property that names a coordinator. Without it a table that lists `COORDINATED_COMMITS` is one like any other."""

KNOWN: tuple[Feature, ...] = (
    Feature("appendOnly", writer_version=2, flag="delta.appendOnly"),
    Feature("invariants", writer_version=2, column_key=table_rules.INVARIANT, is_rule=True),
    Feature(CHECK_CONSTRAINTS, writer_version=3, is_rule=True),
    Feature("changeDataFeed", writer_version=4, flag="delta.enableChangeDataFeed"),
    Feature("generatedColumns", writer_version=4, column_key=table_rules.GENERATION, is_rule=True),
    Feature(COLUMN_MAPPING, binds_readers=True, reader_version=2, writer_version=5),
    Feature("identityColumns", writer_version=6, column_key="delta.identity.start", is_rule=True),
    Feature("allowColumnDefaults", column_key=table_rules.DEFAULT, is_rule=True),
    Feature(DELETION_VECTORS, binds_readers=True, flag="delta.enableDeletionVectors"),
    Feature(TIMESTAMP_NTZ, binds_readers=True, type_names=("timestamp_ntz",)),
    Feature("vacuumProtocolCheck", binds_readers=True),
    Feature(V2_CHECKPOINT, binds_readers=True, flag=CHECKPOINT_POLICY, flag_value="v2"),
    Feature(CHECKPOINT_PROTECTION),
    Feature("domainMetadata"),
    Feature("clustering", needs=("domainMetadata",)),
    Feature(MATERIALISED_PARTITIONS, flag=MATERIALISES),
    Feature("icebergCompatV1", flag="delta.enableIcebergCompatV1", needs=(COLUMN_MAPPING,)),
    Feature("icebergCompatV2", flag="delta.enableIcebergCompatV2", needs=(COLUMN_MAPPING,)),
    Feature(
        "icebergCompatV3",
        flag="delta.enableIcebergCompatV3",
        needs=(COLUMN_MAPPING, ROW_TRACKING, "domainMetadata"),
    ),
    Feature("typeWidening", binds_readers=True, flag="delta.enableTypeWidening"),
    Feature("typeWidening-preview", binds_readers=True, preview_of="typeWidening"),
    Feature("variantType", binds_readers=True, type_names=("variant",)),
    Feature("variantType-preview", binds_readers=True, preview_of="variantType"),
    Feature("variantShredding", binds_readers=True, needs=("variantType",)),
    Feature("variantShredding-preview", binds_readers=True, preview_of="variantShredding"),
    Feature("geospatial", binds_readers=True, type_names=KINDS),
    Feature("geospatial-dev", binds_readers=True, preview_of="geospatial"),
    Feature("collations", needs=("domainMetadata",)),
    Feature("collations-preview", preview_of="collations"),
    Feature(ROW_TRACKING, flag="delta.enableRowTracking", needs=("domainMetadata",)),
    Feature(IN_COMMIT, flag=ENABLED),
    Feature(COORDINATED_COMMITS, needs=(IN_COMMIT, "vacuumProtocolCheck")),
)

COLLATIONS = frozenset({"collations", "collations-preview"})
"""The names under which a protocol may list collations; the tables are written as long as no column has one."""

BY_NAME = {feature.name: feature for feature in KNOWN}
