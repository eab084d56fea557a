"""Commands by chance on drawn tables: changes of rows, inserts, overwrites and layouts, as SQL texts and as functions.

Pure: dice in, commands out. A value has a function beside its text, where the reference engine can compute it; a
condition's meaning is left to the product's reference evaluator of predicates.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from laboratory.drawn_tables import KEY, KINDS, Column, Drawn, Row, drawn_rows

Computed: TypeAlias = Callable[[Row, Row], Any]
"""A value of the table's row and the source's."""


@dataclass(frozen=True)
class Value:
    """What a column is set to; ``of`` is None where only SQL says it."""

    text: str
    of: Computed | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Delete:
    """DELETE WHERE."""

    where: str


@dataclass(frozen=True)
class Update:
    """UPDATE SET … WHERE."""

    sets: Mapping[str, Value]
    where: str


@dataclass(frozen=True)
class Clause:
    """A clause of a MERGE; ``values`` is None for a star, and empty for a delete."""

    when: Literal["matched", "not matched", "not matched by source"]
    action: Literal["update", "delete", "insert"]
    condition: str | None
    values: Mapping[str, Value] | None


@dataclass(frozen=True)
class Merge:
    """MERGE of some rows, on equality of some columns, where NULL may equal NULL, and a condition on the table alone;
    the sides are t and s.
    """

    source: tuple[Row, ...]
    by: tuple[str, ...]
    also: str | None
    clauses: tuple[Clause, ...]
    null_safe: frozenset[str] = frozenset()

    @property
    def on(self) -> str:
        """The condition."""
        equal = [f"t.`{name}` {'<=>' if name in self.null_safe else '='} s.`{name}`" for name in self.by]
        return " AND ".join([*equal, *([self.also] if self.also else [])])


@dataclass(frozen=True)
class Insert:
    """INSERT of rows."""

    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Replace:
    """INSERT OVERWRITE of the rows that a condition selects, or of all."""

    where: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Layout:
    """OPTIMIZE, with columns ZORDER BY; or REORG, which purges."""

    by: tuple[str, ...] = ()
    purges: bool = False


Command: TypeAlias = Delete | Update | Merge | Insert | Replace | Layout


def drawn_command(dice: random.Random, table: Drawn) -> Command:
    """A command on a table."""
    makers = (_delete, _delete, _update, _update, _update, _merge, _merge, _merge, _merge, _insert, _replace, _layout)
    return dice.choice(makers)(dice, table)


def _delete(dice: random.Random, table: Drawn) -> Delete:
    return Delete(_where(dice, table.columns))


def _update(dice: random.Random, table: Drawn) -> Update:
    chosen = _settable(dice, table)
    sets = {each.sql: _value(dice, each, table.columns) for each in chosen if each.kind is not KINDS["inner"]}
    if len(sets) < len(chosen):
        members = {f"{each.sql}.`a`": Value("7") for each in chosen if each.kind is KINDS["inner"]}
        sets |= members
    return Update(sets, _where(dice, table.columns))


def _insert(dice: random.Random, table: Drawn) -> Insert:
    return Insert(tuple(drawn_rows(dice, table.columns, dice.randint(1, 6))))


def _replace(dice: random.Random, table: Drawn) -> Replace:
    rows = drawn_rows(dice, table.columns, dice.randint(1, 6))
    if dice.random() < 0.3:
        return Replace(None, tuple(rows))
    column = next((each for each in table.columns if each.name in table.partition_by), table.columns[0])
    value = _given(dice, column)
    where = f"{column.sql} IS NULL" if value is None else f"{column.sql} = {literal(column, value)}"
    if dice.random() < 0.9:  # else some row is not selected
        rows = [{**row, column.name: value} for row in rows]
    return Replace(where, tuple(rows))


def _layout(dice: random.Random, table: Drawn) -> Layout:
    how = dice.choice(("pack", "pack", "purge", "order"))
    free = [each.name for each in table.columns if each.name not in table.partition_by and not each.kind.is_nested]
    by = tuple(dice.sample(free, min(len(free), dice.randint(1, 2)))) if how == "order" else ()
    return Layout(by, purges=how == "purge")


# -- MERGE -------------------------------------------------------------------------------------------------------------


def _merge(dice: random.Random, table: Drawn) -> Merge:
    rows = drawn_rows(dice, table.columns, dice.randint(0, 6))
    unjoined = () if _rarely(dice) else (KINDS["float"], KINDS["double"], KINDS["bytes"])
    others = [each.name for each in table.columns[1:] if not each.kind.is_nested and each.kind not in unjoined]
    by = (KEY, *dice.sample(others, 1 if others and dice.random() < 0.3 else 0))
    if dice.random() < 0.8:  # else several rows may match one
        rows = list({tuple(repr(row[name]) for name in by): row for row in rows}.values())
    also = f"({_where(dice, table.columns, 't')})" if dice.random() < 0.3 else None
    clauses = [each for make in (_matched, _not_matched, _by_source) for each in make(dice, table)]
    null_safe = frozenset(name for name in by if dice.random() < 0.3)
    return Merge(tuple(rows), by, also, tuple(clauses) or (_star("matched", "update"),), null_safe)


def _star(when: Any, action: Any, condition: str | None = None) -> Clause:
    return Clause(when, action, condition, None)


def _matched(dice: random.Random, table: Drawn) -> list[Clause]:
    made = [_changing(dice, table, "matched") for _ in range(dice.choice((0, 1, 1, 2)))]
    return [each if i == len(made) - 1 else _conditioned(dice, table, each, "t") for i, each in enumerate(made)]


def _by_source(dice: random.Random, table: Drawn) -> list[Clause]:
    made = [_changing(dice, table, "not matched by source") for _ in range(dice.choice((0, 0, 1, 2)))]
    return [_conditioned(dice, table, each, "t") for each in made]


def _not_matched(dice: random.Random, table: Drawn) -> list[Clause]:
    if dice.random() < 0.3:
        return []
    condition = _where(dice, table.columns, "s") if dice.random() < 0.3 else None
    if dice.random() < 0.6:
        return [_star("not matched", "insert", condition)]
    chosen = {KEY, *(each.name for each in table.columns if dice.random() < 0.6)}
    values = {each.sql: _taken(each) for each in table.columns if each.name in chosen}
    return [Clause("not matched", "insert", condition, values)]


def _changing(dice: random.Random, table: Drawn, when: Any) -> Clause:
    if dice.random() < 0.3:
        return Clause(when, "delete", None, {})
    if when == "matched" and dice.random() < 0.3:
        return _star(when, "update")
    takes = when == "matched"
    chosen = [each for each in _settable(dice, table) if takes or not each.kind.is_nested] or [table.columns[0]]
    sets = {
        each.sql: _taken(each)
        if takes and (each.kind.is_nested or dice.random() < 0.6)
        else _value(dice, each, table.columns, "t")
        for each in chosen
    }
    return Clause(when, "update", None, sets)


def _settable(dice: random.Random, table: Drawn) -> list[Column]:
    """Some columns that an UPDATE sets: of most nested ones only Spark computes values."""
    free = [each for each in table.columns if not each.kind.is_nested or each.kind is KINDS["inner"] or _rarely(dice)]
    return dice.sample(free, dice.randint(1, min(3, len(free))))


def _rarely(dice: random.Random) -> bool:
    return dice.random() < 0.02


def _conditioned(dice: random.Random, table: Drawn, clause: Clause, side: str) -> Clause:
    return Clause(clause.when, clause.action, _where(dice, table.columns, side), clause.values)


def _taken(column: Column) -> Value:
    return Value(f"s.{column.sql}", lambda row, source: source[column.name])


# -- conditions and values ---------------------------------------------------------------------------------------------


def _where(dice: random.Random, columns: tuple[Column, ...], side: str = "") -> str:
    """A condition on columns of one side; of both sides' columns each is named with its side."""
    drawn = dice.random()
    if drawn < 0.05:
        return "TRUE"
    one = _test(dice, columns, side)
    if drawn < 0.55:
        return one
    if drawn < 0.65:
        return f"NOT ({one})"
    return f"({one}) {dice.choice(('AND', 'OR'))} ({_test(dice, columns, side)})"


