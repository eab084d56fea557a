"""Plans: finds in Spark's printed plans the files that `inputFiles` misses.

Works on text alone. Knows that a subquery's plan is printed apart from the main one, and what is cached below an
``InMemoryRelation``; and that a relation and its scan have the numbers of their columns in common. Guarantee: a scan of
files that are not read by a DataFrame of ours is among `scans`; the hidden ones are those outside the main plan, of
which `inputFiles` names every file.
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
    """What an analysed plan reads of files.

    Attributes:
        foreign: whether a DataFrame that is not ours reads some.
        ours: the numbers of the columns that DataFrames of ours read.
        is_cut: whether Spark abbreviated the plan.
    """

    foreign: bool
    ours: frozenset[str]
    is_cut: bool


@dataclass(frozen=True)
class Scan:
    """A scan of files.

    Attributes:
        columns: the numbers of its columns.
        place: the first place that it reads; None where Spark does not say.
        has_more: whether it reads more places.
    """

    columns: frozenset[str]
    place: str | None
    has_more: bool


def is_told(extended: str) -> bool:
    """Whether an extended explanation holds the whole analysed plan, with the names in it: Spark cuts what is longer
    than the session allows, and masks what it takes for a secret.
    """
    is_cut = _CUT_OFF.search(extended) is not None and "== Optimized Logical Plan ==" not in extended
    return _TOLD.search(extended) is not None and not is_cut and not _MASKED.search(extended)


@dataclass(frozen=True)
class Whole:
    """A DataFrame of all rows of a table, as an analysed plan shows it.

    Attributes:
        mark: of the table's id.
        place: the digest of where it lies.
        projections: what is above it, besides views.
    """

    mark: str
    place: str
    projections: Sequence[str]


def relations(extended: str) -> Relations:
    """What the analysed plan of an extended explanation reads of files."""
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
    """What an analysed plan shows by views and projections alone; None where anything else is done to rows."""
    projections: list[str] = []
    for line in _analyzed_plan(extended).strip().splitlines()[1:]:  # the first says what columns there are
        node = line.strip().removeprefix("+- ")
        if found := _WHOLE.fullmatch(node):
            return Whole(found[1], found[2], projections)
        if node.startswith("Project ["):
            projections.append(node)
        elif not node.startswith(("SubqueryAlias ", "View (")):
            return None
    return None


def chooses_only(projections: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether each of these projections has just these columns under their names, as they are, or cast to the type that
    they have; one that Spark abbreviated has not.
    """
    each = (_projection_pattern(re.escape(name), re.escape(type_)) for name, type_ in columns.items())
    as_they_are = re.compile(rf"Project \[{', '.join(each)}\]")
    return all(map(as_they_are.fullmatch, projections))


def _projection_pattern(name: str, type_: str) -> str:
    here = rf"{name}#\d+L?"
    return rf"(?:(?:{here} AS )?{here}|cast\({here} as {type_}\) AS {here})"


def scans(formatted: str, *, hidden: bool) -> Iterator[Scan]:
    """The scans that a formatted explanation shows: all, or those in subqueries, and of what is cached."""
    main, _, subqueries = formatted.partition(_SUBQUERIES)
    seen = main.split("\n\n") if "InMemoryRelation" in main or not hidden else ()
    for block in [*seen, *subqueries.split("\n\n")]:
        if re.match(r"\s*\(\d+\) (?:Batch)?Scan\b", block):
            yield _scan(block)


def _scan(block: str) -> Scan:
    output = next((line for line in block.splitlines() if line.startswith("Output")), "")
    columns, said = frozenset(_COLUMN.findall(output)), _LOCATION.search(block)
    if said is None:
        return Scan(columns, None, has_more=True)
    place = _MORE.sub("", said[2])
    if said[1] is not None:  # as a scan of version 2 says it
        place, _, rest = place.partition(", ")
        return Scan(columns, place, has_more=bool(rest))
    return Scan(columns, place, has_more=place != said[2])
