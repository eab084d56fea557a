"""ALTER TABLE … ALTER COLUMN changes comment, nullability, default, type and position of columns. It writes no row.

Knows what each change requires of existing rows: a wider type requires nothing, since readers widen the values of old
files; NOT NULL requires reading every row. The guarantees of `anabranch.commands.ddl.alter` hold here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, Protocol, compact_json
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.features.known import TIMESTAMP_NTZ
from anabranch._protocol.features.table_features import upgrade_for_metadata, with_features, writer_features
from anabranch._protocol.features.widening import ENABLED, NO_MOMENTS, find_dependency, iceberg_keeps, is_on, with_type
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.predicates import IsNull, Unknown
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION, Rules, rules_of
from anabranch._protocol.schema.editing import edit_field, field_at, inside_of, move_field
from anabranch._protocol.schema.lengths import LENGTH, Length, limits_of
from anabranch._protocol.schema.types import OPAQUE, DataType, Field, Struct, schema_json
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.transaction import ReadSet
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, NewColumn, run_alteration
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.replaced_rows import EveryRow
from anabranch.commands.engine import Backend, Engine
from anabranch.commands.opening import Location, SecretFree, file_set
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.row_changes import count_rows, with_row_counts
from anabranch.errors import ConstraintNotMet, InvalidOption

_ICEBERG = frozenset({"icebergCompatV1", "icebergCompatV2", "icebergCompatV3"})
DROPPED = ""
"""The value of ``default`` or ``comment`` that removes the column's."""


@dataclass(frozen=True)
class ChangeColumn(SecretFree):
    """ALTER TABLE … ALTER COLUMN (CHANGE COLUMN); parts that are None stay as they are.

    Attributes:
        column: the path: a column, then members of structs, ``element``, ``key`` or ``value`` inside arrays and maps.
        type: a wider type, on a table with ``delta.enableTypeWidening``.
        length: the limit of a text type, such as ``varchar(9)``; None if the type has none.
        comment: a comment, or `DROPPED`.
        nullable: True is DROP NOT NULL, False is SET NOT NULL, which reads every row.
        default: SQL text of a value, or `DROPPED`.
        first, after: the position among the neighbouring columns.

    Example:
        >>> ChangeColumn("/data/flights", ("delay",), type="long").run()
    """

    table: Location
    column: tuple[str, ...]
    type: DataType | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None
    length: str | None = None

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if it changes nothing.

        Args:
            engine: needed for SET NOT NULL, which reads rows, and for a default, which must be a value.

        Raises:
            UnknownColumn: there is no such column.
            InvalidOption: the protocol does not allow the change, or it needs an engine; for a type it names both.
            ConstraintNotMet: SET NOT NULL, and rows hold NULL there. InvalidCondition: the default is not a value.
            MetadataChangedException, ConcurrentAppendException: the table was written meanwhile.
        """
        return ChangeColumns(self.table, (self,)).run(engine, context)

    def on(self, base: Snapshot, schema: Struct) -> Struct:
        """The columns with this one changed.

        Raises:
            UnknownColumn, InvalidOption: as for `run`.
        """
        if self.type is not None:
            schema = with_type(schema, self.column, self.type, partial(why_type_refused, base, self.column))
        if _is_inside(schema, self.column):
            self._check_only_type()
            return schema
        return move_field(
            edit_field(schema, self.column, self._change_field), self.column, first=self.first, after=self.after
        )

    # -- the parts of a change

    def _change_field(self, field: Field) -> Field:
        facts = dict(field.metadata) if self.type is None else self._metadata_with_length(field)
        for key, value in (("comment", self.comment), (DEFAULT, self.default)):
            if value is not None and value != DROPPED:
                facts[key] = value
            elif value is not None:
                facts.pop(key, None)
        if self.default is not None:
            self._check_default(field)
        nullable = field.nullable if self.nullable is None else self.nullable
        return replace(field, metadata=facts, nullable=nullable)

    def _metadata_with_length(self, field: Field) -> dict[str, Any]:
        """The metadata of the column, with the requested limit of its texts.

        Raises:
            InvalidOption: the limit would become shorter.
        """
        present_length, rest = (
            field.metadata.get(LENGTH),
            {key: value for key, value in field.metadata.items() if key != LENGTH},
        )
        if self.length == present_length:
            return dict(field.metadata)
        before, after = limits_of(field), limits_of(replace(field, metadata={LENGTH: self.length or ""}))
        if isinstance(before, Length) and self.length is None:
            return rest
        are_lengths = isinstance(before, Length) and isinstance(after, Length)
        if are_lengths and not after.padded and after.length >= before.length:  # type: ignore[union-attr]
            return {**rest, LENGTH: str(after)}
        reason = (
            f"the column {field.name} is {present_length or 'string'}, and rows that are there may have longer texts."
        )
        raise InvalidOption(option="type", value=self.length or "string", reason=reason, column=field.name)

    def _check_default(self, field: Field) -> None:
        conflicts = {GENERATION: "generated", STEP: "an identity column"}
        why = next((word for key, word in conflicts.items() if key in field.metadata), None)
        why = "a member of another column" if len(self.column) > 1 else why
        why = f"a {field.type}" if why is None and field.type in OPAQUE else why
        if why is not None and self.default != DROPPED:
            reason = f"{field.name} is {why}: it has none."
            facts = {"column": field.name}
            if STEP in field.metadata:
                reason = f"ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns: {reason}"
                facts["delta_condition"] = "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
            raise InvalidOption(option="default", value=self.default, reason=reason, **facts)

    def _check_only_type(self) -> None:
        others = (self.comment, self.nullable, self.default, self.after)
        if any(value is not None for value in others) or self.first:
            reason = "elements, keys and values have a type, and nothing else that could be changed."
            raise InvalidOption(option="column", value=".".join(self.column), reason=reason)

    def to_history(self, schema: Struct) -> dict[str, Any]:
        """The form of Delta's history: the column as it is now, and its new position."""
        path = self.column
        while _is_inside(schema, path):
            path = path[:-1]
        return NewColumn(field_at(schema, path), path[:-1], self.first, self.after).to_history()

    def check_filled(self, base: Snapshot, files: FileSet, engine: Backend) -> None:
        """Raises ConstraintNotMet if a row has NULL in the column."""
        rows = count_rows(files.files) - count_of(files.vectors)
        missing = count_of(engine.find(files, _is_missing(base.schema, self.column))) if rows else 0
        if missing:
            name = ".".join(self.column)
            raise ConstraintNotMet(
                table=base.table, constraint=name, predicate=f"{name} IS NOT NULL", count=missing, rows=rows
            )


