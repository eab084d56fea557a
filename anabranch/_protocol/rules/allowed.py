"""Checks which rules of a table may be evaluated, with errors that name the rule; `texts` checks the expressions.

Pure. Guarantee: only a rule of allowed parts is returned.
"""

from __future__ import annotations

from anabranch._protocol.actions import Metadata
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.rules.clocks import has_moments
from anabranch._protocol.rules.rule_expressions import CheckedExpression, read
from anabranch._protocol.rules.table_rules import Check, Generated, Rules, rules_of
from anabranch._protocol.schema.types import Struct
from anabranch.errors import InvalidConstraintName, RuleRefused, UnreadableExpression

_RESERVED = frozenset({"__CHAR_VARCHAR_STRING_LENGTH_CHECK__", "GENERATED COLUMN", "NOT NULL"})
"""Delta's own names for rules that are not constraints."""


def read_check(check: Check, schema: Struct, table: str) -> CheckedExpression:
    """A constraint or invariant over these columns, in the form in which it may be evaluated.

    Raises:
        RuleRefused: it may not be evaluated.
        UnreadableExpression: it ends too early.
    """
    return _read(f"constraint {check.name}", check.expression, schema, table, clock=True)


def read_generated(rule: Generated, schema: Struct, table: str) -> CheckedExpression:
    """Like `read_check`, for the expression of a generated column."""
    field = schema.find(rule.column)
    moment = field is not None and has_moments(field.type)
    return _read(f"generated column {rule.column}", rule.expression, schema, table, clock=False, gives_moment=moment)


def read_default(column: str, text: str, table: str) -> CheckedExpression:
    """Like `read_check`, for the default of a column, which may not use columns."""
    return _read(f"default of {column}", text, Struct(), table, clock=True, clock_texts=True)


def check_allowed(rules: Rules, schema: Struct, table: str) -> None:
    """Raises RuleRefused unless all rules of a table may be evaluated, UnreadableExpression if one ends too early;
    called before anything is written.
    """
    for check in rules.checks:
        read_check(check, schema, table)
    for generated in rules.generated:
        read_generated(generated, schema, table)
    for column, text in rules.defaults.items():
        read_default(column, text, table)


def check_name(check: Check, table: str) -> None:
    """Raises `InvalidConstraintName` if Delta reserves the name of a new constraint."""
    if check.name.upper() in _RESERVED:
        raise InvalidConstraintName(constraint=check.name, table=table)


def check_metadata(metadata: Metadata, table: str) -> None:
    """Like `check_allowed`, for the rules in a table's metadata; called by every command that writes rows."""
    check_allowed(rules_of(metadata), metadata.schema, table)


def refusal(rule: str, text: str, table: str, found: str, reason: str) -> RuleRefused:
    """The error for a refused rule."""
    return RuleRefused(rule=rule, expression=text, table=table, found=found, reason=reason)


def _read(rule: str, text: str, columns: Struct, table: str, **kind: bool) -> CheckedExpression:
    try:
        return read(text, columns, **kind)
    except ParseError as error:
        if error.ends:
            reason = f"the {rule} ends where {error.reason.removesuffix(' there')}."
            raise UnreadableExpression(expression=text, table=table, reason=reason) from None
        if error.unknown is not None:  # more likely a misspelled name than an attack
            facts = {"column": error.unknown, "delta_condition": "UNRESOLVED_COLUMN.WITH_SUGGESTION"}
            raise RuleRefused(**facts, **refusal(rule, text, table, error.found, error.reason).facts) from None
        raise refusal(rule, text, table, error.found, error.reason) from None
