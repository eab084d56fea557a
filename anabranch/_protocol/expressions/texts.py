"""Entries for texts, whose characters are code points. A text that Spark and Arrow might treat differently is left to
Spark: letters that they fold differently, and patterns with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.patterns import LINE_ENDS, Pattern, pattern_of
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    add,
    check_type,
    constant_of,
    function,
    of_values,
)
from anabranch._protocol.schema.types import INTEGERS, VOID
from anabranch._protocol.unsupported import Unsupported

_UNCERTAIN_CASE = re.compile(
    r"[^\x00-\u024f\u0370-\u03a2\u03a4-\u03c1\u03c3-\u052f\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7a3]|[\u0130\u019b\u03f4]"
)
"""Letters for which no test shows that Spark and Python fold the case alike, whichever library Spark is set to; a small
sigma has two forms.
"""


def _case_function(fold: Callable[[Datum], Datum], python: Callable[[str], str]) -> Callable[[Datum], Datum]:
    def folding(values: Datum) -> Datum:
        if pc.all(pc.string_is_ascii(values), min_count=0).as_py():
            return fold(values)
        return _map_texts(values, python)

    return folding


def _map_texts(values: Datum, python: Callable[[str], str]) -> Datum:
    return pa.array(
        [None if text is None else python(_require_foldable(text)) for text in values.to_pylist()], pa.string()
    )


def _require_foldable(text: str) -> str:
    if _UNCERTAIN_CASE.search(text):
        raise Unsupported("a text has letters that Spark and Python may fold differently")
    return text


_lower = function("lower, lcase", "string", gives="string")(_case_function(pc.ascii_lower, str.lower))
function("upper, ucase", "string", gives="string")(_case_function(pc.ascii_upper, str.upper))


@function("initcap", "string", gives="string")
def _initcap(values: Datum) -> Datum:
    return _map_texts(values, _with_capitals)


def _with_capitals(text: str) -> str:
    """Only a blank separates words. By a setting of Spark a letter may only become one letter."""
    capitalized = " ".join(word.capitalize() for word in text.split(" "))
    if len(capitalized) != len(text):
        raise Unsupported("a word begins with a letter whose upper case is several letters")
    return capitalized


@function("length, len, char_length, character_length", "string", gives="integer")
def _length(values: Datum) -> Datum:
    return pc.utf8_length(values)


@function("ascii", "string", gives="integer")
def _ascii(values: Datum) -> Datum:
    """The code point of the first letter; 0 for an empty text."""
    letters = pc.utf8_slice_codeunits(values, 0, 1).to_pylist()
    return pa.array([None if letter is None else ord(letter) if letter else 0 for letter in letters], pa.int32())


@function("octet_length", "string", gives="integer")
def _octet_length(values: Datum) -> Datum:
    return pc.binary_length(values)


@function("reverse", "string", gives="string")
def _reverse(values: Datum) -> Datum:
    return pc.utf8_reverse(values)


# -- parts -------------------------------------------------------------------------------------------------------------


@function("substring, substr", "string =integer ?=integer", gives="string")
def _substring(values: Datum, first: int, count: int = 1 << 31) -> Datum:
    """From a position on, counted from 1, or from the end if it is negative."""
    if count <= 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    start = first - 1 if first > 0 else first
    stop = start + count
    return pc.utf8_slice_codeunits(values, start, None if start < 0 <= stop else stop)


@function("left", "string =integer", gives="string")
def _left(values: Datum, count: int) -> Datum:
    return _substring(values, 1, count)


@function("right", "string =integer", gives="string")
def _right(values: Datum, count: int) -> Datum:
    return _substring(values, -count) if count > 0 else _substring(values, 1, 0)


def _trim_blanks_with(trim: Callable[..., Datum]) -> Callable[..., Datum]:
    def trim_blanks(values: Datum) -> Datum:
        return trim(values, characters=" ")

    return trim_blanks


function("trim, btrim", "string", gives="string")(_trim_blanks_with(pc.utf8_trim))
function("ltrim", "string", gives="string")(_trim_blanks_with(pc.utf8_ltrim))
function("rtrim", "string", gives="string")(_trim_blanks_with(pc.utf8_rtrim))


def _split_part_fit(arguments: Sequence[Argument]) -> Fit:
    """Spark refuses the part number 0 as it plans, also where no row comes to it."""
    if len(arguments) != 3:
        raise ArgumentsNotSupported("the arguments must be a text, a separator and a number")
    check_type(arguments[0], "string")
    separator, number = constant_of(arguments[1], "string"), constant_of(arguments[2], "integer")
    if not separator or number == 0:
        raise ArgumentsNotSupported("the separator is empty, or the number of the part is 0")
    return Fit("string", ("string",), (separator, number))


def _split_part(values: Datum, separator: str, number: int) -> Datum:
    parts = [None if text is None else text.split(separator) for text in values.to_pylist()]
    at = number - 1 if number > 0 else number
    return pa.array(
        [None if fields is None else fields[at] if -len(fields) <= at < len(fields) else "" for fields in parts],
        pa.string(),
    )


add("split_part", _split_part_fit, of_values(_split_part))


_MAX_BYTES = 256 << 20


def _bytes_in(values: Datum) -> int:
    return pc.sum(pc.binary_length(values)).as_py() or 0


def _check_bytes(count: int) -> None:
    """Raises Unsupported: the texts would take more than `_MAX_BYTES` bytes."""
    if count > _MAX_BYTES:
        raise Unsupported("texts become too long")


# -- other texts -------------------------------------------------------------------------------------------------------


@function("replace", "string =string ?=string", gives="string")
def _replace(values: Datum, searched: str, other: str = "") -> Datum:
    if not searched:
        return values
    _check_bytes(_bytes_in(values) * max(len(other), 1))
    return pc.replace_substring(values, searched, other)


@function("translate", "string =string =string", gives="string")
def _translate(values: Datum, letters: str, others: str) -> Datum:
    """Replace each letter by the one at the same place of ``others``; the first occurrence counts, and a letter without
    a replacement is removed.
    """
    if "\0" in others:
        raise Unsupported("some versions of Spark do not take a NUL for a letter")
    pairs = zip_longest(letters, others[: len(letters)])
    table = {ord(letter): other for letter, other in reversed([*pairs])}
    return pa.array([None if text is None else text.translate(table) for text in values.to_pylist()], pa.string())


def _padding(pad: Callable[..., Datum]) -> Callable[..., Datum]:
    def pad_texts(values: Datum, width: int, filler: str = " ") -> Datum:
        if len(filler) != 1:
            raise Unsupported("a text is padded by more than one character")
        _check_bytes(len(values) * width * 4)
        return pc.utf8_slice_codeunits(pad(values, max(width, 0), filler), 0, max(width, 0))

    return pad_texts


function("lpad", "string =integer ?=string", gives="string")(_padding(pc.utf8_lpad))
function("rpad", "string =integer ?=string", gives="string")(_padding(pc.utf8_rpad))


@function("repeat", "string =integer", gives="string")
def _repeat(values: Datum, times: int) -> Datum:
    _check_bytes(_bytes_in(values) * times)
    return pc.binary_repeat(values, max(times, 0))


def _texts_fit(arguments: Sequence[Argument]) -> Fit:
    """Casts all arguments to texts, like CONCAT."""
    if not arguments or any(argument.type not in ("string", *INTEGERS, VOID) for argument in arguments):
        raise ArgumentsNotSupported("the arguments must be texts or whole numbers")
    if not any(argument.type == "string" for argument in arguments):
        raise ArgumentsNotSupported("no argument is a text")
    return Fit("string", ("string",) * len(arguments))


def _concat(*texts: Datum) -> Datum:
    return pc.binary_join_element_wise(*texts, "")


add("concat, ||", _texts_fit, of_values(_concat))


def _concat_ws(separator: Datum, first: Datum, *others: Datum) -> Datum:
    """Skips NULL texts; Arrow's own option would also skip rows in which all are NULL."""
    joined, is_begun = pc.coalesce(first, ""), pc.is_valid(first)
    for other in others:
        between = pc.if_else(pc.and_(is_begun, pc.is_valid(other)), separator, "")
        joined = pc.binary_join_element_wise(joined, between, pc.coalesce(other, ""), "")
        is_begun = pc.or_(is_begun, pc.is_valid(other))
    return joined


