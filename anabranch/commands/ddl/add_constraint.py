"""ALTER TABLE … ADD CONSTRAINT … CHECK. It writes no row.

Guarantee: it adds a constraint only if a rule may have such an expression, and every row satisfies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features.table_features import upgrade_for_metadata
from anabranch._protocol.layout.file_sets import count_of
from anabranch._protocol.rules.allowed import check_name, read_check
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX, Check, Rules
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.transaction import ReadSet
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.ddl.keys import check_new_name
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.replaced_rows import EveryRow
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, file_set
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.row_changes import count_rows, with_row_counts
from anabranch.errors import ConstraintNotMet, InvalidCondition


@dataclass(frozen=True)
class AddConstraint(SecretFree):
    """ALTER TABLE … ADD CONSTRAINT … CHECK: the condition must be TRUE, not NULL, for every row from now on.

    It reads the whole table, so every row that is added meanwhile is a conflict.

    Example:
        >>> AddConstraint("/data/flights", "plausible", where).run(engine)
    """

    table: Location
    name: str
    where: Condition

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it, at the version for which ``where`` was parsed.

        Raises:
            ConstraintNotMet: existing rows do not satisfy it.
            RuleRefused: a rule may not have such an expression. ConstraintNotBoolean: it is not a condition.
            InvalidOption: there is a constraint of this name. InvalidConstraintName: the name is reserved.
            ConcurrentAppendException, MetadataChangedException: the table was written meanwhile.
        """
        if not isinstance(self.where.expression, str):
            reason = "the log stores a constraint as SQL: pass it as text, not as a Column."
            raise InvalidCondition(expression=self.where.text, table=str(self.table), reason=reason)
        row_engine = require_engine(engine, self)
        return run_alteration(self.table, self._on, context, lambda base: self._check_rows(base, row_engine))

    def _on(self, base: Snapshot) -> Alteration:
        key = f"{CONSTRAINT_PREFIX}{self.name.lower()}"
        configuration = base.metadata.configuration
        check_new_name(self.name, configuration)
        check_name(self._check, base.table)
        read_check(self._check, base.schema, base.table)
        metadata = replace(base.metadata, configuration={**configuration, key: self.where.text})
        parameters = {"name": self.name, "expr": self.where.text}
        return Alteration("ADD CONSTRAINT", parameters, metadata, upgrade_for_metadata(base.protocol, metadata))

    @property
    def _check(self) -> Check:
        return Check(self.name, self.where.text)

    def _check_rows(self, base: Snapshot, engine: Engine) -> tuple[ReadSet, RebaseHandler]:
        engine.check_rules(base.schema, Rules(checks=(self._check,)), base.table)
        files = with_row_counts(base, file_set(base))
        rows = count_rows(files.files) - count_of(files.vectors)
        where = replace(self.where, expression=read_check(self._check, base.schema, base.table).text)
        missing = rows - count_of(engine.find(files, where)) if rows else 0
        if missing:
            raise ConstraintNotMet(
                table=base.table, constraint=self.name, predicate=self.where.text, count=missing, rows=rows
            )
        return ReadSet(EVERY_ROW, frozenset(base.files["path"].to_pylist())), EveryRow(base)
