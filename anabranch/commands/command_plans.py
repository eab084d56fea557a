"""Plans which backend does each step of a command, without running it.

Knows commands, a version of a table and a site. Guarantee: planning reads only the log, and raises the errors with
which the command would refuse to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from anabranch._arrow.change_plans import plan_change, plan_layout, plan_merge
from anabranch._arrow.merge_source import SourceColumns
from anabranch._arrow.site import Site
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.change_feed import records_changes
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.steps import FOUND_BY_LOG, RowPlan
from anabranch._transaction.retry import Runtime
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.opening import file_set
from anabranch.commands.row_changes import candidates_of

SiteOf = Callable[..., Site]
"""Returns the site that reads and writes rows of a `FileSet`; ``obeys=False``: rows are only copied."""


def change_plan(snapshot: Snapshot, where: Condition, values: Mapping[str, Any] | None, site_of: SiteOf) -> RowPlan:
    """The plan of an UPDATE with these values, or of a DELETE if ``values`` is None."""
    _, _, rest = candidates_of(snapshot, where, deletes=values is None)
    if not len(rest):
        return RowPlan((FOUND_BY_LOG,))
    files = file_set(snapshot, rest)
    site = site_of(files, obeys=values is not None)
    vectors, recorded = snapshot.properties.vectors, records_changes(snapshot.metadata)
    return plan_change(site, files, where, values, vectors=vectors, records=recorded)


def merge_plan(snapshot: Snapshot, matching: MergePlan, source: SourceColumns, site_of: SiteOf) -> RowPlan:
    """The plan of a MERGE of a source with these columns."""
    files, recorded = file_set(snapshot), replace(matching, recorded=records_changes(snapshot.metadata))
    return plan_merge(site_of(files), files, recorded, source, vectors=snapshot.properties.vectors)


def optimize_plan(command: Optimize, snapshot: Snapshot, site_of: SiteOf) -> tuple[list[FileSet], RowPlan]:
    """The groups of files that an OPTIMIZE rewrites, and its plan."""
    _, batches = command.plan_batches(snapshot, Runtime())
    groups = [(file_set(snapshot, batch.files), batch.curve) for batch in batches]
    plan = plan_layout(site_of(groups[0][0], obeys=False), groups) if groups else RowPlan()
    return [files for files, _ in groups], plan
