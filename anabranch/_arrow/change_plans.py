"""Plans changes of rows: which backend does each step, and why not the other.

Pure: a plan depends on a change, a table's files and a site, and nothing is read. Guarantee: if a plan assigns a step
to Spark, its reason is the one for which `anabranch._arrow.backend` leaves that step to Spark; a step that it assigns
to Arrow goes to Spark only because of what files or values of rows contain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anabranch._arrow import finding
from anabranch._arrow.assigned_values import resolve_assignments
from anabranch._arrow.clustering import check_ordered
from anabranch._arrow.merge_clauses import resolve_clauses
from anabranch._arrow.merge_keys import resolve_join
from anabranch._arrow.merge_source import SourceColumns
from anabranch._arrow.packing import check_packed
from anabranch._arrow.site import Site
from anabranch._arrow.writing import check_writer
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.row_rules import check_rules
from anabranch._protocol.steps import (
    FIND_ROWS,
    INSERT_ROWS,
    JOIN,
    ORDER,
    PACK,
    RECORD_CHANGES,
    WRITE_FILES_ANEW,
    WRITE_NEW_ROWS,
    RowPlan,
    Step,
)
from anabranch._protocol.unsupported import why_unsupported


def plan_change(
    site: Site,
    files: FileSet,
    condition: Condition,
    assignments: Mapping[str, Any] | None,
    *,
    vectors: bool,
    records: bool,
) -> RowPlan:
    """The plan of an UPDATE, or, without assignments, of a DELETE.

    Args:
        files: files that may hold rows that the condition selects.
        vectors: whether rows are marked in deletion vectors; otherwise files are rewritten.
        records: whether the table records changes.

    Example:
        >>> print(plan_change(site, files, condition, {"x": value}, vectors=True, records=False))
        find rows: Arrow
        write new rows: Spark, since the function soundex is computed by Spark
    """

    def copies() -> None:
        check_copies(site, files)

    steps = [_step(FIND_ROWS, lambda: check_find(site, files, condition))]
    if assignments is None:
        if not vectors:
            steps.append(_step(WRITE_FILES_ANEW, copies))
            steps += [_step(RECORD_CHANGES, copies)] if records else []
        return RowPlan(tuple(steps))

    def images() -> None:
        check_images(site, files, assignments)

    steps += [_step(RECORD_CHANGES, images)] if records else []
    if records or vectors:
        steps.append(_step(WRITE_NEW_ROWS, images))
    if not vectors:
        steps.append(_step(WRITE_FILES_ANEW, copies if records else images))
    return RowPlan(tuple(steps))


def plan_merge(site: Site, files: FileSet, matching: MergePlan, source: SourceColumns, *, vectors: bool) -> RowPlan:
    """The plan of a MERGE whose source has these columns and is small enough for this process; other arguments as for
    `plan_change`.
    """

    def check_new_rows() -> None:
        check_join(site, files, matching, source)
        check_rules(files.schema, files.rules, files.schema.names, site.altered)
        check_writer(site, files)

    def copies() -> None:
        check_copies(site, files)

    steps = [_step(JOIN, lambda: check_join(site, files, matching, source))]
    updates, anew = matching.columns_set(files.schema, "update"), matching.writes_anew(vectors=vectors)
    if updates:
        steps.append(_step(WRITE_NEW_ROWS, check_new_rows))
    if matching.inserts:
        steps.append(_step(INSERT_ROWS, lambda: check_inserts(site, files, matching, source)))
    if matching.recorded and anew:
        steps.append(_step(RECORD_CHANGES, check_new_rows if updates else copies))
    if anew and not vectors:
        steps.append(_step(WRITE_FILES_ANEW, copies))
    return RowPlan(tuple(steps))


def plan_layout(site: Site, groups: Sequence[tuple[FileSet, Curve | None]]) -> RowPlan:
    """The plan of an OPTIMIZE: groups of files, each with the curve along which its rows are laid, or None if its files
    are packed one after the other. Equal steps are merged.
    """
    return RowPlan.of(_layout(site, files, curve) for files, curve in groups)


def _layout(site: Site, files: FileSet, curve: Curve | None) -> Step:
    """The step for the files of a group."""
    reason = why_unsupported(lambda: check_packed(site, files) if curve is None else check_ordered(site, files, curve))
    return rewrite_step(files, curve, reason)


def rewrite_step(files: FileSet, curve: Curve | None, reason: str | None = None) -> Step:
    """The step that rewrites the files of a group, with the reason why Spark does it."""
    groups = (len(files.files),)
    if curve is None:
        return Step(PACK, reason, groups=groups)
    return Step(ORDER, reason, order=curve.columns, groups=groups)


def _step(does: str, check: Callable[[], object]) -> Step:
    return Step(does, why_unsupported(check))


# -- what Arrow supports -----------------------------------------------------------------------------------------------


def check_find(site: Site, files: FileSet, condition: Condition) -> None:
    """Raises Unsupported if only Spark finds the rows for which a condition is TRUE."""
    finding.check_condition(files.schema, condition)
    site.check_read(files)


def check_copies(site: Site, files: FileSet) -> None:
    """Raises Unsupported if only Spark reads rows of these files, or writes them."""
    finding.check_copied(files.with_ids.schema)
    site.check_read(files)
    check_writer(site, files)


def check_images(site: Site, files: FileSet, assignments: Mapping[str, Any]) -> None:
    """Raises Unsupported if only Spark reads rows of these files, or writes them with these new values."""
    values = resolve_assignments(assignments, files.schema)
    check_rules(files.schema, files.rules, frozenset(values), site.altered)
    check_copies(site, files)


def check_join(site: Site, files: FileSet, matching: MergePlan, source: SourceColumns) -> None:
    """Raises Unsupported if only Spark joins these files with a source of these columns."""
    resolve_join(files, matching, source)
    site.check_read(files)


def check_inserts(site: Site, files: FileSet, matching: MergePlan, source: SourceColumns) -> None:
    """Raises Unsupported if only Spark computes the inserted rows, or writes them."""
    resolve_clauses(matching, "not matched", files, source)
    for assigned in matching.columns_set(files.schema, "insert").values():
        check_rules(files.schema, files.rules, assigned, site.altered, new=True)
    check_writer(site, files)
