"""Type widening: which type changes keep every value, and how a schema records them.

Knows PROTOCOL.md, section "Type Widening". Knows no files: readers widen the values of older files. Pure. Guarantee:
makes only changes that the protocol allows.

A path is a column, then members of structs, and ``element``, ``key`` and ``value`` inside arrays and maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from anabranch._protocol.actions import Metadata, Protocol
from anabranch._protocol.features.known import TIMESTAMP_NTZ
from anabranch._protocol.iceberg import flags
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import may_use, rules_of
from anabranch._protocol.schema.editing import inside_of, put_inside
from anabranch._protocol.schema.evolution import members_of, sql_name
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, Field, Struct, decimal_of
from anabranch._protocol.session_settings import current
from anabranch.errors import InvalidOption, UnknownColumn

TYPE_CHANGES = "delta.typeChanges"
ENABLED = "delta.enableTypeWidening"
LISTED_BY = frozenset({"typeWidening", "typeWidening-preview"})
"""The names under which a protocol may list the feature."""

Objection: TypeAlias = Callable[[DataType, DataType], str | None]
Widens: TypeAlias = Callable[[DataType, DataType], bool]
NO_MOMENTS = f"the table does not list {TIMESTAMP_NTZ}; set delta.feature.{TIMESTAMP_NTZ} = supported first"
"""Why a ``date`` does not become a ``timestamp_ntz``: readers that support type widening need not support
``timestamp_ntz``.
"""
_NO_WIDENING = "the protocol allows only types that hold every value of the old one, and not all of those"
_LEAST_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""The digits of the longest value."""
_MOST_DIGITS = 38


def can_widen(before: DataType, after: DataType) -> bool:
    """Whether the protocol allows the change from one type to the other.

    Example:
        >>> can_widen("integer", "decimal(12,2)"), can_widen("long", "double")
        (True, False)
    """
    return _widens_in_family(before, after) or _widens_across(before, after)


def _widens_in_family(before: DataType, after: DataType) -> bool:
    if before in INTEGERS and after in INTEGERS:
        return INTEGERS.index(str(before)) < INTEGERS.index(str(after))
    if (before, after) in (("float", "double"), ("date", "timestamp_ntz")):
        return True
    digits = decimal_of(before)
    return digits is not None and digits != decimal_of(after) and _has_room(after, *digits)


def _widens_across(before: DataType, after: DataType) -> bool:
    if after == "double":
        return before in ("byte", "short", "integer")
    return before in INTEGERS and _has_room(after, _LEAST_DIGITS[str(before)], 0)


def can_read(before: DataType, after: DataType) -> bool:
    """Whether readers give every value of the old type its place in the new one: after each change that the protocol
    allows, and after one from integers to decimals with fewer digits that suffice.

    Example:
        >>> can_read("byte", "decimal(4,1)"), can_widen("byte", "decimal(4,1)"), can_read("byte", "decimal(3,1)")
        (True, False, False)
    """
    return can_widen(before, after) or _type_to_read(before, after) is not None


def _type_to_read(before: DataType, after: DataType) -> str | None:
    """The decimal as which Spark reads files with integers: with room for 10 digits, or 20; None if it reads none."""
    digits = decimal_of(after)
    if digits is None or before not in INTEGERS or not _has_room(after, _DIGITS[str(before)], 0):
        return None
    precision = max(digits[0], _LEAST_DIGITS[str(before)] + digits[1])
    return f"decimal({precision},{digits[1]})" if precision <= _MOST_DIGITS else None


def types_to_read(columns: Struct) -> Struct:
    """The columns with the types as which Spark reads files that are older than changes of types; a cast to the
    columns' own types loses nothing.
    """
    return Struct(tuple(replace(field, type=type_to_read(field)) for field in columns), columns.exact)


def type_to_read(field: Field) -> DataType:
    """The type of one column in `types_to_read`."""
    if isinstance(field.type, Struct):
        return types_to_read(field.type)
    read_types = [
        _type_to_read(change.get("fromType"), field.type)
        for change in field.metadata.get(TYPE_CHANGES) or ()
        if "fieldPath" not in change
    ]
    return max((found for found in read_types if found), key=lambda found: decimal_of(found) or (), default=field.type)


def _has_room(after: DataType, precision: int, scale: int) -> bool:
    """Whether a decimal has at least this many digits on both sides of the point."""
    digits = decimal_of(after)
    return digits is not None and digits[0] - precision >= digits[1] - scale >= 0


