"""Entries for texts, whose characters are code points. Where Spark and Arrow might read one otherwise, it is left to
Spark: letters that one of them folds in another way, and patterns with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.patterns import LINE_ENDS, Pattern, pattern_of
from anabranch._protocol.expressions.table import (
    Datum,
    Fit,
    Given,
    Unfit,
    add,
    check_type,
    constant_of,
    function,
    of_values,
)
from anabranch._protocol.schema.types import INTEGERS, VOID
from anabranch._protocol.unsupported import Unsupported

_FOLDED_OTHERWISE = re.compile(
    r"[^\x00-\u024f\u0370-\u03a2\u03a4-\u03c1\u03c3-\u052f\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7a3]|[\u0130\u019b\u03f4]"
)
"""Letters of which a test has not shown that Spark and Python make the same great and small ones, whichever library
Spark is set to; a small sigma has two forms.
"""


def _case_function(fold: Callable[[Datum], Datum], python: Callable[[str], str]) -> Callable[[Datum], Datum]:
    def folding(values: Datum) -> Datum:
        if pc.all(pc.string_is_ascii(values), min_count=0).as_py():
            return fold(values)
        return _map_texts(values, python)

    return folding


def _map_texts(values: Datum, python: Callable[[str], str]) -> Datum:
    return pa.array(
        [None if each is None else python(_require_foldable(each)) for each in values.to_pylist()], pa.string()
    )


def _require_foldable(text: str) -> str:
    if _FOLDED_OTHERWISE.search(text):
        raise Unsupported("a text has letters that not everybody folds alike")
    return text


_lower = function("lower, lcase", "string", gives="string")(_case_function(pc.ascii_lower, str.lower))
function("upper, ucase", "string", gives="string")(_case_function(pc.ascii_upper, str.upper))


@function("initcap", "string", gives="string")
def _initcap(values: Datum) -> Datum:
    return _map_texts(values, _with_capitals)


def _with_capitals(text: str) -> str:
    """Nothing but a blank separates words. By a setting of Spark's a letter may become one letter only."""
    found = " ".join(word.capitalize() for word in text.split(" "))
    if len(found) != len(text):
        raise Unsupported("a word begins with a letter whose great form is several letters")
    return found


@function("length, len, char_length, character_length", "string", gives="integer")
def _length(values: Datum) -> Datum:
    return pc.utf8_length(values)


@function("ascii", "string", gives="integer")
def _ascii(values: Datum) -> Datum:
    """The number of the first letter, whichever it is; 0 where there is none."""
    firsts = pc.utf8_slice_codeunits(values, 0, 1).to_pylist()
    return pa.array([None if each is None else ord(each) if each else 0 for each in firsts], pa.int32())


@function("octet_length", "string", gives="integer")
def _octet_length(values: Datum) -> Datum:
    return pc.binary_length(values)


@function("reverse", "string", gives="string")
def _reverse(values: Datum) -> Datum:
    return pc.utf8_reverse(values)


# -- parts -------------------------------------------------------------------------------------------------------------


@function("substring, substr", "string =integer ?=integer", gives="string")
def _substring(values: Datum, first: int, count: int = 1 << 31) -> Datum:
    """From a place on, which is counted from 1, or from the end where it is negative."""
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


def _trimming(trim: Callable[..., Datum]) -> Callable[..., Datum]:
    def trim_blanks(values: Datum) -> Datum:
        return trim(values, characters=" ")

    return trim_blanks


function("trim, btrim", "string", gives="string")(_trimming(pc.utf8_trim))
function("ltrim", "string", gives="string")(_trimming(pc.utf8_ltrim))
function("rtrim", "string", gives="string")(_trimming(pc.utf8_rtrim))


@function("split_part", "string =string =integer", gives="string")
def _split_part(values: Datum, separator: str, number: int) -> Datum:
    if not separator or number == 0:
        raise Unsupported("a text is split by nothing, or its part of number 0 is asked for")
    parts = [None if each is None else each.split(separator) for each in values.to_pylist()]
    at = number - 1 if number > 0 else number
    return pa.array(
        [None if each is None else each[at] if -len(each) <= at < len(each) else "" for each in parts], pa.string()
    )


_MOST_BYTES = 256 << 20


def _bytes_in(values: Datum) -> int:
    return pc.sum(pc.binary_length(values)).as_py() or 0


def _check_bytes(count: int) -> None:
    """Raises Unsupported: so many bytes of texts at once are too many."""
    if count > _MOST_BYTES:
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
    """Letters become others at the same place, the first one counts; those without another are left out."""
    if "\0" in others:
        raise Unsupported("to some versions of Spark a NUL is no letter")
    pairs = zip_longest(letters, others[: len(letters)])
    table = {ord(letter): other for letter, other in reversed([*pairs])}
    return pa.array([None if each is None else each.translate(table) for each in values.to_pylist()], pa.string())


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


def _texts_fit(given: Sequence[Given]) -> Fit:
    """All arguments as texts, as CONCAT takes them."""
    if not given or any(each.type not in ("string", *INTEGERS, VOID) for each in given):
        raise Unfit("only texts and whole numbers are put together here")
    if not any(each.type == "string" for each in given):
        raise Unfit("no text is put together")
    return Fit("string", ("string",) * len(given))


