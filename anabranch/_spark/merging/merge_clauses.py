"""Decides which WHEN clause of a MERGE acts on a row, and computes its new image.

Knows expressions over two sides, and how names on them are told apart. Knows nothing of joins or files. Guarantees: the
first clause whose condition is TRUE acts; NULL is not TRUE; nondeterministic expressions are evaluated once; a value
that its column cannot hold stops the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.merges import Clause, MergePlan, ReservedIdentity, SourceColumn
from anabranch._protocol.schema.assignments import Path, find_path, leaves, whole_structs
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.members import Assignments, is_set, rebuild_column
from anabranch._spark.columns.types import column, quote_identifier, spark_type, tree_reduce
from anabranch._spark.frames.failures import format_expression, is_of_a_frame, reason_of, translate_errors
from anabranch._spark.merging.row_numbers import value_at
from anabranch._spark.reading.row_addresses import as_column
from anabranch.errors import InvalidCondition, UnknownColumn

Numbered = Sequence[tuple[int, Clause]]
"""Clauses with their numbers in the command."""


@dataclass(frozen=True)
class Names:
    """Names for our own columns, which neither side uses, and the aliases of the two sides."""

    prefix: str
    target: str
    source: str

    @classmethod
    def beside(cls, used_names: Sequence[str], matching: MergePlan) -> Names:
        """Names that differ from these in more than case; a side without an alias gets one."""
        prefix = "__anabranch_m"
        while any(name.lower().startswith(prefix) for name in used_names):
            prefix += "_"
        return cls(prefix, matching.target or f"{prefix}target", matching.source or f"{prefix}source")

    @property
    def path(self) -> str:
        """The file of the table's row."""
        return f"{self.prefix}path"

    @property
    def row(self) -> str:
        """The position of the table's row in its file."""
        return f"{self.prefix}row"

    @property
    def number(self) -> str:
        """The number of the source's row; NULL if none matches."""
        return f"{self.prefix}number"

    @property
    def row_id(self) -> str:
        """The id of the table's row, if it keeps one."""
        return f"{self.prefix}rowid"

    @property
    def place(self) -> str:
        """The number of source rows before this one, if values were reserved."""
        return f"{self.prefix}place"

    @property
    def clause(self) -> str:
        """The number of the clause that acts; NULL if none does."""
        return f"{self.prefix}clause"

    def image(self, i: int) -> str:
        """The new value of the table's column ``i``."""
        return f"{self.prefix}image{i}"

    def old(self, i: int) -> str:
        """The old value of the table's column ``i``, if changes are recorded."""
        return f"{self.prefix}old{i}"

    def value(self, clause: int, i: int) -> str:
        """The ``i``-th value that a clause assigns, before it is cast."""
        return f"{self.prefix}value{clause}_{i}"


