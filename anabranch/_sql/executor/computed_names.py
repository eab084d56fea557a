"""Computed: names and statements that a statement says by expressions, IDENTIFIER(…) and EXECUTE IMMEDIATE.

Spark evaluates what is no plain text, and is asked whether it takes the expression for a constant. Guarantees: behind
`evaluate_computed_names` no name and no statement is computed any more, but for names that are only read, where
Spark reads the very name; what cannot be evaluated is refused where a name could be lost by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from anabranch._expressions.dialect import Token, TokenType, tokenize
from anabranch._expressions.error_pointer import excerpt
from anabranch._spark.columns.types import quote_identifier
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.executor.running import check_quotes
from anabranch._sql.grammar import computed_names
from anabranch._sql.grammar.computed_names import Clause, Immediate
from anabranch._sql.grammar.parameters import Marker, arguments_for, markers
from anabranch._sql.grammar.parts import Path
from anabranch._sql.grammar.qualifiers import Edit, apply_edits, between
from anabranch.errors import InvalidOption, NotBuilt, SqlSyntaxError

_ADVICE = "Say it as it is, or run the statements of the script one after the other."
Matters = Callable[[str], bool]


@dataclass(frozen=True)
class Asked:
    """A statement in which nothing is computed, with the values of its parameters.

    Attributes:
        into: the variables that EXECUTE IMMEDIATE … INTO sets from its rows, as they are written.
    """

    text: str
    args: Any
    into: str | None = None


def evaluate_computed_names(
    spark: SparkSession, text: str, args: Any, matters: Matters, filled: Callable[[str], str]
) -> Asked:
    """What a statement asks once its names and texts are evaluated.

    Args:
        matters: whether a statement could be any of ours, by a look at its text.
        filled: a text with ``${…}`` filled in; Spark does so in that of EXECUTE IMMEDIATE, too.

    Raises:
        AnalysisException: Spark's: an expression is no constant text. SqlSyntaxError: a statement cannot be read.
        NotBuilt: a script computes what could be a name of ours.
    """
    found = Asked(text, args)
    while computed_names.may_be_computed(found.text):
        tokens = _tokens(found.text)
        if tokens is None:
            break
        if not computed_names.only_reads(tokens):
            check_quotes(spark, found.text)
        if computed_names.is_script(tokens):
            return replace(found, text=_of_script(found.text, tokens))
        inner = computed_names.immediate(found.text, tokens)
        if inner is None:
            return _substitute_names(spark, found, tokens)
        executed = _resolve_immediate(spark, found, inner, tokens, matters, filled)
        if executed is None:
            break
        found = executed
    return found


def _tokens(text: str) -> list[Token] | None:
    """The words of a statement; None where it cannot be read here, and Spark may read it, since no name can be lost."""
    try:
        return tokenize(text)
    except SqlSyntaxError:
        first = text.split(maxsplit=1)[0].upper()
        if first in ("SELECT", "WITH", "FROM", "VALUES"):
            return None
        raise


def set_from(asked: Asked) -> Asked:
    """The statement that sets the variables behind INTO from a query's rows."""
    tokens = tokenize(asked.text)
    while tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    query = asked.text[: tokens[-1].end + 1]
    return Asked(f"SET VARIABLE ({asked.into}) = (\n{query}\n)", asked.args)


# -- IDENTIFIER(…) -----------------------------------------------------------------------------------------------------


def _substitute_names(spark: SparkSession, found: Asked, tokens: list[Token]) -> Asked:
    """A statement in which each IDENTIFIER(…) is the name that it says."""
    known, edits, taken = markers(tokens, found.args), [], set[int]()
    for each in computed_names.clauses(found.text, tokens):
        inside = between(known, each.start, each.stop)
        name = _name_of(spark, found, each, inside, reads=computed_names.only_reads(tokens))
        if name is not None:
            edits.append(computed_names.name_edit(each, name))
            taken |= {marker.start for marker in inside}
    text, args = apply_edits(found.text, 0, len(found.text), edits), found.args
    if taken and args is not None and not isinstance(args, Mapping):
        args = _values([each for each in known if each.start not in taken], args)
    return replace(found, text=text, args=args)


def _name_of(
    spark: SparkSession, found: Asked, clause: Clause, inside: Sequence[Marker], *, reads: bool
) -> Path | None:
    """The name that a clause says; None where it is none of Spark's, or Spark says so itself."""
    said = _constant_text(found.text, clause.inner, clause.said, inside)
    if said is not None and (name := computed_names.simple_name(said)) is not None:
        return name
    expression, values = found.text[slice(*clause.inner)], _values(inside, found.args)
    try:
        return _evaluate_name(spark, expression, values)
    except ParseException:
        return None  # it is a table that is called so, with a list behind it
    except AnalysisException:
        if reads:
            return None
        raise


def _constant_text(text: str, span: tuple[int, int], plain: str | None, inside: Sequence[Marker]) -> str | None:
    """What an expression says that is one plain text, or one parameter that is a text."""
    is_marker = len(inside) == 1 and (inside[0].start, inside[0].stop) == span
    return inside[0].value if is_marker and isinstance(inside[0].value, str) else plain


def _values(used: Sequence[Marker], args: Any) -> Any:
    """The values of these parameters alone, as ``spark.sql`` takes them."""
    values = arguments_for(used, args)
    return list(values) if isinstance(values, tuple) else values