@dataclass(frozen=True)
class ChangeColumns(SecretFree):
    """ALTER TABLE … ALTER COLUMN a …, b …: changes several columns in order, in one commit, all or none.

    Example:
        >>> wider = ChangeColumn("/data/flights", ("delay",), type="long")
        >>> ChangeColumns("/data/flights", (wider, ChangeColumn("/data/flights", ("gate",), first=True))).run()
    """

    table: Location
    changes: Sequence[ChangeColumn]

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if it changes nothing.

        Raises:
            InvalidOption: a column is changed twice, or together with one around it. Also the errors of
                `ChangeColumn.run`.
        """
        _check_apart([change.column for change in self.changes])
        not_null_changes = [change for change in self.changes if change.nullable is False]
        if engine is None and (not_null_changes or any(change.default for change in self.changes)):
            reason = "SET NOT NULL reads the rows, and Spark checks a default: run it with an engine."
            raise InvalidOption(option="engine", value=None, reason=reason)
        look = partial(_check_all_filled, not_null_changes, engine) if engine is not None and not_null_changes else None
        return run_alteration(self.table, partial(self._on, engine=engine), context, look)

    def _on(self, base: Snapshot, engine: Engine | None) -> Alteration:
        schema: Struct = base.schema
        for change in self.changes:
            schema = change.on(base, schema)
        changed = replace(base.metadata, schema_string=schema_json(schema))
        metadata = base.metadata if schema == base.schema else changed
        if engine is not None and any(change.default for change in self.changes):
            engine.check_rules(schema, self._defaults(metadata), base.table)
        operation, parameters = self._operation_and_parameters(schema)
        return Alteration(operation, parameters, metadata, self._protocol(base, metadata))

    def _defaults(self, metadata: Metadata) -> Rules:
        """The new defaults; the table's other rules were checked before."""
        changed_columns = {change.column[0].lower() for change in self.changes if change.default}
        defaults = rules_of(metadata).defaults
        return Rules(defaults={name: text for name, text in defaults.items() if name.lower() in changed_columns})

    def _protocol(self, base: Snapshot, metadata: Metadata) -> Protocol | None:
        """The protocol with the features of the new columns; NOT NULL needs one, also on a member of a struct."""
        protocol = upgrade_for_metadata(base.protocol, metadata)
        if any(change.nullable is False for change in self.changes):
            return with_features(protocol or base.protocol, frozenset({"invariants"}))
        return protocol

    def _operation_and_parameters(self, schema: Struct) -> tuple[str, dict[str, str]]:
        shown = [change.to_history(schema) for change in self.changes]
        if len(shown) > 1:
            return "CHANGE COLUMNS", {"columns": compact_json(shown)}
        column = compact_json(shown[0]["column"])
        return "CHANGE COLUMN", {
            "column": column,
            **({key: value for key, value in shown[0].items() if key == "position"}),
        }


