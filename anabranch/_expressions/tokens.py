"""Tokens of a text: the functions that it calls, its subqueries, and the clock.

Works on tokens, as Spark would read them, and never on a tree, so that a parser's interpretation hides nothing.
"""

from __future__ import annotations

import datetime as dt
import re

from sqlglot.errors import SqlglotError

from anabranch._expressions.context import Context
from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch._protocol.schema.types import Struct
from anabranch.errors import InvalidCondition, NotBuilt, UnreadableExpression
from anabranch.errors.inputs import check_text

DETERMINISTIC = frozenset(
    """
    abs acos acosh add_months aes_decrypt aggregate array array_append array_compact array_contains array_distinct
    array_except array_insert array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh base64
    between bigint bin binary bit_count bit_get bit_length boolean bround btrim cardinality case cast cbrt ceil
    ceiling char char_length character_length chr coalesce concat concat_ws contains conv convert_timezone cos cosh
    cot crc32 csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double element_at elt
    encode endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float floor forall
    format_number format_string from_csv from_json from_unixtime from_utc_timestamp get get_json_object getbit
    greatest hash hex hour hypot if ifnull ilike in initcap instr int is_valid_utf8 is_variant_null isnan isnotnull
    isnull json_array_length json_object_keys last_day lcase least left len length levenshtein like ln locate log
    log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries
    map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname
    months_between named_struct nanvl negative next_day not nullif nullifzero nvl nvl2 octet_length overlay parse_json
    parse_url pmod position positive pow power printf quarter radians reduce regexp regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike
    round rpad rtrim sec second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum
    sin sinh size slice smallint sort_array soundex space split split_part sqrt startswith str_to_map string struct
    substr substring substring_index tan tanh timestamp timestamp_micros timestamp_millis timestamp_seconds
    timestampadd timestampdiff tinyint to_binary to_char to_csv to_date to_json to_number to_timestamp
    to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar to_variant_object transform
    transform_keys transform_values translate trim trunc try_add try_cast try_divide try_element_at try_make_timestamp
    try_mod try_multiply try_parse_json try_parse_url try_subtract try_to_binary try_to_number try_to_timestamp
    try_url_decode try_validate_utf8 try_variant_get typeof ucase unbase64 unhex unix_date unix_micros unix_millis
    unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 variant_get weekday weekofyear when
    width_bucket xxhash64 year zeroifnull zip_with
    """.split()  # noqa: SIM905
)
"""Built-in functions whose value depends only on their arguments and the session's settings."""


OPERATORS = frozenset(
    {"and", "or", "not", "in", "like", "ilike", "rlike", "between", "is", "when", "then", "else", "case", "any", "all"}
)
"""Words that may stand before a parenthesis and are not functions."""

CLOCKS = {"current_timestamp": "timestamp", "now": "timestamp", "current_date": "date", "curdate": "date"}
"""Functions that are fixed to one value when a command starts."""

BARE_FUNCTIONS = frozenset(
    """current_time current_user session_user user localtimestamp current_catalog current_database current_schema
    current_timezone""".split()  # noqa: SIM905
)
"""Functions that Spark calls without parentheses, too."""

SPECIAL_MOMENTS = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Texts that Spark replaces by the current time or day when they become a date or a timestamp."""

_QUERY_WORDS = frozenset({"select", "from", "table", "values", "with", "map", "reduce"})
_SCRIPT_WORDS = frozenset({"map", "reduce"})
"""Words that open a query with a script, ``(MAP a USING 'script' FROM t)``, and are functions as well."""


def tokens_of(text: TokenizedText, context: Context) -> list[Token]:
    """The tokens of a text.

    Raises:
        InvalidCondition: it is empty, cannot be read, or holds more than one statement.
    """
    check_text("An expression", text.text)
    try:
        tokens = text.tokens if text.raw else []
    except SqlglotError:
        reason = "a text, a name in backticks or a comment in it does not end."
        raise UnreadableExpression(expression=text.text, table=context.table, reason=reason) from None
    if not tokens:
        raise UnreadableExpression(expression=repr(text.text), table=context.table, reason="it is empty.")
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise InvalidCondition(expression=text.text, table=context.table, reason="it holds a semicolon.")
    return tokens


def calls(tokens: list[Token]) -> frozenset[str]:
    """The called functions: lower-case names, ``f()`` for a call without arguments, ``.f`` for another schema's."""
    names = set()
    for i, token in enumerate(tokens):
        name = token.text.lower()
        if token.token_type == TokenType.STRING:
            words = name.split()
            names |= {f"'{words[0]}'"} if words and words[0] in SPECIAL_MOMENTS else set()
        elif _is(tokens, i + 1, TokenType.L_PAREN) and re.fullmatch(r"[a-z_]\w*", name) and name not in OPERATORS:
            prefix = "." if _is(tokens, i - 1, TokenType.DOT) else ""
            names.add(prefix + name + ("()" if _is(tokens, i + 2, TokenType.R_PAREN) else ""))
        elif name in CLOCKS or name in BARE_FUNCTIONS:
            names.add(name)
    return frozenset(names)


