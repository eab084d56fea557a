"""The rules of a table for every row that is written to it.

Knows PROTOCOL.md, sections "CHECK Constraints", "Column Invariants", "Generated Columns" and "Default Columns".
Knows nothing of rows, and parses no SQL: expressions are texts. Pure. Guarantee: `rules_of` omits no rule of the
metadata; what it cannot read is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from anabranch._protocol.actions import Metadata
from anabranch._protocol.compression import DEFAULT_CODEC, codec_text, parse_codec
from anabranch._protocol.materialised_partitions import materialises
from anabranch._protocol.schema.column_mapping import numbers_inside
from anabranch._protocol.schema.lengths import Inside, Step
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, parse_schema
from anabranch.errors import InvalidProperty, InvalidSchema
from anabranch.errors.process_state import memo

CONSTRAINT_PREFIX = "delta.constraints."
INVARIANT = "delta.invariants"
GENERATION = "delta.generationExpression"
DEFAULT = "CURRENT_DEFAULT"

_MEMBER = re.compile(r"`?\s*\.\s*(`(?:[^`]|``)+`|\w+)")
"""The name of a member behind the name of its parent, which may end in a backtick."""
_STAR = re.compile(r"[(,.]\s*\*")
_PLAIN = re.compile(r"\w+")
_MAX_SEARCHED_CHARACTERS = 100_000_000
"""The maximum number of characters in which to search for quoted names; a longer text may use all of them."""


@dataclass(frozen=True)
class NotNull:
    """The value at this path is never NULL unless its parent is."""

    path: tuple[Step, ...]

    @property
    def column(self) -> str:
        """The path in Delta's spelling, such as ``a.element.b``."""
        return ".".join(step.value if isinstance(step, Inside) else step for step in self.path)


@dataclass(frozen=True)
class Check:
    """A SQL expression that is TRUE for every row: FALSE and NULL violate it, as in delta-spark.

    ``columns`` are the top-level columns that it may use.
    """

    name: str
    expression: str
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Generated:
    """A column computed by a SQL expression over other columns; ``columns`` as for `Check`."""

    column: str
    expression: str
    columns: frozenset[str] = frozenset()

    @property
    def check(self) -> Check:
        """The check for a value that a user provides, as delta-spark words it."""
        text = f"{self.column} <=> {self.expression}"
        return Check("Generated Column", text, self.columns | {self.column})