def _concat_ws_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) < 2 or arguments[0].constant is None or arguments[0].constant[0] is None:
        raise ArgumentsNotSupported("the separator must be constant")
    if any(argument.type != "string" for argument in arguments):
        raise ArgumentsNotSupported("the arguments must be texts")
    return Fit("string", ("string",) * len(arguments))


add("concat_ws", _concat_ws_fit, of_values(_concat_ws))


# -- searching ---------------------------------------------------------------------------------------------------------


@function("startswith", "string =string", gives="boolean")
def _starts_with(values: Datum, prefix: str) -> Datum:
    return pc.starts_with(values, prefix)


@function("endswith", "string =string", gives="boolean")
def _ends_with(values: Datum, suffix: str) -> Datum:
    return pc.ends_with(values, suffix)


@function("contains", "string =string", gives="boolean")
def _contains(values: Datum, searched: str) -> Datum:
    return pc.match_substring(values, searched)


@function("instr", "string =string", gives="integer")
def _instr(values: Datum, searched: str) -> Datum:
    """The position of a text in another, counted from 1; 0 if it is absent."""
    positions = [None if text is None else text.find(searched) + 1 for text in values.to_pylist()]
    return pa.array(positions, pa.int32())


def _locate_fit(arguments: Sequence[Argument]) -> Fit:
    if not 2 <= len(arguments) <= 3:
        raise ArgumentsNotSupported("it takes a text to find, the text to search, and a position to start at")
    check_type(arguments[1], "string")
    first = constant_of(arguments[2], "integer") if len(arguments) == 3 else 1
    takes = ("string", "string", "integer")[: len(arguments)]
    return Fit("integer", takes, (constant_of(arguments[0], "string"), first))