def _test(dice: random.Random, columns: tuple[Column, ...], side: str) -> str:
    plain = [each for each in columns if not each.kind.is_nested]
    column = dice.choice((plain[0], dice.choice(columns if _rarely(dice) else [*plain, *_with_members(columns)])))
    name = f"{side}.{column.sql}" if side else column.sql
    if column.kind is KINDS["inner"] and not _rarely(dice):
        return f"{name}.`a` = {dice.choice((1, 2))}"
    if column.kind.is_nested or dice.random() < 0.15 or not _spellable(dice, column):
        return f"{name} IS {dice.choice(('', 'NOT '))}NULL"
    drawn = dice.random()
    if drawn < 0.2:
        values = ", ".join(_spelled(column, _given(dice, column)) for _ in range(dice.randint(1, 3)))
        return f"{name} IN ({values})"
    if drawn < 0.35:
        return _rich(dice, column, name)
    value = _given(dice, column)
    operator = dice.choice(("=", "=", "<", "<=", ">", ">=", "<>", "<=>"))
    return f"{name} {operator} {_spelled(column, value)}"


def _with_members(columns: tuple[Column, ...]) -> list[Column]:
    return [each for each in columns if each.kind is KINDS["inner"]]


def _spellable(dice: random.Random, column: Column) -> list[Any]:
    """The values of a column that Arrow computes from a literal, and rarely others too."""
    if _rarely(dice):
        return list(column.kind.values)
    if column.kind is KINDS["bytes"]:
        return []
    return [each for each in column.kind.values if not isinstance(each, float) or (math.isfinite(each) and each < 1e9)]