# -- recorded changes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypeChange:
    """One type change of a column; ``path`` leads from its struct field into arrays and maps."""

    before: DataType
    after: DataType
    path: tuple[str, ...] = ()

    def to_json(self) -> dict[str, str]:
        """Its entry in ``delta.typeChanges``."""
        entry = {"fromType": str(self.before), "toType": str(self.after)}
        return {**entry, "fieldPath": ".".join(self.path)} if self.path else entry


def unreadable_change(schema: Struct) -> str | None:
    """Describe the first recorded change that readers do not support (`can_read`; inside arrays and maps, `can_widen`);
    None if all are supported.
    """
    for column, type_change, is_inside in _type_changes_in(schema):
        before, after = type_change.get("fromType"), type_change.get("toType")
        if not (can_widen if is_inside else can_read)(str(before), str(after)):
            return f"the column {column} was changed from {before} to {after}, which is no widening."
    return None


def _type_changes_in(
    data_type: DataType, enclosing: tuple[str, ...] = (), is_inside: bool = False
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Each recorded change with its column, and whether it is inside an array or a map."""
    if isinstance(data_type, Struct):
        for field in data_type:
            path = (*enclosing, field.name)
            for type_change in field.metadata.get(TYPE_CHANGES) or ():
                yield ".".join(path), type_change, is_inside or "fieldPath" in type_change
            yield from _type_changes_in(field.type, path, is_inside)
    for step, inner in inside_of(data_type).items():
        yield from _type_changes_in(inner, (*enclosing, step), True)


# -- changing a type ---------------------------------------------------------------------------------------------------


def with_type(schema: Struct, path: Sequence[str], after: DataType, objection: Objection) -> Struct:
    """Change the type at a path, and record the change.

    Args:
        objection: returns why a table forbids a change that the protocol allows; None if it allows it.

    Raises:
        UnknownColumn: no column has this path.
        InvalidOption: the change is not allowed; the error names both types.
    """
    field = schema.field(path[0])
    if len(path) > 1 and isinstance(field.type, Struct):
        changed = replace(field, type=with_type(field.type, path[1:], after, objection))
    else:
        changed = _with_type_inside(field, path, after, objection)
    return Struct(tuple(changed if sibling is field else sibling for sibling in schema))


def _with_type_inside(field: Field, path: Sequence[str], after: DataType, objection: Objection) -> Field:
    changes: list[TypeChange] = []

    def change(before: DataType, where: tuple[str, ...]) -> DataType:
        if before == after or (decimal_of(before) is not None and decimal_of(before) == decimal_of(after)):
            return before
        if before == VOID and isinstance(after, str):  # no file stores it, so any type reads it and no record is needed
            return after
        why = objection(before, after) if can_widen(before, after) else _NO_WIDENING
        if why is not None:
            raise _refusal(".".join(path), before, after, why)
        changes.append(TypeChange(before, after, where))
        return after

    def reach(data_type: DataType, rest: Sequence[str], where: tuple[str, ...]) -> DataType:
        if not rest:
            return change(data_type, where)
        if isinstance(data_type, Struct):  # its own fields record the change
            return with_type(data_type, rest, after, objection)
        inner = inside_of(data_type)
        if rest[0].lower() not in inner:
            raise UnknownColumn(column=".".join(path), columns=", ".join(inner) or "none inside")
        step = rest[0].lower()
        return put_inside(data_type, step, reach(inner[step], rest[1:], (*where, step)))

    return record_changes(replace(field, type=reach(field.type, path[1:], ())), changes)


def record_changes(field: Field, changes: Sequence[TypeChange]) -> Field:
    """The field with these changes recorded after its earlier ones."""
    if not changes:
        return field
    earlier = list(field.metadata.get(TYPE_CHANGES) or ())
    return replace(
        field, metadata={**field.metadata, TYPE_CHANGES: earlier + [type_change.to_json() for type_change in changes]}
    )


# -- widening to the rows' types ---------------------------------------------------------------------------------------


def widen_to_rows(metadata: Metadata, rows: Struct, columns: Struct | None = None) -> Struct:
    """Widen the columns of a table to the rows' types where the table and the session allow it.

    A column that others are computed from keeps its type, because the result of the computation would be uncertain.

    Args:
        metadata: the table's.
        rows: the types of the rows.
        columns: the present columns, if they differ from the metadata's.
    """
    schema, mode = columns or metadata.schema, current().widens
    if not is_on(metadata) or mode == "never":
        return schema
    widens = can_widen if mode == "always" else _widens_in_family
    of_iceberg = bool(flags(metadata.configuration))

    def changes(before: DataType, after: DataType) -> bool:
        return widens(before, after) and (not of_iceberg or iceberg_keeps(before, after))

    def may_change(path: tuple[str, ...]) -> bool:
        return metadata.schema.find(path[0]) is None or find_dependency(metadata, path) is None

    return widen_columns(schema, rows, may_change, changes)


def check_moments(before: Struct, after: Struct, protocol: Protocol) -> None:
    """Raises `InvalidOption` if a column becomes a ``timestamp_ntz`` in a table that does not list this feature.

    Adding a column enables the feature; changing a type does not, as in delta-spark.
    """
    earlier = list(_type_changes_in(before))
    for column, type_change, is_inside in _type_changes_in(after):
        is_new = type_change.get("toType") == "timestamp_ntz" and (column, type_change, is_inside) not in earlier
        if is_new and TIMESTAMP_NTZ not in (protocol.writer_features or ()):
            raise _refusal(column, "date", "timestamp_ntz", NO_MOMENTS)


def is_on(metadata: Metadata) -> bool:
    """Whether the table has type widening enabled (PROTOCOL.md: otherwise writers must reject changes)."""
    return metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def find_dependency(metadata: Metadata, path: Sequence[str]) -> str | None:
    """Describe what depends on the type at a path in a column; None if nothing does."""
    rules, column = rules_of(metadata), metadata.schema.field(path[0])
    if STEP in column.metadata:
        return "it is an identity column"
    members = members_of(metadata.schema, path)
    for check in rules.checks:
        if may_use(check.expression, members):
            return f"the constraint {check.name} ({check.expression}) speaks of it"
    for generated in rules.generated:
        if column.name == generated.column or may_use(generated.expression, members):
            return f"{generated.column} is generated as {generated.expression}"
    return None


def widen_columns(
    table: Struct, rows: Struct, allowed: Callable[[tuple[str, ...]], bool], widens: Widens = can_widen
) -> Struct:
    """Widen the table's columns to the rows' types where allowed, also inside nested columns.

    Args:
        table, rows: the columns, and the rows' columns.
        allowed: returns whether the type at a path may change.
        widens: returns whether one type may become another.

    Example:
        >>> table, rows = Struct((Field("id", "integer"),)), Struct((Field("ID", "long"),))
        >>> widen_columns(table, rows, lambda path: True).fields[0].type
        'long'
    """

    def of_struct(columns: Struct, incoming: Struct, enclosing: tuple[str, ...]) -> Struct:
        return Struct(tuple(of_field(field, incoming.find(field.name), (*enclosing, field.name)) for field in columns))

    def of_field(field: Field, incoming: Field | None, path: tuple[str, ...]) -> Field:
        if incoming is None:
            return field
        changes: list[TypeChange] = []
        after = of_type(field.type, incoming.type, path, (), changes)
        return field if after == field.type else record_changes(replace(field, type=after), changes)

    def of_type(
        before: DataType, incoming: DataType, path: tuple[str, ...], where: tuple[str, ...], changes: list[TypeChange]
    ) -> DataType:
        if isinstance(before, Struct) and isinstance(incoming, Struct):
            return of_struct(before, incoming, (*path, *where))
        if isinstance(before, str) and isinstance(incoming, str):
            if not (widens(before, incoming) and allowed((*path, *where))):
                return before
            changes.append(TypeChange(before, incoming, where))
            return incoming
        incoming_parts = inside_of(incoming)
        for step, inner in inside_of(before).items():
            if step in incoming_parts:
                before = put_inside(before, step, of_type(inner, incoming_parts[step], path, (*where, step), changes))
        return before

    return of_struct(table, rows, ())


def _refusal(column: str, before: DataType, after: DataType, why: str) -> InvalidOption:
    before_name, after_name = sql_name(before), sql_name(after)
    changed = f"{column} from {before_name.upper()} to {after_name.upper()}"
    reason = f"ALTER TABLE CHANGE COLUMN is not supported for changing column {changed}: {why}."
    return InvalidOption(
        option="type", value=after_name, reason=reason, column=column, from_type=before_name, to_type=after_name
    )


def iceberg_keeps(before: DataType, after: DataType) -> bool:
    """Whether Iceberg allows the change too, as icebergCompat features require."""
    digits, wider = decimal_of(before), decimal_of(after)
    if digits is not None and wider is not None:
        return digits[1] == wider[1]
    return (before in INTEGERS and after in INTEGERS) or (before, after) == ("float", "double")