@dataclass(frozen=True)
class Decider:
    """Evaluates clauses over rows, for one table and one source."""

    table: str
    schema: Struct
    source_names: Sequence[str]
    names: Names
    partial: bool = False

    def decide(
        self, rows: DataFrame, clauses: Numbered, where: Column, rest: Callable[[Field], Column] | None = None
    ) -> DataFrame:
        """The rows, with the clause that acts where ``where`` holds, and the image that it makes.

        Args:
            rows: rows of one side or both.
            clauses: clauses with their numbers.
            where: no clause acts elsewhere.
            rest: the value of a column that a clause does not assign; None: NULL.

        Raises:
            InvalidCondition, UnknownColumn, SchemaMismatch: an expression does not fit the columns.
        """
        for _, clause in clauses:
            self.apply_expressions(rows, clause)
        with translate_clause_errors("; ".join(text_of(clause) for _, clause in clauses), self.table):
            spark = rows.sparkSession
            rows = rows.select("*", F.when(where, first_acting(clauses, spark)).alias(self.names.clause))
            # In columns of their own, because the cast would evaluate nondeterministic expressions a second time.
            values = [value for i, clause in clauses for value in self._values(i, clause, spark)]
            rows = rows.select("*", *values)
            return rows.select("*", *self._images(clauses, rows.schema, rest or null_of))

    def apply_expressions(self, rows: DataFrame, clause: Clause) -> DataFrame:
        """The rows, in a plan that contains every expression of a clause. Raises as `decide` unless each expression
        fits rows with such columns.

        A WHERE accepts only expressions over single rows; a SELECT would accept aggregates and generators too.
        """
        spark = rows.sparkSession
        with translate_clause_errors(text_of(clause), self.table):
            if clause.condition is not None:
                rows = rows.filter(as_column(clause.condition, spark))
            own_kinds = (SourceColumn, ReservedIdentity)
            values = [as_column(value, spark) for _, value in leaves(clause.values) if not isinstance(value, own_kinds)]
            if values:
                rows = rows.filter(tree_reduce(Column.__or__, [value.isNull() for value in values]))
            _ = rows.schema  # otherwise Spark Connect analyses it only later
            return rows

    def _values(self, number: int, clause: Clause, spark: SparkSession) -> Iterator[Column]:
        for i, (_, value) in enumerate(leaves(clause.values)):
            clause_value = F.when(column(self.names.clause) == number, self._to_column(value, spark))
            yield clause_value.alias(self.names.value(number, i))

    def _to_column(self, value: Any, spark: SparkSession) -> Column:
        if isinstance(value, ReservedIdentity):
            return value_at(column(self.names.place), value.values)
        return self._of_source(value) if isinstance(value, SourceColumn) else as_column(value, spark)

    def _of_source(self, value: SourceColumn) -> Column:
        if value.name.lower() not in {name.lower() for name in self.source_names}:
            reason = f"the source has no column {value.name}; it has {', '.join(self.source_names)}."
            raise InvalidCondition(expression=value.name, table=self.table, reason=reason)
        return reduce(Column.getField, value.members, of_side(self.names.source, value.name))

    def _images(self, clauses: Numbered, types: T.StructType, rest: Callable[[Field], Column]) -> Iterator[Column]:
        """The columns of the new image: NULL if no clause acts, or one that deletes."""
        assignments = [
            (i, self._given_of_clause(i, clause, types)) for i, clause in clauses if clause.action != "delete"
        ]
        for i, field in enumerate(self.schema):
            image = _empty_case(null_of(field))
            for number, assigned in assignments:
                value = self._image(field, assigned, rest)
                image = image.when(column(self.names.clause) == number, value)
            yield image.alias(self.names.image(i))

    def _image(self, field: Field, given: Assignments, rest: Callable[[Field], Column]) -> Column:
        """A column's new value; ``rest`` is called only if it matters."""
        if not is_set(field, given.new):
            return rest(field)
        return rebuild_column(field, null_of(field) if (field.name,) in given.new else rest(field), given)

    def _given_of_clause(self, number: int, clause: Clause, types: T.StructType) -> Assignments:
        """The columns that a clause sets, and where their values are."""
        new = {
            self._resolve_path(path): self.names.value(number, i) for i, (path, _) in enumerate(leaves(clause.values))
        }
        wholes_by_path = {
            self._resolve_path(path): self._of_source(value) for path, value in whole_structs(clause.values)
        }
        return Assignments(new, types, self.table, self.partial, wholes_by_path)

    def _resolve_path(self, path: Path) -> Path:
        """A path in the table's spelling."""
        resolved = find_path(path, self.schema)
        if resolved is None:
            raise UnknownColumn(table=self.table, column=".".join(path), columns=", ".join(self.schema.names))
        return resolved


def of_side(alias: str, name: str) -> Column:
    """The column of one side; it takes precedence over a member of a struct that has the side's name."""
    return F.col(f"{quote_identifier(alias)}.{quote_identifier(name)}")


def text_of(clause: Clause) -> str:
    """A clause for error messages."""
    condition = "" if clause.condition is None else f" AND {format_expression(clause.condition)}"
    values = ", ".join(f"{'.'.join(path)} = {format_expression(value)}" for path, value in leaves(clause.values))
    return f"WHEN {clause.when.upper()}{condition} THEN {clause.action.upper()} {values}".rstrip()


@contextmanager
def translate_clause_errors(expression: str, table: str) -> Iterator[None]:
    """As `translate_errors`, and explains why a column bound to a DataFrame cannot be used: the source is a copy."""
    with translate_errors(expression, table):
        try:
            yield
        except AnalysisException as error:
            if not is_of_a_frame(error):
                if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                    reason = f"{reason_of(error)} {_describe_unresolved(expression, error)}."
                    raise InvalidCondition(expression=expression, table=table, reason=reason) from None
                raise
            reason = (
                "a column is bound to a DataFrame, as in updates['id'], but a MERGE works on a copy of its source. "
                "Use text, or F.col('alias.column') with the alias of the source or the table."
            )
            raise InvalidCondition(expression=expression, table=table, reason=reason) from None


def _describe_unresolved(expression: str, error: AnalysisException) -> str:
    """States which name of a clause is not a column, and in which part of the MERGE, in delta-spark's words."""
    name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
    if expression.startswith("MERGE ON"):
        return f"Cannot resolve {name} in search condition"
    before, _, after = expression.partition(" THEN ")
    action, _, values = after.partition(" ")
    return f"Cannot resolve {name} in {action} {'condition' if name in before and name not in values else 'clause'}"


def first_acting(clauses: Numbered, spark: SparkSession) -> Column:
    """The number of the first clause whose condition is TRUE, otherwise NULL."""
    first = _empty_case(F.lit(None).cast("int"))
    for number, clause in clauses:
        acts = F.lit(True) if clause.condition is None else as_column(clause.condition, spark)
        first = first.when(acts, number)
    return first


def _empty_case(null: Column) -> Column:
    """A CASE without branches."""
    return F.when(F.lit(False), null)


def null_of(field: Field) -> Column:
    """NULL, as a value of a column."""
    return F.lit(None).cast(spark_type(field.type))