def find_columns(tokens: list[Token], schema: Struct) -> frozenset[str]:
    """The columns whose name occurs as a word, even where sqlglot takes it for a keyword or a function."""
    words = [token.text for token in tokens if token.token_type != TokenType.STRING]
    fields = [schema.find(word) for word in words]
    return frozenset(field.name for field in fields if field is not None)


def asks_a_query(tokens: list[Token]) -> bool:
    """Whether there is a subquery: SELECT anywhere, or a word that opens a query directly after a parenthesis."""
    has_script = any(token.text.lower() == "using" for token in tokens)
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.SELECT:
            return True
        name = token.text.lower()
        opens = _is(tokens, i - 1, TokenType.L_PAREN) and name in _QUERY_WORDS
        opens = opens and (name not in _SCRIPT_WORDS or has_script or not _is(tokens, i + 1, TokenType.L_PAREN))
        if opens and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and not _is_operand(tokens, i):
            return True
    return False


def has_window(tokens: list[Token]) -> bool:
    """Whether there is an OVER, which makes a value depend on other rows."""
    return any(token.text.lower() == "over" and _is(tokens, i - 1, TokenType.R_PAREN) for i, token in enumerate(tokens))


def check_and_fix_clock(text: TokenizedText, context: Context) -> TokenizedText:
    """The text with the clock fixed, as the engine gets it; it depends on its own row only.

    Raises:
        InvalidCondition: it is empty, cannot be read, or holds more than one statement.
        NotBuilt: it holds a subquery.
    """
    if asks_a_query(tokens_of(text, context)):
        raise NotBuilt(what=f"a subquery in {text.text}", instead="Collect its result first, and state it as values.")
    return with_fixed_clock(text, context)


def with_fixed_clock(text: TokenizedText, context: Context) -> TokenizedText:
    """The text with the clock's functions replaced by the command's time."""
    pieces, end, tokens = [], 0, text.tokens
    for i, token in enumerate(tokens):
        timestamp, stop = _clock_literal(tokens, i, context), _end_of_call(tokens, i)
        if timestamp is not None and stop is not None:
            pieces += [text.text[end : token.start], timestamp]
            end = stop + 1
    return TokenizedText("".join([*pieces, text.text[end:]])) if pieces else text


def _is(tokens: list[Token], i: int, kind: TokenType) -> bool:
    return 0 <= i < len(tokens) and tokens[i].token_type == kind


def _is_operand(tokens: list[Token], i: int) -> bool:
    """Whether a word is a column that has such a name: an operator or the end follows."""
    if i + 1 >= len(tokens):
        return True
    following = tokens[i + 1]
    return following.text in ("=", "<", ">", "<=", ">=", "<>", "!=", "<=>", "+", "-", "*", "/", "%", ")", ",", ".") or (
        following.text.lower() in OPERATORS
    )


def _clock_literal(tokens: list[Token], i: int, context: Context) -> str | None:
    token = tokens[i]
    kind = CLOCKS.get(token.text.lower())
    if (
        kind is None
        or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        or _is(tokens, i - 1, TokenType.DOT)
    ):
        return None
    if context.schema.find(token.text) is not None:
        return None
    if kind == "date":
        zone = context.tzinfo
        return None if zone is None else f"DATE '{context.now.astimezone(zone).date().isoformat()}'"
    return f"TIMESTAMP '{context.now.astimezone(dt.UTC).strftime('%Y-%m-%d %H:%M:%S.%f')} UTC'"


def _end_of_call(tokens: list[Token], i: int) -> int | None:
    """The last character of ``f()`` or of ``f``; None for a call with arguments, or for ``now`` without parentheses."""
    if not _is(tokens, i + 1, TokenType.L_PAREN):
        return tokens[i].end if tokens[i].text.lower() in ("current_timestamp", "current_date") else None
    return tokens[i + 2].end if _is(tokens, i + 2, TokenType.R_PAREN) else None
