"""Removable: which table features can be dropped, and what in a log shows that one was used.

Knows PROTOCOL.md, "Table Features", "Checkpoint Protection", and which features delta-spark 4 lets go. Pure.
Guarantee: a feature of which `is_used` finds nothing in a version may be taken out of that version's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from anabranch.errors import FeatureNotDropped, NotBuilt
from anabranch.protocol.actions import Metadata, Protocol
from anabranch.protocol.features import reader_features, with_features, writer_features
from anabranch.protocol.known_features import BY_NAME, CHECK_CONSTRAINTS, DELETION_VECTORS
from anabranch.protocol.properties import PROTECTED_BEFORE
from anabranch.protocol.rules import CONSTRAINT_PREFIX, is_constraint

CHECKPOINT_PROTECTION = "checkpointProtection"
DOMAINS = "domainMetadata"


@dataclass(frozen=True)
class Removable:
    """A feature that can be dropped.

    Attributes:
        name: the feature's.
        properties: those that make use of it, which are unset first.
        is_in_files: whether it shows in the actions of files, as a deletion vector.
        is_in_history: whether a reader who does not know it could not read older versions.
    """

    name: str
    properties: tuple[str, ...] = ()
    is_in_files: bool = False
    is_in_history: bool = False

    def is_used_by(self, metadata: Metadata) -> bool:
        """Whether metadata makes use of it."""
        said = (metadata.configuration.get(key, "").strip().lower() for key in self.properties)
        return any(value not in ("", "false", "classic") for value in said)

    def is_used_in(self, files: pa.Table) -> bool:
        """Whether actions of files make use of it."""
        return self.is_in_files and files["deletionVector"].null_count < len(files)


REMOVABLE: Mapping[str, Removable] = {
    each.name: each
    for each in (
        Removable(DELETION_VECTORS, ("delta.enableDeletionVectors",), is_in_files=True, is_in_history=True),
        Removable("vacuumProtocolCheck", is_in_history=True),
        Removable(CHECK_CONSTRAINTS),
        Removable(DOMAINS),
        Removable(CHECKPOINT_PROTECTION),
    )
}
_LATER = frozenset({"columnMapping", "rowTracking", "inCommitTimestamp", "v2Checkpoint", "typeWidening"})


def to_drop(table: str, name: str, protocol: Protocol, metadata: Metadata, *, truncates: bool) -> Removable:
    """The feature of this name, if it can be dropped from a table that looks like this.

    Raises:
        FeatureNotDropped: the rule that forbids it. NotBuilt: delta-spark can drop it, and this version cannot.
    """
    present = reader_features(protocol) | writer_features(protocol)
    found = next((each for each in present if each.lower() == name.lower()), name)
    if found in present & _LATER:
        raise NotBuilt(what=f"dropping the feature {found}", instead="Drop it with another engine.")
    for rule, reason in _objections(found, present, metadata, truncates=truncates):
        raise FeatureNotDropped(table=table, feature=name, delta_condition=rule, reason=reason)
    return REMOVABLE[found]


def _objections(
    name: str, present: frozenset[str], metadata: Metadata, *, truncates: bool
) -> Iterator[tuple[str, str]]:
    """Why a feature cannot be dropped: delta-spark's condition and a reason, the weightiest first."""
    if name.lower().startswith("delta."):
        yield "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY", "this is a property and no feature."
    if name not in BY_NAME.keys() | _LATER:
        yield "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "this version of Anabranch does not know it."
    if name not in present:
        yield "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "the protocol does not list it."
    if name not in REMOVABLE:
        yield "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "no engine can drop it once it is there."
    dependents = sorted(each for each in present & BY_NAME.keys() if name in BY_NAME[each].needs)
    if dependents:
        yield "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", f"{', '.join(dependents)} needs it; drop that first."
    constraints = sorted(key[len(CONSTRAINT_PREFIX) :] for key in metadata.configuration if is_constraint(key))
    if name == CHECK_CONSTRAINTS and constraints:
        reason = f"drop these constraints first: {', '.join(constraints)}."
        yield "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", reason
    if name == CHECKPOINT_PROTECTION and not truncates:
        rule = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
        yield rule, "it guards history, and can go only with it: say TRUNCATE HISTORY."
    if truncates and name != CHECKPOINT_PROTECTION and not REMOVABLE[name].is_in_history:
        rule = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
        yield rule, "it binds writers only, so no history has to go: leave TRUNCATE HISTORY out."


def without(protocol: Protocol, feature: str, *, guarded: bool) -> Protocol:
    """The least protocol without a feature; ``guarded`` adds the one that guards the checkpoints of history.

    Example:
        >>> without(Protocol(1, 3), "checkConstraints", guarded=False)
        Protocol(min_reader=1, min_writer=2, reader_features=None, writer_features=None)
    """
    left = (reader_features(protocol) | writer_features(protocol)) - {feature}
    return with_features(Protocol(1, 1), left | (frozenset({CHECKPOINT_PROTECTION}) if guarded else frozenset()))


def without_properties(configuration: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """A table's properties without these."""
    gone = set(keys)
    return {key: value for key, value in configuration.items() if key not in gone}


def guarded_before(metadata: Metadata) -> int:
    """The version before which history may be cut off in one go only; 0 where nothing is guarded."""
    return int(metadata.configuration.get(PROTECTED_BEFORE, "0"))
