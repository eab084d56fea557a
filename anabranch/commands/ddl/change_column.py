"""ALTER TABLE … ALTER COLUMN: comment, NULL, default, type and place of columns. No row is written.

Knows what each change asks of the rows that are there: a wider type asks nothing, since old files are read with their
values made wider; NOT NULL asks that every row be looked at. Guarantees as in `anabranch.commands.ddl.alter`.
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
from anabranch._protocol.features.widening import ENABLED, NO_MOMENTS, depending_on, iceberg_keeps, is_on, with_type
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.predicates import IsNull, Unknown
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION, Rules, rules_of
from anabranch._protocol.schema.editing import edit_field, field_at, inside_of, move_field
from anabranch._protocol.schema.lengths import LENGTH, Length, limits_of
from anabranch._protocol.schema.types import DataType, Field, Struct, schema_json
from anabranch._transaction.commit import Committed
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.transaction import ReadSet
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, NewColumn, run_alteration
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.replaced_rows import EveryRow
from anabranch.commands.engine import Backend, Engine
from anabranch.commands.opening import Location, Masked, file_set
from anabranch.commands.row_changes import rows_of, with_counts
from anabranch.errors import ConstraintNotMet, InvalidOption

_ICEBERG = frozenset({"icebergCompatV1", "icebergCompatV2"})
DROPPED = ""
"""The default of a column that is to have none, and the comment of one that is to have none."""


@dataclass(frozen=True)
class ChangeColumn(Masked):
    """ALTER TABLE … ALTER COLUMN (CHANGE COLUMN); what is None stays as it is.

    Attributes:
        column: the path: a column, then members of structs, ``element``, ``key`` or ``value`` inside arrays and maps.
        type: a wider type, on a table with ``delta.enableTypeWidening``.
        length: what the type says of texts, as ``varchar(9)``; None where it sets them no limit.
        comment: `DROPPED` takes it away.
        nullable: True is DROP NOT NULL, False is SET NOT NULL, which looks at every row.
        default: SQL text of a value, or `DROPPED`.
        first, after: its place among its neighbours.

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

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where the column is so already.

        Args:
            engine: needed for SET NOT NULL, which looks at rows, and for a default, which must be a value.

        Raises:
            UnknownColumn: there is no such column.
            InvalidOption: the change is none that the protocol allows, or needs the engine; a type names both types.
            ConstraintNotMet: SET NOT NULL, and rows hold NULL there. InvalidCondition: the default is no value.
            MetadataChangedException, ConcurrentAppendException: the table was written meanwhile.
        """
        return ChangeColumns(self.table, (self,)).run(engine, context)

    def on(self, base: Snapshot, schema: Struct) -> Struct:
        """The columns with this one changed.

        Raises:
            UnknownColumn, InvalidOption: as of `run`.
        """
        if self.type is not None:
            schema = with_type(schema, self.column, self.type, partial(objection, base, self.column))
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
        """What is said of the column, with the length of its texts as it is asked for: none that is set gets shorter.

        Raises:
            InvalidOption: it would.
        """
        known, rest = field.metadata.get(LENGTH), {k: v for k, v in field.metadata.items() if k != LENGTH}
        if self.length == known:
            return dict(field.metadata)
        before, after = limits_of(field), limits_of(replace(field, metadata={LENGTH: self.length or ""}))
        if isinstance(before, Length) and self.length is None:
            return rest
        are_lengths = isinstance(before, Length) and isinstance(after, Length)
        if are_lengths and not after.padded and after.length >= before.length:  # type: ignore[union-attr]
            return {**rest, LENGTH: str(after)}
        reason = f"the column {field.name} is {known or 'string'}, and rows that are there may have longer texts."
        raise InvalidOption(option="type", value=self.length or "string", reason=reason, column=field.name)

    def _check_default(self, field: Field) -> None:
        taken = {GENERATION: "generated", STEP: "an identity column"}
        why = next((word for key, word in taken.items() if key in field.metadata), None)
        why = "a member of another column" if len(self.column) > 1 else "a variant" if field.type == "variant" else why
        if why is not None and self.default != DROPPED:
            raise InvalidOption(option="default", value=self.default, reason=f"{field.name} is {why}: it has none.")

    def _check_only_type(self) -> None:
        asked = (self.comment, self.nullable, self.default, self.after)
        if any(each is not None for each in asked) or self.first:
            reason = "elements, keys and values have a type, and nothing else that could be changed."
            raise InvalidOption(option="column", value=".".join(self.column), reason=reason)

    def to_history(self, schema: Struct) -> dict[str, Any]:
        """How Delta's history shows it: the column as it is now, and where it was put."""
        path = self.column
        while _is_inside(schema, path):
            path = path[:-1]
        return NewColumn(field_at(schema, path), path[:-1], self.first, self.after).to_history()

    def check_filled(self, base: Snapshot, files: FileSet, engine: Backend) -> None:
        """Raises ConstraintNotMet if a row has NULL in the column."""
        rows = rows_of(files.files) - count_of(files.vectors)
        missing = count_of(engine.find(files, _is_missing(base.schema, self.column))) if rows else 0
        if missing:
            name = ".".join(self.column)
            raise ConstraintNotMet(
                table=base.table, constraint=name, predicate=f"{name} IS NOT NULL", count=missing, rows=rows
            )


