"""ALTER TABLE … ALTER COLUMN: comment, NULL, default, type and place of one column. No row is written.

Knows what each change asks of the rows that are there: a wider type asks nothing, since old files are read with their
values made wider; NOT NULL asks that every row be looked at. Guarantees as in `anabranch.commands.alter`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial

from anabranch.commands.alter import NOW, Alteration, Moment, NewColumn, run_alteration
from anabranch.commands.change import rows_of, with_counts
from anabranch.commands.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, file_set
from anabranch.commands.write import EveryRow
from anabranch.errors import ConstraintNotMet, InvalidOption
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.actions import Metadata, Protocol
from anabranch.protocol.editing import edited, field_at, inside_of, moved
from anabranch.protocol.features import upgraded, with_features, writer_features
from anabranch.protocol.filesets import count_of
from anabranch.protocol.identity import STEP
from anabranch.protocol.predicates import Condition, IsNull, Unknown
from anabranch.protocol.rules import DEFAULT, GENERATION, rules_of
from anabranch.protocol.schema import DataType, Field, Struct, schema_json
from anabranch.protocol.widening import ENABLED, depending_on, iceberg_keeps, is_on, with_type
from anabranch.transaction.commit import Committed
from anabranch.transaction.conflicts import Hands
from anabranch.transaction.footprint import Reads

_ICEBERG = frozenset({"icebergCompatV1", "icebergCompatV2"})
DROPPED = ""
"""The default of a column that is to have none, and the comment of one that is to have none."""


@dataclass(frozen=True)
class ChangeColumn:
    """ALTER TABLE … ALTER COLUMN (CHANGE COLUMN); what is None stays as it is.

    Attributes:
        column: the path: a column, then members of structs, ``element``, ``key`` or ``value`` inside arrays and maps.
        type: a wider type, on a table with ``delta.enableTypeWidening``. comment: `DROPPED` takes it away.
        nullable: True is DROP NOT NULL, False is SET NOT NULL, which looks at every row. default: SQL text of a
        value, or `DROPPED`. first, after: its place among its neighbours.

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

    def run(self, engine: Engine | None = None, moment: Moment = NOW) -> Committed | None:
        """Run it; None where the column is so already.

        Args:
            engine: needed for SET NOT NULL, which looks at rows, and for a default, which must be a value.

        Raises:
            UnknownColumn: there is no such column.
            InvalidOption: the change is none that the protocol allows, or needs the engine; a type names both types.
            ConstraintNotMet: SET NOT NULL, and rows hold NULL there. InvalidCondition: the default is no value.
            MetadataChangedException, ConcurrentAppendException: the table was written meanwhile.
        """
        if engine is None and (self.default or self.nullable is False):
            reason = "SET NOT NULL looks at the rows, and a default is looked at by Spark: run it with an engine."
            raise InvalidOption(option="engine", value=None, reason=reason)
        look = None
        if engine is not None and self.nullable is False:
            look = partial(self._looked, engine=engine)
        return run_alteration(self.table, partial(self._on, engine=engine), moment, look)

    def _on(self, base: Snapshot, engine: Engine | None) -> Alteration:
        schema = self._typed(base)
        if _is_inside(schema, self.column):
            self._check_only_type()
        else:
            schema = edited(schema, self.column, self._changed)
            schema = moved(schema, self.column, first=self.first, after=self.after)
        changed = replace(base.metadata, schema_string=schema_json(schema))
        metadata = base.metadata if schema == base.schema else changed
        if self.default and engine is not None:
            engine.check_rules(schema, rules_of(metadata), base.table)
        return Alteration("CHANGE COLUMN", self._parameters(schema), metadata, self._protocol(base, metadata))

    def _protocol(self, base: Snapshot, metadata: Metadata) -> Protocol | None:
        """NOT NULL asks for the feature that holds it, also of a member of a struct."""
        protocol = upgraded(base.protocol, metadata)
        if self.nullable is False:
            return with_features(protocol or base.protocol, frozenset({"invariants"}))
        return protocol

    # -- the parts of a change

    def _typed(self, base: Snapshot) -> Struct:
        if self.type is None:
            return base.schema
        return with_type(base.schema, self.column, self.type, partial(self._objection, base))

    def _objection(self, base: Snapshot, before: DataType, after: DataType) -> str | None:
        """Why this table does not allow a change of a type that the protocol would."""
        if not is_on(base.metadata):
            return f"set {ENABLED} = true first"
        if _ICEBERG & writer_features(base.protocol) and not iceberg_keeps(before, after):
            return "Iceberg, with which the table is to be compatible, has no such change"
        return depending_on(base.metadata, base.schema.field(self.column[0]).name)

    def _changed(self, field: Field) -> Field:
        facts = dict(field.metadata)
        for key, value in (("comment", self.comment), (DEFAULT, self.default)):
            if value is not None and value != DROPPED:
                facts[key] = value
            elif value is not None:
                facts.pop(key, None)
        if self.default is not None:
            self._check_default(field)
        nullable = field.nullable if self.nullable is None else self.nullable
        return replace(field, metadata=facts, nullable=nullable)

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

    def _parameters(self, schema: Struct) -> dict[str, str]:
        path = self.column
        while _is_inside(schema, path):
            path = path[:-1]
        shown = NewColumn(field_at(schema, path), path[:-1], self.first, self.after).logged()
        column = json.dumps(shown["column"], ensure_ascii=False)
        return {"column": column, **({"position": shown["position"]} if "position" in shown else {})}

    # -- the rows

    def _looked(self, base: Snapshot, engine: Engine) -> tuple[Reads, Hands]:
        files, where = with_counts(base, file_set(base)), _is_missing(base.schema, self.column)
        rows = rows_of(files.files) - count_of(files.vectors)
        missing = count_of(engine.find(files, where)) if rows else 0
        if missing:
            name = ".".join(self.column)
            raise ConstraintNotMet(
                table=base.table, constraint=name, predicate=f"{name} IS NOT NULL", count=missing, rows=rows
            )
        return Reads(EVERY_ROW, frozenset(base.files["path"].to_pylist())), EveryRow(base)


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
    """Rows in which the column is NULL; a member, where the structs around it are not.

    Raises:
        InvalidOption: it stands inside an array or a map.
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
    return Condition(text, IsNull(top) if len(path) == 1 else Unknown(), True, text, frozenset({top}))