def _check_apart(paths: Sequence[tuple[str, ...]]) -> None:
    """Raises InvalidOption if two changes concern one column, or a column and one of its members."""
    folded = [tuple(name.lower() for name in path) for path in paths]
    for index, path in enumerate(folded):
        if any(other[: len(path)] == path for other in folded[:index] + folded[index + 1 :]):
            reason = "the statement changes it twice, or something inside it; change one after the other."
            raise InvalidOption(option="column", value=".".join(paths[index]), reason=reason)
    if not paths:
        raise InvalidOption(option="column", value="none", reason="name the column to change.")


def _check_all_filled(changes: Sequence[ChangeColumn], engine: Engine, base: Snapshot) -> tuple[ReadSet, RebaseHandler]:
    files = with_row_counts(base, file_set(base))
    for change in changes:
        change.check_filled(base, files, engine)
    return ReadSet(EVERY_ROW, frozenset(base.files["path"].to_pylist())), EveryRow(base)


def why_type_refused(base: Snapshot, path: Sequence[str], before: DataType, after: DataType) -> str | None:
    """Why a table does not allow a change of type that the protocol allows; None if it does."""
    if not is_on(base.metadata):
        return f"set {ENABLED} = true first"
    if after == "timestamp_ntz" and TIMESTAMP_NTZ not in writer_features(base.protocol):
        return NO_MOMENTS
    if _ICEBERG & writer_features(base.protocol) and not iceberg_keeps(before, after):
        return "Iceberg, with which the table is to be compatible, has no such change"
    return find_dependency(base.metadata, path)


def _is_inside(schema: Struct, path: tuple[str, ...]) -> bool:
    """Whether a path ends in an element, key or value, not in a column or a member."""
    data_type: DataType = schema
    is_inside = False
    for step in path:
        if isinstance(data_type, Struct):
            data_type, is_inside = data_type.field(step).type, False
        else:
            data_type, is_inside = inside_of(data_type).get(step.lower(), Struct()), True
    return is_inside


def _is_missing(schema: Struct, path: tuple[str, ...]) -> Condition:
    """The condition that a column is NULL; for a member, that the structs around it are not. Raises InvalidOption: it
    is inside an array or a map.
    """
    data_type: DataType = schema
    names: list[str] = []
    for step in path:
        if not isinstance(data_type, Struct):
            reason = "rows cannot be checked inside arrays and maps; NOT NULL is set on columns and members of structs."
            raise InvalidOption(option="nullable", value=False, reason=reason)
        field = data_type.field(step)
        names.append("`" + field.name.replace("`", "``") + "`")
        data_type = field.type
    around = [f"{'.'.join(names[:length])} IS NOT NULL AND " for length in range(1, len(names))]
    text = f"{''.join(around)}{'.'.join(names)} IS NULL"
    top = schema.field(path[0]).name
    predicate, computation = IsNull(top) if len(path) == 1 else Unknown(), computation_over(text, schema)
    return Condition(text, predicate, True, text, frozenset({top}), computation=computation)
