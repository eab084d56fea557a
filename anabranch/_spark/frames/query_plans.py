"""Finds in Spark's printed plans the files that `inputFiles` misses.

Works on text alone. Knows that a subquery's plan is printed apart from the main one, and cached plans below an
``InMemoryRelation``; and that a relation and its scan have the numbers of their columns in common. Guarantee: a scan of
files by a DataFrame that is not ours is among `scans`; the hidden ones are those outside the main plan, in which
`inputFiles` finds every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_SECTION = re.compile(r"^== (.+) ==$", re.MULTILINE)
_RELATION = re.compile(r"(?:Streaming)?Relation(?:V2)?\b(?!.*\bJDBCRelation\()")
_OURS = re.compile(r"SubqueryAlias (?:.*\.)?`?__anabranch_[0-9a-f]{16}_(?:v|asof)")
_WHOLE = re.compile(r"SubqueryAlias (__anabranch_[0-9a-f]{16})_v\d+(?:_of[0-9a-f]{16})?_at([0-9a-f]{16})")
_COLUMN = re.compile(r"#(\d+)")
_CUT = re.compile(r"\d+ more (?:fields|characters)")
_TOLD = re.compile(r"== (Analyzed Logical|Physical) Plan ==")
_CUT_OFF = re.compile(r"(?:Truncated plan of \d+ characters|\.\.\. \d+ more characters)\s*$")
_MASKED = re.compile(r"SubqueryAlias .*\*{9}\(redacted\)")
_LOCATION = re.compile(r"^Location: \w+ ?(?:\((\d+) paths\))?\[(.*)\]$", re.MULTILINE)
_MORE = re.compile(r", \.\.\. \d+ entries$")
_SUBQUERIES = "===== Subqueries ====="


@dataclass(frozen=True)
class Relations:
    """The relations over files in an analysed plan.

    Attributes:
        foreign: whether a DataFrame that is not ours reads files.
        ours: numbers of the columns that our DataFrames read.
        is_cut: whether Spark abbreviated the plan.
    """

    foreign: bool
    ours: frozenset[str]
    is_cut: bool


@dataclass(frozen=True)
class Scan:
    """A scan of files.

    Attributes:
        columns: numbers of its columns.
        place: the first place that it reads; None if Spark does not print it.
        has_more: whether it reads more places.
    """

    columns: frozenset[str]
    place: str | None
    has_more: bool


def is_told(extended: str) -> bool:
    """Whether an extended explanation contains the whole analysed plan, with its names: Spark truncates plans that are
    longer than the session allows, and masks what it takes for a secret.
    """
    is_cut = _CUT_OFF.search(extended) is not None and "== Optimized Logical Plan ==" not in extended
    return _TOLD.search(extended) is not None and not is_cut and not _MASKED.search(extended)


@dataclass(frozen=True)
class Whole:
    """A DataFrame of all rows of a table, as an analysed plan shows it.

    Attributes:
        mark: mark of the table's id.
        place: digest of the table's location.
        projections: the nodes above it, except views.
    """

    mark: str
    place: str
    projections: Sequence[str]


def relations(extended: str) -> Relations:
    """The relations over files in the analysed plan of an extended explanation."""
    analysed = _analyzed_plan(extended)
    above: list[tuple[int, bool]] = []
    foreign, ours = False, set[str]()
    for line in analysed.splitlines():
        node = line.lstrip(" :+-'~")
        depth = len(line) - len(node)
        while above and above[-1][0] >= depth:
            above.pop()
        is_ours = _OURS.match(node) is not None or bool(above and above[-1][1])
        above.append((depth, is_ours))
        if _RELATION.match(node):
            foreign |= not is_ours
            ours |= set(_COLUMN.findall(node)) if is_ours else set()
    return Relations(foreign, frozenset(ours), _CUT.search(analysed) is not None)


def _analyzed_plan(extended: str) -> str:
    pieces = _SECTION.split(extended)
    return next((text for name, text in zip(pieces[1::2], pieces[2::2], strict=True) if "Analyzed" in name), extended)


def whole_below(extended: str) -> Whole | None:
    """The table that an analysed plan shows through views and projections alone; None if the plan has other nodes."""
    projections: list[str] = []
    for line in _analyzed_plan(extended).strip().splitlines()[1:]:  # the first line lists the columns
        node = line.strip().removeprefix("+- ")
        if match := _WHOLE.fullmatch(node):
            return Whole(match[1], match[2], projections)
        if node.startswith("Project ["):
            projections.append(node)
        elif not node.startswith(("SubqueryAlias ", "View (")):
            return None
    return None


def chooses_only(projections: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether each of these projections has just these columns under their names, unchanged, or cast to their own type;
    False for one that Spark abbreviated.
    """
    column_patterns = (_projection_pattern(re.escape(name), re.escape(type_)) for name, type_ in columns.items())
    unchanged = re.compile(rf"Project \[{', '.join(column_patterns)}\]")
    return all(map(unchanged.fullmatch, projections))


def _projection_pattern(name: str, type_: str) -> str:
    numbered_name = rf"{name}#\d+L?"
    return rf"(?:(?:{numbered_name} AS )?{numbered_name}|cast\({numbered_name} as {type_}\) AS {numbered_name})"


def scans(formatted: str, *, hidden: bool) -> Iterator[Scan]:
    """The scans in a formatted explanation: all of them, or only those in subqueries and cached plans."""
    main, _, subqueries = formatted.partition(_SUBQUERIES)
    main_blocks = main.split("\n\n") if "InMemoryRelation" in main or not hidden else ()
    for block in [*main_blocks, *subqueries.split("\n\n")]:
        if re.match(r"\s*\(\d+\) (?:Batch)?Scan\b", block):
            yield _scan(block)


def _scan(block: str) -> Scan:
    output = next((line for line in block.splitlines() if line.startswith("Output")), "")
    columns, location = frozenset(_COLUMN.findall(output)), _LOCATION.search(block)
    if location is None:
        return Scan(columns, None, has_more=True)
    place = _MORE.sub("", location[2])
    if location[1] is not None:  # the format of a scan of version 2
        place, _, rest = place.partition(", ")
        return Scan(columns, place, has_more=bool(rest))
    return Scan(columns, place, has_more=place != location[2])
