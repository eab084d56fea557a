"""The clustering columns of a table.

Knows the domain ``delta.clustering`` (PROTOCOL.md "Clustered Table", "Writer Requirements for Clustered Table"). Pure.
Guarantee: accepted columns get statistics in every file that is written, as the protocol requires.

Columns are paths of logical names, outermost first; the domain stores their physical names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from anabranch._protocol.actions import DomainMetadata, Metadata
from anabranch._protocol.properties import Properties
from anabranch._protocol.schema.evolution import sql_name
from anabranch._protocol.schema.intervals import INTERVALS
from anabranch._protocol.schema.leaves import column_list, leaves_with_stats
from anabranch._protocol.schema.types import OPAQUE, Array, DataType, Field, Map, Struct
from anabranch.errors import CorruptLog, InvalidOption

Path: TypeAlias = tuple[str, ...]

DOMAIN = "delta.clustering"
FEATURES = frozenset({"clustering", "domainMetadata"})
_MOST = 4
_BOTH = (
    "Clustering and partitioning cannot both be specified, and ALTER TABLE CLUSTER BY cannot be applied to a "
    "partitioned table."
)
_ORDERED = {"byte", "short", "integer", "long", "float", "double", "string", "date", "timestamp", "timestamp_ntz"}


def clustering_of(table: str, domains: Mapping[str, DomainMetadata], schema: Struct) -> tuple[Path, ...]:
    """The clustering columns of a table; none if it is not clustered. Raises CorruptLog: the domain is malformed, or
    has an unknown column.
    """
    domain = domains.get(DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = json.loads(domain.configuration)["clusteringColumns"]
        # PROTOCOL.md's example has plain names; known writers, like delta-spark, write the path of each column.
        paths = [[column] if isinstance(column, str) else list(map(str, column)) for column in columns]
        return tuple(_logical(schema, path) for path in paths)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"the domain {DOMAIN} does not list the clustering columns of the table ({error!r})."
        raise CorruptLog(table=table, file="_delta_log", reason=reason) from None


def _logical(schema: Struct, physical: Sequence[str]) -> Path:
    names: list[str] = []
    level: DataType = schema
    for part in physical:
        field = next((f for f in level if f.physical_name == part), None) if isinstance(level, Struct) else None
        if field is None:
            raise KeyError(".".join(physical))
        names.append(field.name)
        level = field.type
    return tuple(names)


def domain_of(columns: Sequence[Path], schema: Struct) -> DomainMetadata:
    """The domain for these columns; without columns it marks the table as not clustered.

    Example:
        >>> domain_of([("day",)], Struct((Field("day", "date"),))).configuration
        '{"clusteringColumns": [["day"]], "domainName": "delta.clustering"}'
    """
    physical = [[field.physical_name for field in _fields_on(schema, column)] for column in columns]
    text = json.dumps({"clusteringColumns": physical, "domainName": DOMAIN})
    return DomainMetadata(DOMAIN, text, removed=not columns)


def same_clustering(left: DomainMetadata, right: DomainMetadata | None) -> bool:
    """Whether both domains mean the same clustering; no domain means no clustering."""
    if right is None or right.removed:
        return left.removed
    return not left.removed and _content(left) == _content(right)


def _content(domain: DomainMetadata) -> object:
    """The content of a domain, or its raw text if it is damaged."""
    try:
        return json.loads(domain.configuration)
    except (ValueError, RecursionError):
        return domain.configuration


def paths_of(names: Sequence[str]) -> tuple[Path, ...]:
    """Parse user-given columns to paths; a dot outside backticks separates a struct from its member. Raises
    InvalidOption: a name is malformed.
    """
    return tuple(_parts(name) for name in names)


def _parts(name: str) -> Path:
    if not isinstance(name, str):
        raise InvalidOption(option="clusterBy", value=name, reason="it takes names of columns.")
    try:
        (path,) = column_list(name)
    except ValueError as error:
        raise InvalidOption(
            option="clusterBy", value=name, reason=f"it is not the name of one column: {error}."
        ) from None
    return path


def resolve_columns(columns: Sequence[Path], schema: Struct, option: str = "clusterBy") -> tuple[Path, ...]:
    """The same columns in the schema's spelling. Raises InvalidOption: a column does not exist."""
    return tuple(tuple(field.name for field in _fields_on(schema, column, option)) for column in columns)