def _evaluate_name(spark: SparkSession, expression: str, values: Any) -> Path:
    """The name that an expression says to Spark, which reads a column of that name by it.

    Raises:
        ParseException: it is no expression. AnalysisException: Spark's: it is no constant text, or no name.
    """
    (row,) = exact_sql(spark, f"SELECT ({expression})", values).collect()
    name = _name_in(row[0]) if isinstance(row[0], str) else None
    place = f" FROM (SELECT {_nested_struct_sql(name[1:])} AS {quote_identifier(name[0])})" if name else ""
    try:
        _ = exact_sql(spark, f"SELECT IDENTIFIER({expression}){place}", values).schema
    except ParseException:
        raise InvalidOption(option="IDENTIFIER", value=expression, reason="its value is not a name.") from None
    if name is None:
        raise InvalidOption(option="IDENTIFIER", value=expression, reason="its value is not a name.")
    return name


def _name_in(said: str) -> Path | None:
    try:
        return computed_names.name_in(said)
    except SqlSyntaxError:
        return None


def _nested_struct_sql(path: Path) -> str:
    """A value with these members in each other."""
    members = [each.replace("\\", "\\\\").replace("'", "\\'") for each in path]
    return "".join(f"named_struct('{each}', " for each in members) + "1" + ")" * len(members)


# -- EXECUTE IMMEDIATE -------------------------------------------------------------------------------------------------


def _resolve_immediate(
    spark: SparkSession,
    found: Asked,
    inner: Immediate,
    tokens: list[Token],
    matters: Matters,
    filled: Callable[[str], str],
) -> Asked | None:
    """The statement that EXECUTE IMMEDIATE runs; None where its text is NULL, which Spark refuses."""
    known = markers(tokens, found.args)

    def within(start: int, stop: int) -> list[Marker]:
        return [each for each in known if start <= each.start < stop]

    said = _constant_text(found.text, inner.text, inner.said, within(*inner.text))
    if said is None:
        values = _values(within(*inner.text), found.args)
        (row,) = exact_sql(spark, f"SELECT ({found.text[slice(*inner.text)]})", values).collect()
        said = row[0]
    if said is None:
        return None
    if not isinstance(said, str):
        value = found.text[slice(*inner.text)]
        raise InvalidOption(option="EXECUTE IMMEDIATE", value=value, reason="it takes a statement as a text.")
    text = filled(said)
    into = found.into if inner.into is None else found.text[slice(*inner.into)]
    if not (matters(text) or computed_names.may_be_computed(text)):
        return Asked(text, None, into)
    return Asked(text, _using(spark, found, inner, within, by_place=_has_places(text)), into)


def _has_places(text: str) -> bool:
    """Whether the parameters of a statement are told by their places, as ``?``."""
    return any(token.token_type in (TokenType.PLACEHOLDER, TokenType.DQMARK) for token in _tokens(text) or ())


def _using(
    spark: SparkSession, found: Asked, inner: Immediate, within: Callable[[int, int], list[Marker]], *, by_place: bool
) -> Any:
    """The values behind USING: by name, or a list. A variable alone has its own name.

    Raises:
        InvalidOption: a value is of a type that no parameter has here.
    """
    if not inner.using:
        return None
    start, stop = inner.using[0][0], inner.using[-1][1]
    texts = [found.text[first:last] for first, last, _ in inner.using]
    values = _values(within(start, stop), found.args)
    rows = exact_sql(spark, f"SELECT {', '.join(f'({each})' for each in texts)}", values)
    for text, each in zip(texts, rows.schema, strict=True):
        if isinstance(each.dataType, T.TimestampNTZType):
            raise InvalidOption(option="USING", value=text, reason="a TIMESTAMP_NTZ is no type of a parameter here.")
    (row,) = rows.collect()
    if by_place:
        return list(row)
    names = [name or text.rpartition(".")[2] for text, (_, _, name) in zip(texts, inner.using, strict=True)]
    return dict(zip(names, row, strict=True))


# -- scripts -----------------------------------------------------------------------------------------------------------


def _of_script(text: str, tokens: list[Token]) -> str:
    """A script as its names are held against those of tables: what EXECUTE IMMEDIATE and IDENTIFIER say stands there.

    Raises:
        NotBuilt: it computes a statement, or a name that could be one of ours and lost by it.
    """
    while said := computed_names.immediates(text, tokens):
        for i, inner in said:
            if inner is None:
                place = excerpt(text, tokens[i].start, tokens[i + 1].end + 1)
                raise NotBuilt(what="EXECUTE IMMEDIATE of a computed text in a script", instead=_ADVICE, excerpt=place)
        edits = [Edit(tokens[i].start, tokens[i + 2].end + 1, f"{inner}\n") for i, inner in said]
        text = apply_edits(text, 0, len(text), edits)
        tokens = tokenize(text)
    edits, changes = [], computed_names.changes_names(tokens)
    for each in computed_names.clauses(text, tokens):
        name = None if each.said is None else computed_names.simple_name(each.said)
        if name is not None:
            edits.append(computed_names.name_edit(each, name))
        elif changes[each.first]:
            place = excerpt(text, each.start, each.stop)
            raise NotBuilt(what="IDENTIFIER of a computed name in a script", instead=_ADVICE, excerpt=place)
    return apply_edits(text, 0, len(text), edits)