def _locate(values: Datum, searched: str, first: int) -> Datum:
    """Like `_instr`, from a position on; an empty text is found at position 1, whatever the start."""
    if not searched or first < 1:
        position = 0 if first < 1 else 1
        return pc.if_else(pc.is_valid(values), pa.scalar(position, pa.int32()), pa.scalar(None, pa.int32()))
    places = [None if text is None else text.find(searched, first - 1) + 1 for text in values.to_pylist()]
    return pa.array(places, pa.int32())


add("locate, position", _locate_fit, lambda arguments, gives, options, site: _locate(arguments[1], *options))


def _like(values: Datum, pattern: str) -> Datum:
    return pc.match_substring_regex(values, like_regex(pattern))


def _like_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type not in ("string", VOID):
        raise ArgumentsNotSupported("the arguments must be a text and a pattern without ESCAPE")
    pattern = arguments[1].constant
    if arguments[1].type != "string" or pattern is None or pattern[0] is None or "\\" in pattern[0]:
        raise ArgumentsNotSupported("the pattern must be constant and have no escapes")
    return Fit("boolean", ("string",), (pattern[0],))


def like_regex(pattern: str) -> str:
    """Translate a LIKE pattern without escapes to a regular expression."""
    signs = {"%": ".*", "_": "."}
    return "(?s)^" + "".join(signs.get(letter) or _escape_letter(letter) for letter in pattern) + r"\z"


def _escape_letter(letter: str) -> str:
    return letter if letter.isalnum() or not letter.isascii() else f"\\x{ord(letter):02x}"


def _ilike(values: Datum, pattern: str) -> Datum:
    """Like Spark, compares both in lower case."""
    return _like(_lower(values), _lower(pa.array([pattern]))[0].as_py())


add("like", _like_fit, of_values(_like))
add("ilike", _like_fit, of_values(_ilike))


def check_searched(values: Datum, pattern: Pattern) -> None:
    """Raises an error where Java would read a text, or its end, differently."""
    values.validate(full=True)
    if pattern.has_end and any(pc.any(pc.ends_with(values, end)).as_py() for end in LINE_ENDS):
        raise Unsupported("a text ends with the end of a line")


def _rlike_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type not in ("string", VOID):
        raise ArgumentsNotSupported("the arguments must be a text and a pattern")
    return Fit("boolean", ("string",), (pattern_of(constant_of(arguments[1], "string")),))


def _rlike(values: Datum, pattern: Pattern) -> Datum:
    check_searched(values, pattern)
    return pc.match_substring_regex(values, pattern.regular)


add("rlike, regexp, regexp_like", _rlike_fit, of_values(_rlike))


def nonempty_pattern(argument: Argument) -> Pattern:
    """A constant pattern for repeated matches.

    Raises ArgumentsNotSupported: it matches the empty text, after which Java and RE2 continue at different positions.
    """
    pattern = pattern_of(constant_of(argument, "string"))
    if pattern.finds_nothing:
        raise ArgumentsNotSupported("a pattern that matches the empty text")
    return pattern


def _regexp_replace_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 3 or arguments[0].type not in ("string", VOID):
        raise ArgumentsNotSupported("the arguments must be a text and a pattern")
    pattern, other = nonempty_pattern(arguments[1]), constant_of(arguments[2], "string")
    if {*"$\\"} & {*other}:
        raise ArgumentsNotSupported("the replacement must be a text without references")
    return Fit("string", ("string",), (pattern, other))


def _regexp_replace(values: Datum, pattern: Pattern, other: str) -> Datum:
    check_searched(values, pattern)
    _check_bytes(_bytes_in(values) * max(len(other.encode()), 1))
    return pc.replace_substring_regex(values, pattern.regular, other)


add("regexp_replace", _regexp_replace_fit, of_values(_regexp_replace))