@dataclass(frozen=True)
class ChangeColumns(Masked):
    """ALTER TABLE … ALTER COLUMN a …, b …: several columns changed in one commit, one after the other, or none of them.

    Example:
        >>> wider = ChangeColumn("/data/flights", ("delay",), type="long")
        >>> ChangeColumns("/data/flights", (wider, ChangeColumn("/data/flights", ("gate",), first=True))).run()
    """

    table: Location
    changes: Sequence[ChangeColumn]

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where all of them are so already.

        Raises:
            InvalidOption: a column is changed twice, or with one that it lies in. And as of `ChangeColumn.run`.
        """
        _check_apart([each.column for each in self.changes])
        looking = [each for each in self.changes if each.nullable is False]
        if engine is None and (looking or any(each.default for each in self.changes)):
            reason = "SET NOT NULL looks at the rows, and a default is looked at by Spark: run it with an engine."
            raise InvalidOption(option="engine", value=None, reason=reason)
        look = partial(_check_all_filled, looking, engine) if engine is not None and looking else None
        return run_alteration(self.table, partial(self._on, engine=engine), context, look)

    def _on(self, base: Snapshot, engine: Engine | None) -> Alteration:
        schema: Struct = base.schema
        for each in self.changes:
            schema = each.on(base, schema)
        changed = replace(base.metadata, schema_string=schema_json(schema))
        metadata = base.metadata if schema == base.schema else changed
        if engine is not None and any(each.default for each in self.changes):
            engine.check_rules(schema, self._defaults(metadata), base.table)
        operation, parameters = self._operation_and_parameters(schema)
        return Alteration(operation, parameters, metadata, self._protocol(base, metadata))

    def _defaults(self, metadata: Metadata) -> Rules:
        """The defaults that are given now; the other rules were there before."""
        given = {each.column[0].lower() for each in self.changes if each.default}
        known = rules_of(metadata).defaults
        return Rules(defaults={name: text for name, text in known.items() if name.lower() in given})

    def _protocol(self, base: Snapshot, metadata: Metadata) -> Protocol | None:
        """NOT NULL asks for the feature that holds it, also of a member of a struct."""
        protocol = upgrade_for_metadata(base.protocol, metadata)
        if any(each.nullable is False for each in self.changes):
            return with_features(protocol or base.protocol, frozenset({"invariants"}))
        return protocol

    def _operation_and_parameters(self, schema: Struct) -> tuple[str, dict[str, str]]:
        shown = [each.to_history(schema) for each in self.changes]
        if len(shown) > 1:
            return "CHANGE COLUMNS", {"columns": compact_json(shown)}
        column = compact_json(shown[0]["column"])
        return "CHANGE COLUMN", {"column": column, **({k: v for k, v in shown[0].items() if k == "position"})}


def _check_apart(paths: Sequence[tuple[str, ...]]) -> None:
    """Raises InvalidOption if two of these changes are of one column, or one of a member of the other."""
    folded = [tuple(name.lower() for name in path) for path in paths]
    for i, path in enumerate(folded):
        if any(other[: len(path)] == path for other in folded[:i] + folded[i + 1 :]):
            reason = "the statement changes it twice, or something inside it; change one after the other."
            raise InvalidOption(option="column", value=".".join(paths[i]), reason=reason)
    if not paths:
        raise InvalidOption(option="column", value="none", reason="name the column to change.")


def _check_all_filled(changes: Sequence[ChangeColumn], engine: Engine, base: Snapshot) -> tuple[ReadSet, RebaseHandler]:
    files = with_counts(base, file_set(base))
    for each in changes:
        each.check_filled(base, files, engine)
    return ReadSet(EVERY_ROW, frozenset(base.files["path"].to_pylist())), EveryRow(base)


def objection(base: Snapshot, path: Sequence[str], before: DataType, after: DataType) -> str | None:
    """Why a table does not allow a change of a type that the protocol would."""
    if not is_on(base.metadata):
        return f"set {ENABLED} = true first"
    if after == "timestamp_ntz" and TIMESTAMP_NTZ not in writer_features(base.protocol):
        return NO_MOMENTS
    if _ICEBERG & writer_features(base.protocol) and not iceberg_keeps(before, after):
        return "Iceberg, with which the table is to be compatible, has no such change"
    return depending_on(base.metadata, path)


def _is_inside(schema: Struct, path: tuple[str, ...]) -> bool:
    """Whether a path ends in an element, key or value, and not in a column or a member."""
    data_type: DataType = schema
    is_inside = False
    for step in path:
        if isinstance(data_type, Struct):
            data_type, is_inside = data_type.field(step).type, False
        else:
            data_type, is_inside = inside_of(data_type).get(step.lower(), Struct()), True
    return is_inside


def _is_missing(schema: Struct, path: tuple[str, ...]) -> Condition:
    """Rows in which the column is NULL; a member, where the structs around it are not. Raises InvalidOption: it stands
    inside an array or a map.
    """
    data_type: DataType = schema
    names: list[str] = []
    for step in path:
        if not isinstance(data_type, Struct):
            reason = (
                "rows cannot be looked at inside arrays and maps; NOT NULL is set on columns and members of structs."
            )
            raise InvalidOption(option="nullable", value=False, reason=reason)
        field = data_type.field(step)
        names.append("`" + field.name.replace("`", "``") + "`")
        data_type = field.type
    around = [f"{'.'.join(names[:i])} IS NOT NULL AND " for i in range(1, len(names))]
    text = f"{''.join(around)}{'.'.join(names)} IS NULL"
    top = schema.field(path[0]).name
    predicate, computation = IsNull(top) if len(path) == 1 else Unknown(), computation_over(text, schema)
    return Condition(text, predicate, True, text, frozenset({top}), computation=computation)