def _given(dice: random.Random, column: Column) -> Any:
    """A value that can be spelled, or NULL."""
    values = _spellable(dice, column)
    return dice.choice(range(8) if column.name == KEY else values) if values and dice.random() < 0.85 else None


def _rich(dice: random.Random, column: Column, name: str) -> str:
    """What no predicate says, and Arrow computes; or Spark alone."""
    if dice.random() < 0.03:
        return f"soundex(CAST({name} AS STRING)) = 'A000'"
    if column.kind.arrow in (pa_long, pa_int):
        return dice.choice((f"{name} % 3 = 1", f"abs({name}) > 1", f"coalesce({name}, 2) BETWEEN 1 AND 3"))
    if column.kind is KINDS["text"]:
        return dice.choice((f"length({name}) > 1", f"upper({name}) = 'A'", f"{name} LIKE 'a%'", f"{name} LIKE '%é%'"))
    if column.kind is KINDS["date"]:
        return f"year({name}) = 2024"
    if column.kind is KINDS["bytes"]:
        return f"{name} IS NULL"
    if column.kind in (KINDS["float"], KINDS["double"]):
        return dice.choice((f"isnan({name})", f"{name} * 2 > 1"))
    return f"coalesce({name} = {_spelled(column, column.kind.values[0])}, TRUE)"


pa_long, pa_int = KINDS["long"].arrow, KINDS["int"].arrow


def _value(dice: random.Random, column: Column, columns: tuple[Column, ...], side: str = "") -> Value:
    """A value for a column of the table, of the table's row."""
    name, drawn = f"{side}.{column.sql}" if side else column.sql, dice.random()
    same = [each for each in columns if each.kind is column.kind and each is not column]
    if same and drawn < 0.3:
        other = dice.choice(same).name
        return Value(f"{side}.`{other}`" if side else f"`{other}`", lambda row, source: row[other])
    if column.kind.arrow in (pa_long, pa_int) and drawn < 0.5:
        return Value(
            f"{name} + 1", None if column.kind is KINDS["int"] else lambda row, source: _more(row[column.name])
        )
    if column.kind is KINDS["text"] and drawn < 0.5:
        return Value(dice.choice((f"concat({name}, 'é')", f"upper({name})", f"coalesce({name}, '😀')")))
    if column.kind is KINDS["double"] and drawn < 0.5:
        return Value(f"{name} * 2")
    if column.kind is KINDS["date"] and drawn < 0.5:
        return Value(f"date_add({name}, 1)")
    value = None if column.kind.is_nested else _given(dice, column)
    return Value(_spelled(column, value), lambda row, source: value)


def _more(value: Any) -> Any:
    return None if value is None else value + 1


def _spelled(column: Column, value: Any) -> str:
    return "NULL" if value is None else literal(column, value)


def literal(column: Column, value: Any) -> str:
    """A value that is not NULL, as an SQL literal of the column's type."""
    match value:
        case bool():
            return str(value).upper()
        case int():
            return f"CAST({value} AS {column.kind.sql})" if value < 0 else str(value)
        case float():
            if column.kind is KINDS["float"] and math.isfinite(value):
                return f"{value!r}F"
            text = "NaN" if math.isnan(value) else "Infinity" if math.isinf(value) else repr(value)
            return f"CAST('{text}' AS {column.kind.sql})"
        case Decimal():
            return f"CAST('{value}' AS {column.kind.sql})"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            zone = "" if value.tzinfo is None else "Z"
            return f"{column.kind.sql} '{value.replace(tzinfo=None).isoformat(' ')}{zone}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    return "'" + str(value) + "'"
