"""Evaluates names and statements that are computed: IDENTIFIER(…) and EXECUTE IMMEDIATE.

Spark evaluates every expression that is no plain string literal, and decides whether it is a constant. Guarantees: a
result of `evaluate_computed_names` contains no computed name and no computed statement, except for names that are only
read and that Spark resolves itself. If an expression cannot be evaluated and its statement could drop or replace a
name, the statement is refused.
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
from anabranch._sql.grammar.computed_names import IdentifierClause, Immediate
from anabranch._sql.grammar.parameters import Marker, arguments_for, markers
from anabranch._sql.grammar.parts import Path
from anabranch._sql.grammar.qualifiers import Edit, apply_edits, between
from anabranch.errors import InvalidOption, NotBuilt, SqlSyntaxError

_ADVICE = "Write it as a literal, or run the statements of the script one after the other."
Matters = Callable[[str], bool]


@dataclass(frozen=True)
class EvaluatedStatement:
    """A statement without computed parts, with the values of its parameters.

    Attributes:
        into: SQL text of the variables that EXECUTE IMMEDIATE … INTO sets from the statement's rows.
    """

    text: str
    args: Any
    into: str | None = None


def evaluate_computed_names(
    spark: SparkSession, text: str, args: Any, matters: Matters, filled: Callable[[str], str]
) -> EvaluatedStatement:
    """Evaluate the computed names and statements in a statement.

    Args:
        matters: whether a statement could be one of ours, judged by its text.
        filled: fills ``${…}`` into a text, as Spark does in the text of EXECUTE IMMEDIATE.

    Raises:
        AnalysisException: Spark's: an expression is no constant string. SqlSyntaxError: a statement cannot be parsed.
        NotBuilt: a script computes a statement, or a name that could be one of ours.
    """
    request = EvaluatedStatement(text, args)
    while computed_names.may_be_computed(request.text):
        tokens = _try_tokenize(request.text)
        if tokens is None:
            break
        if not computed_names.only_reads(tokens):
            check_quotes(spark, request.text)
        if computed_names.is_script(tokens):
            return replace(request, text=_expand_script(request.text, tokens))
        inner = computed_names.immediate(request.text, tokens)
        if inner is None:
            return _substitute_names(spark, request, tokens)
        executed = _resolve_immediate(spark, request, inner, tokens, matters, filled)
        if executed is None:
            break
        request = executed
    return request


def _try_tokenize(text: str) -> list[Token] | None:
    """Tokenize a statement; None if only Spark may be able to parse it and it changes no names."""
    try:
        return tokenize(text)
    except SqlSyntaxError:
        first = text.split(maxsplit=1)[0].upper()
        if first in ("SELECT", "WITH", "FROM", "VALUES"):
            return None
        raise


def set_from(request: EvaluatedStatement) -> EvaluatedStatement:
    """Return the statement that sets the variables of INTO from the rows of a query."""
    tokens = tokenize(request.text)
    while tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    query = request.text[: tokens[-1].end + 1]
    return EvaluatedStatement(f"SET VARIABLE ({request.into}) = (\n{query}\n)", request.args)


# -- IDENTIFIER(…) -----------------------------------------------------------------------------------------------------


def _substitute_names(spark: SparkSession, request: EvaluatedStatement, tokens: list[Token]) -> EvaluatedStatement:
    """Replace each IDENTIFIER(…) by the name to which it evaluates."""
    parameters, edits, used_starts = markers(tokens, request.args), [], set[int]()
    for clause in computed_names.clauses(request.text, tokens):
        used_markers = between(parameters, clause.start, clause.stop)
        name = _resolve_name(spark, request, clause, used_markers, reads=computed_names.only_reads(tokens))
        if name is not None:
            edits.append(computed_names.name_edit(clause, name))
            used_starts |= {marker.start for marker in used_markers}
    text, args = apply_edits(request.text, 0, len(request.text), edits), request.args
    if used_starts and args is not None and not isinstance(args, Mapping):
        args = _parameter_values([marker for marker in parameters if marker.start not in used_starts], args)
    return replace(request, text=text, args=args)


def _resolve_name(
    spark: SparkSession,
    request: EvaluatedStatement,
    clause: IdentifierClause,
    used_markers: Sequence[Marker],
    *,
    reads: bool,
) -> Path | None:
    """Evaluate a clause to a name; None if it is no IDENTIFIER clause, or Spark is to report the error."""
    literal_name = _constant_text(request.text, clause.inner, clause.said, used_markers)
    if literal_name is not None and (name := computed_names.simple_name(literal_name)) is not None:
        return name
    expression, values = request.text[slice(*clause.inner)], _parameter_values(used_markers, request.args)
    try:
        return _evaluate_name(spark, expression, values)
    except ParseException:
        return None  # a table named IDENTIFIER, followed by a list of columns
    except AnalysisException:
        if reads:
            return None
        raise


def _constant_text(text: str, span: tuple[int, int], plain: str | None, used_markers: Sequence[Marker]) -> str | None:
    """Return the value of an expression that is one plain string literal or one string parameter; else None."""
    is_marker = len(used_markers) == 1 and (used_markers[0].start, used_markers[0].stop) == span
    return used_markers[0].value if is_marker and isinstance(used_markers[0].value, str) else plain


def _parameter_values(used_markers: Sequence[Marker], args: Any) -> Any:
    """Return the values of these parameters, as ``spark.sql`` takes them."""
    values = arguments_for(used_markers, args)
    return list(values) if isinstance(values, tuple) else values


def _evaluate_name(spark: SparkSession, expression: str, values: Any) -> Path:
    """Evaluate an expression to a name in Spark, which also reads a column of that name through IDENTIFIER.

    Raises:
        ParseException: it is no expression. AnalysisException: Spark's: it is no constant string, or no name.
    """
    (row,) = exact_sql(spark, f"SELECT ({expression})", values).collect()
    name = _try_parse_name(row[0]) if isinstance(row[0], str) else None
    place = f" FROM (SELECT {_nested_struct_sql(name[1:])} AS {quote_identifier(name[0])})" if name else ""
    try:
        _ = exact_sql(spark, f"SELECT IDENTIFIER({expression}){place}", values).schema
    except ParseException:
        raise InvalidOption(option="IDENTIFIER", value=expression, reason="its value is not a name.") from None
    if name is None:
        raise InvalidOption(option="IDENTIFIER", value=expression, reason="its value is not a name.")
    return name


def _try_parse_name(name: str) -> Path | None:
    try:
        return computed_names.name_in(name)
    except SqlSyntaxError:
        return None


def _nested_struct_sql(path: Path) -> str:
    """Return SQL of a struct that nests these fields in one another."""
    members = [part.replace("\\", "\\\\").replace("'", "\\'") for part in path]
    return "".join(f"named_struct('{member}', " for member in members) + "1" + ")" * len(members)


# -- EXECUTE IMMEDIATE -------------------------------------------------------------------------------------------------


def _resolve_immediate(
    spark: SparkSession,
    request: EvaluatedStatement,
    inner: Immediate,
    tokens: list[Token],
    matters: Matters,
    filled: Callable[[str], str],
) -> EvaluatedStatement | None:
    """Return the statement that EXECUTE IMMEDIATE runs; None if its text is NULL, which Spark refuses."""
    parameters = markers(tokens, request.args)

    def within(start: int, stop: int) -> list[Marker]:
        return [marker for marker in parameters if start <= marker.start < stop]

    statement = _constant_text(request.text, inner.text, inner.said, within(*inner.text))
    if statement is None:
        values = _parameter_values(within(*inner.text), request.args)
        (row,) = exact_sql(spark, f"SELECT ({request.text[slice(*inner.text)]})", values).collect()
        statement = row[0]
    if statement is None:
        return None
    if not isinstance(statement, str):
        value = request.text[slice(*inner.text)]
        raise InvalidOption(option="EXECUTE IMMEDIATE", value=value, reason="it takes a statement as a string.")
    text = filled(statement)
    into = request.into if inner.into is None else request.text[slice(*inner.into)]
    if not (matters(text) or computed_names.may_be_computed(text)):
        return EvaluatedStatement(text, None, into)
    return EvaluatedStatement(
        text, _using_values(spark, request, inner, within, by_place=_has_positional_parameters(text)), into
    )


def _has_positional_parameters(text: str) -> bool:
    """Whether a statement has positional parameters, as ``?``."""
    return any(token.token_type in (TokenType.PLACEHOLDER, TokenType.DQMARK) for token in _try_tokenize(text) or ())


def _using_values(
    spark: SparkSession,
    request: EvaluatedStatement,
    inner: Immediate,
    within: Callable[[int, int], list[Marker]],
    *,
    by_place: bool,
) -> Any:
    """Evaluate the values of USING, to a list or by name; a variable without an alias has its own name.

    Raises:
        InvalidOption: a value has a type that parameters do not support.
    """
    if not inner.using:
        return None
    start, stop = inner.using[0][0], inner.using[-1][1]
    texts = [request.text[first:last] for first, last, _ in inner.using]
    values = _parameter_values(within(start, stop), request.args)
    rows = exact_sql(spark, f"SELECT {', '.join(f'({expression})' for expression in texts)}", values)
    for text, value_field in zip(texts, rows.schema, strict=True):
        if isinstance(value_field.dataType, T.TimestampNTZType):
            reason = (
                "TIMESTAMP_NTZ is not supported as the type of a parameter: pass a text, and write "
                "CAST(? AS TIMESTAMP_NTZ)."
            )
            raise InvalidOption(option="USING", value=text, reason=reason)
    (row,) = rows.collect()
    if by_place:
        return list(row)
    names = [name or text.rpartition(".")[2] for text, (_, _, name) in zip(texts, inner.using, strict=True)]
    return dict(zip(names, row, strict=True))


# -- scripts -----------------------------------------------------------------------------------------------------------


def _expand_script(text: str, tokens: list[Token]) -> str:
    """Replace EXECUTE IMMEDIATE and IDENTIFIER in a script by their literals, so that its names can be compared.

    Raises:
        NotBuilt: the script computes a statement, or a name that it may drop or replace.
    """
    while immediates := computed_names.immediates(text, tokens):
        for i, inner in immediates:
            if inner is None:
                place = excerpt(text, tokens[i].start, tokens[i + 1].end + 1)
                raise NotBuilt(what="EXECUTE IMMEDIATE of a computed text in a script", instead=_ADVICE, excerpt=place)
        edits = [Edit(tokens[i].start, tokens[i + 2].end + 1, f"{inner}\n") for i, inner in immediates]
        text = apply_edits(text, 0, len(text), edits)
        tokens = tokenize(text)
    edits, changes = [], computed_names.changes_names(tokens)
    for clause in computed_names.clauses(text, tokens):
        name = None if clause.said is None else computed_names.simple_name(clause.said)
        if name is not None:
            edits.append(computed_names.name_edit(clause, name))
        elif changes[clause.first]:
            place = excerpt(text, clause.start, clause.stop)
            raise NotBuilt(what="IDENTIFIER of a computed name in a script", instead=_ADVICE, excerpt=place)
    return apply_edits(text, 0, len(text), edits)