@dataclass(frozen=True)
class Rules:
    """The rules of a table for rows and their files.

    Attributes:
        defaults: column -> the SQL text of its value if rows lack it.
        codec: the compression of the files as the table, the command or the session words it, maybe an unknown one.
        parquet_version: the version of the Parquet format, as the table states it; only writers go by it.
        materialised: whether files also contain the partition columns, after the others.
        numbered_inside: whether files have field ids for elements, keys and values too.
        optimized: whether to write few files rather than one per task of an engine.
        optimized_asked: the same as requested by the command, which takes precedence.
        most_rows: the maximum number of rows of a file.
        casts: whether values of other types are cast to the columns', as the command requests.
        replaceable: whether the command could have replaced the columns, so that the error for unfit rows mentions it.
    """

    not_null: tuple[NotNull, ...] = ()
    checks: tuple[Check, ...] = ()
    generated: tuple[Generated, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    codec: str = DEFAULT_CODEC
    parquet_version: str = "1.0.0"
    materialised: bool = False
    numbered_inside: bool = False
    optimized: bool = False
    optimized_asked: bool | None = None
    most_rows: int | None = None
    casts: bool = False
    replaceable: bool = False

    @property
    def bind_rows(self) -> bool:
        """Whether a row can violate any of the rules once every column has a value of its type."""
        return bool(self.not_null or self.checks or self.generated)

    @property
    def compression(self) -> str:
        """The codec of new files, by Spark's name. Raises InvalidProperty: it is unknown, so none can be written."""
        return parse_codec(self.codec)

    @property
    def pages(self) -> str:
        """The version of the data pages of files. Raises InvalidProperty: the table states none that is known."""
        return parse_pages(self.parquet_version)


NONE = Rules()


def rules_of(metadata: Metadata, features: Set[str] = frozenset()) -> Rules:
    """The rules of a table; ``features`` are those that its protocol lists for writers, for those who write files.
    Raises InvalidSchema: an invariant is malformed.
    """
    configuration = metadata.configuration
    constraints = tuple(pair for pair in configuration.items() if is_constraint(pair[0]))
    return replace(
        _rules(metadata.schema_string, constraints),
        optimized=configuration.get(OPTIMIZED_PROPERTY, "").strip().lower() == "true",
        codec=codec_text(configuration),
        parquet_version=configuration.get(PAGES_PROPERTY, "1.0.0"),
        materialised=materialises(configuration, features),
        numbered_inside=numbers_inside(configuration),
    )


OPTIMIZED_PROPERTY = "delta.autoOptimize.optimizeWrite"


PAGES_PROPERTY = "delta.parquet.format.version"
_PAGES_2 = re.compile(r"2\.[0-9]+\.[0-9]+")


def parse_pages(text: str) -> str:
    """The version of data pages for a version of the Parquet format. Raises InvalidProperty: it is no such version.

    Source: PROTOCOL.md, "Table Properties".

    Example:
        >>> parse_pages("2.12.0")
        '2.0'
    """
    version = text.strip()
    if version != "1.0.0" and not _PAGES_2.fullmatch(version):
        reason = "it takes 1.0.0, or 2.x.y with two numbers, such as 2.12.0."
        raise InvalidProperty(property=PAGES_PROPERTY, value=text, reason=reason)
    return "1.0" if version == "1.0.0" else "2.0"


def is_constraint(key: str) -> bool:
    """Whether this table property is a CHECK constraint."""
    return key.lower().startswith(CONSTRAINT_PREFIX)


@memo("rules of tables", 256)  # needed for each set of files, and a schema may have thousands of columns
def _rules(schema_string: str, constraints: tuple[tuple[str, str], ...]) -> Rules:
    schema = parse_schema(schema_string)
    texts = [(key[len(CONSTRAINT_PREFIX) :], text) for key, text in sorted(constraints)] + list(_invariants(schema))
    return Rules(
        not_null=tuple(not_null(schema)),
        checks=tuple(Check(name, text, columns_in_text(text, schema.names)) for name, text in texts),
        generated=tuple(
            Generated(column.name, text, columns_in_text(text, schema.names) - {column.name})
            for column in schema
            if (text := generation_of(column)) is not None
        ),
        defaults={column.name: text for column in schema if (text := default_of(column)) is not None},
    )


def default_of(column: Field) -> str | None:
    """The SQL text of a column's default value."""
    return column.metadata.get(DEFAULT)


def generation_of(column: Field) -> str | None:
    """The SQL text of the expression that generates a column."""
    return column.metadata.get(GENERATION)


def columns_in_text(text: str, names: Iterable[str]) -> frozenset[str]:
    """The columns among these that a SQL text may use; a word in a string literal counts too, a star means all.

    Example:
        >>> sorted(columns_in_text("A + `x``y` > 'b'", ["a", "b", "c", "x`y"]))
        ['a', 'b', 'x`y']
    """
    names = list(names)
    if _STAR.search(text) is not None:
        return frozenset(names)
    used, odd = _split_names(text, names)
    return frozenset(used) | frozenset(name for name in odd if _word(name).search(text))


def _split_names(text: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split these names into words that occur in a text, and names that must be searched for."""
    if not text.isascii():
        return [], list(names)
    words = set(re.findall(r"\w+", text.lower()))
    plain, odd = list[str](), list[str]()
    for name in names:
        (plain if name.isascii() and _PLAIN.fullmatch(name) else odd).append(name)
    used = [name for name in plain if name.lower() in words]
    is_much = len(odd) * len(text) > _MAX_SEARCHED_CHARACTERS
    return (used + odd, []) if is_much else (used, odd)


def may_use(text: str, path: Sequence[str]) -> bool:
    """Whether a SQL text may use a column, or a member of structs at a path; false if it always names another
    member.

    Example:
        >>> may_use("a.x > 0", ["a", "x"]), may_use("a.x > 0", ["a", "y"]), may_use("f(a)", ["a", "y"])
        (True, False, True)
    """
    column, *members = path
    return bool(_STAR.search(text)) or any(
        _leads_to(text, match.end(), members) for match in _word(column).finditer(text)
    )


def _leads_to(text: str, end: int, members: Sequence[str]) -> bool:
    step = _MEMBER.match(text, end) if members else None
    if step is None:
        return True
    named = step[1][1:-1].replace("``", "`") if step[1][0] == "`" else step[1]
    return named.lower() == members[0].lower() and _leads_to(text, step.end(), members[1:])


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name.replace('`', '``'))}(?!\w)", re.IGNORECASE)


def _invariants(schema: Struct) -> Iterator[tuple[str, str]]:
    """Yield the invariants in the metadata of columns and of members of structs, with delta-spark's name for them."""
    for column in schema:
        if INVARIANT in column.metadata:
            text = _invariant(column.metadata[INVARIANT])
            yield f"EXPRESSION({text})", text
        if isinstance(column.type, Struct):
            yield from _invariants(column.type)


def _invariant(written: str) -> str:
    try:
        return str(json.loads(written)["expression"]["expression"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidSchema(reason=f"the invariant {written} is malformed.") from None


def not_null(data_type: DataType, path: tuple[Step, ...] = ()) -> Iterator[NotNull]:
    """Yield every NOT NULL path below this type, outer paths first."""
    if isinstance(data_type, Struct):
        for member in data_type:
            yield from _not_null_at(member.type, member.nullable, (*path, member.name))
    if isinstance(data_type, Array):
        yield from _not_null_at(data_type.element, data_type.contains_null, (*path, Inside.ELEMENTS))
    if isinstance(data_type, Map):
        yield from not_null(data_type.key, (*path, Inside.KEYS))  # a key is never NULL anyway
        yield from _not_null_at(data_type.value, data_type.value_contains_null, (*path, Inside.VALUES))


def _not_null_at(data_type: DataType, nullable: bool, path: tuple[Step, ...]) -> Iterator[NotNull]:
    if not nullable:
        yield NotNull(path)
    yield from not_null(data_type, path)