def _concat(*texts: Datum) -> Datum:
    return pc.binary_join_element_wise(*texts, "")


add("concat, ||", _texts_fit, of_values(_concat))


def _concat_ws(separator: Datum, first: Datum, *others: Datum) -> Datum:
    """Arrow's own way to skip NULLs skips rows of which all are."""
    joined, is_begun = pc.coalesce(first, ""), pc.is_valid(first)
    for each in others:
        between = pc.if_else(pc.and_(is_begun, pc.is_valid(each)), separator, "")
        joined = pc.binary_join_element_wise(joined, between, pc.coalesce(each, ""), "")
        is_begun = pc.or_(is_begun, pc.is_valid(each))
    return joined


def _concat_ws_fit(given: Sequence[Given]) -> Fit:
    if len(given) < 2 or given[0].constant is None or given[0].constant[0] is None:
        raise Unfit("only with a constant separator is it computed here")
    if any(each.type != "string" for each in given):
        raise Unfit("only texts are put together here")
    return Fit("string", ("string",) * len(given))


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
    """The place of a text in another, counted from 1; 0 where it is not in there."""
    found = [None if each is None else each.find(searched) + 1 for each in values.to_pylist()]
    return pa.array(found, pa.int32())


def _locate_fit(given: Sequence[Given]) -> Fit:
    if not 2 <= len(given) <= 3:
        raise Unfit("what is searched, where, and from which place on")
    check_type(given[1], "string")
    first = constant_of(given[2], "integer") if len(given) == 3 else 1
    takes = ("string", "string", "integer")[: len(given)]
    return Fit("integer", takes, (constant_of(given[0], "string"), first))


def _locate(values: Datum, searched: str, first: int) -> Datum:
    """As `_instr`, from a place on; nothing is found at the first one, wherever it is looked for."""
    if not searched or first < 1:
        found = 0 if first < 1 else 1
        return pc.if_else(pc.is_valid(values), pa.scalar(found, pa.int32()), pa.scalar(None, pa.int32()))
    places = [None if each is None else each.find(searched, first - 1) + 1 for each in values.to_pylist()]
    return pa.array(places, pa.int32())


add("locate, position", _locate_fit, lambda arguments, gives, options, site: _locate(arguments[1], *options))


def _like(values: Datum, pattern: str) -> Datum:
    return pc.match_substring_regex(values, regular(pattern))


def _like_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[0].type not in ("string", VOID):
        raise Unfit("only a text without an ESCAPE of its own is searched here")
    pattern = given[1].constant
    if given[1].type != "string" or pattern is None or pattern[0] is None or "\\" in pattern[0]:
        raise Unfit("only by a constant pattern without escapes is a text searched here")
    return Fit("boolean", ("string",), (pattern[0],))


def regular(pattern: str) -> str:
    """The regular expression of a pattern of LIKE without escapes.

    Example:
        >>> regular("a_%")
        '(?s)^a..*\\\\z'
    """
    signs = {"%": ".*", "_": "."}
    return "(?s)^" + "".join(signs.get(each) or _escape_letter(each) for each in pattern) + r"\z"


def _escape_letter(letter: str) -> str:
    return letter if letter.isalnum() or not letter.isascii() else f"\\x{ord(letter):02x}"


def _ilike(values: Datum, pattern: str) -> Datum:
    """Spark, too, makes small letters of both."""
    return _like(_lower(values), _lower(pa.array([pattern]))[0].as_py())


add("like", _like_fit, of_values(_like))
add("ilike", _like_fit, of_values(_ilike))


def check_searched(values: Datum, pattern: Pattern) -> None:
    """Raises an error where Java would read a text, or its end, otherwise."""
    values.validate(full=True)
    if pattern.has_end and any(pc.any(pc.ends_with(values, each)).as_py() for each in LINE_ENDS):
        raise Unsupported("a text ends with the end of a line")


def _rlike_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[0].type not in ("string", VOID):
        raise Unfit("only a text is searched here")
    return Fit("boolean", ("string",), (pattern_of(constant_of(given[1], "string")),))


def _rlike(values: Datum, pattern: Pattern) -> Datum:
    check_searched(values, pattern)
    return pc.match_substring_regex(values, pattern.regular)


add("rlike, regexp, regexp_like", _rlike_fit, of_values(_rlike))


def _regexp_replace_fit(given: Sequence[Given]) -> Fit:
    """Where a pattern matches the empty text, Java and RE2 go on from different places."""
    if len(given) != 3 or given[0].type not in ("string", VOID):
        raise Unfit("only a text is searched here")
    pattern, other = pattern_of(constant_of(given[1], "string")), constant_of(given[2], "string")
    if pattern.finds_nothing:
        raise Unfit("a pattern that matches the empty text")
    if {*"$\\"} & {*other}:
        raise Unfit("only by a text without references is a part replaced here")
    return Fit("string", ("string",), (pattern, other))


def _regexp_replace(values: Datum, pattern: Pattern, other: str) -> Datum:
    check_searched(values, pattern)
    _check_bytes(_bytes_in(values) * max(len(other.encode()), 1))
    return pc.replace_substring_regex(values, pattern.regular, other)


add("regexp_replace", _regexp_replace_fit, of_values(_regexp_replace))