def _column_label(option: str) -> str:
    return "Z-Ordering column" if option == "ZORDER BY" else "column"


def _fields_on(schema: Struct, column: Path, option: str = "clusterBy") -> list[Field]:
    fields: list[Field] = []
    level: DataType = schema
    for part in column:
        field = level.find(part) if isinstance(level, Struct) else None
        if field is None:
            raise InvalidOption(
                option=option,
                value=".".join(column),
                reason=f"{_column_label(option)} {'.'.join(column)} does not exist in data schema; the columns are "
                f"{', '.join(schema.names)}.",
            )
        fields.append(field)
        level = field.type
    return fields


def sql_names(columns: Sequence[Path]) -> list[str]:
    """The columns as SQL spells them."""
    return [".".join(map(sql_name, column)) for column in columns]


def check_zorder(columns: Sequence[Path], metadata: Metadata) -> None:
    """Raises `InvalidOption`, with the reason, unless Z-ordering by these columns is possible and useful."""
    paths = _with_statistics(metadata)
    for column in columns:
        if column[0] in metadata.partition_columns:
            (name,) = sql_names([column])
            reason = f"{name} is a partition column. Z-Ordering can only be performed on data columns."
            raise InvalidOption(option="ZORDER BY", value=name, reason=reason)
        if column not in paths:
            raise InvalidOption(option="ZORDER BY", value=sql_names([column])[0], reason=_no_statistics_reason(column))
        type_ = _fields_on(metadata.schema, column)[-1].type
        if type_ in INTERVALS:
            reason = f"no file is skipped by values of the type {type_}, so no query would gain."
            raise InvalidOption(option="ZORDER BY", value=sql_names([column])[0], reason=reason)
        if _has_no_order(type_):
            reason = "values of this type have no order."
            raise InvalidOption(option="ZORDER BY", value=sql_names([column])[0], reason=reason)


def _has_no_order(type_: DataType) -> bool:
    """Whether Spark cannot sort by values of a type."""
    if isinstance(type_, Struct):
        return any(_has_no_order(field.type) for field in type_)
    return isinstance(type_, Map) or type_ in OPAQUE or (isinstance(type_, Array) and _has_no_order(type_.element))


def _with_statistics(metadata: Metadata) -> set[Path]:
    chosen = Properties(metadata.configuration).indexed_columns()
    return {leaf.names for leaf in leaves_with_stats(metadata.schema, chosen, metadata.partition_columns)}


def check_clustering(columns: Sequence[Path], metadata: Metadata) -> None:
    """Raises `InvalidOption`, with the reason, unless a table with this metadata can be clustered by these columns."""
    if not columns:
        return
    paths = _with_statistics(metadata)
    reasons = [
        (bool(metadata.partition_columns), _BOTH),
        (len(columns) > _MOST, f"it takes at most {_MOST} columns."),
        (len({tuple(map(str.lower, column)) for column in columns}) < len(columns), "a column is named twice."),
        *(
            (
                not _is_ordered(metadata.schema, column),
                f"{'.'.join(column)} has a type without minimum and maximum in the statistics.",
            )
            for column in columns
        ),
        *((column not in paths, _no_statistics_reason(column)) for column in columns),
    ]
    for is_wrong, reason in reasons:
        if is_wrong:
            raise InvalidOption(option="clusterBy", value=sql_names(columns), reason=reason)


def _is_ordered(schema: Struct, column: Path) -> bool:
    type_ = _fields_on(schema, column)[-1].type
    return isinstance(type_, str) and (type_ in _ORDERED or type_.startswith("decimal"))


def _no_statistics_reason(column: Path) -> str:
    return f"{'.'.join(column)} gets no statistics; see delta.dataSkippingStatsColumns and …NumIndexedCols."
