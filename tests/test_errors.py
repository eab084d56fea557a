"""Every error has a stable name, a SQLSTATE, facts and a constant text, and travels between processes."""

from __future__ import annotations

import copy
import pickle
import re
import string
from pathlib import Path

import pytest

from anabranch import errors
from anabranch.errors import AnabranchError, DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.worlds import World


def classes(root: type[AnabranchError] = AnabranchError) -> list[type[AnabranchError]]:
    return [root, *(each for child in root.__subclasses__() for each in classes(child))]


KINDS = classes()
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)

DOCUMENTED = {
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
    "MetadataChangedException": "DELTA_METADATA_CHANGED",
    "ProtocolChangedException": "DELTA_PROTOCOL_CHANGED",
    "ConcurrentTransactionException": "DELTA_CONCURRENT_TRANSACTION",
    "ConcurrentWriteException": "DELTA_CONCURRENT_WRITE",
}


def facts_of(kind: type[AnabranchError]) -> dict[str, str]:
    """A fact for each field of the text; where a conflict is, two facts say."""
    fields = [name for _, name, _, _ in string.Formatter().parse(kind.template) if name]
    return {fact: f"the {fact}" for name in fields for fact in (("file", "shown") if name == "place" else (name,))}


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "condition"), DOCUMENTED.items())
def test_conflicts_have_their_documented_names(name: str, condition: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, DeltaConcurrentModificationException)
    error = kind()
    assert (error.getCondition(), error.getErrorClass(), error.getSqlState()) == (condition, condition, "2D521")
    assert kind(sub_condition="ROW_LEVEL_CHANGES").getCondition() == f"{condition}.ROW_LEVEL_CHANGES"
    assert error.retryable


@each_kind
def test_names_and_states_have_their_forms(kind: type[AnabranchError]) -> None:
    assert re.fullmatch(r"[A-Z][A-Z0-9_]+", kind.condition)
    assert re.fullmatch(r"[0-9A-Z]{5}", kind.sql_state)
    assert kind.__doc__


def test_no_two_kinds_share_a_name() -> None:
    names = [kind.condition for kind in KINDS]
    assert len(set(names)) == len(names)


def test_what_may_be_run_again_is_said_by_the_class() -> None:
    again = {kind.__name__ for kind in KINDS if kind.retryable}
    assert again >= {"PutOutcomeUnknown", "DeltaConcurrentModificationException", *DOCUMENTED}
    assert not again & {"CommitOutcomeUnknown", "CorruptLog", "UnsupportedFeature", "SchemaMismatch", "NotATable"}


@each_kind
def test_every_kind_is_drawn_in_the_tree_at_the_top(kind: type[AnabranchError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")


# -- facts and text ----------------------------------------------------------------------------------------------------


@each_kind
def test_facts_are_fields_and_stand_in_the_text(kind: type[AnabranchError]) -> None:
    facts = facts_of(kind)
    error = kind(**facts)
    for name, value in facts.items():
        assert getattr(error, name) == value
        assert value in str(error)
    assert str(error).startswith(f"[{kind.condition}] ")
    assert error.getMessageParameters().items() >= facts.items()


@each_kind
def test_a_fact_that_nobody_stated_reads_as_unknown(kind: type[AnabranchError]) -> None:
    error = kind()
    assert ("unknown" in str(error)) or not facts_of(kind)
    with pytest.raises(AttributeError, match="no fact"):
        _ = error.nothing_of_the_kind


def test_a_fact_may_hold_braces_and_percent_signs() -> None:
    error = errors.InvalidCondition(expression="{x} %s {0} {", table="{t}", reason="{.")
    assert "{x} %s {0} {" in str(error)


@each_kind
def test_it_comes_back_from_another_process(kind: type[AnabranchError]) -> None:
    error = kind(**{**facts_of(kind), "table": "t", "version": 3})
    for found in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(found) is kind
        assert found.facts == error.facts
        assert str(found) == str(error)
        assert found.getCondition() == error.getCondition()


# -- PySpark -----------------------------------------------------------------------------------------------------------


def test_where_pyspark_is_installed_errors_are_its_own() -> None:
    base = pytest.importorskip("pyspark.errors")
    assert all(issubclass(kind, base.PySparkException) for kind in KINDS)
    assert issubclass(errors.InputError, base.AnalysisException)
    with pytest.raises(base.PySparkException) as caught:
        raise errors.ConcurrentAppendException(sub_condition="ROW_LEVEL_CHANGES", table="t")
    assert caught.value.getCondition() == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    assert caught.value.getSqlState() == "2D521"
    assert caught.value.getMessageParameters()["table"] == "t"


def test_a_real_conflict_says_who_won_and_what_to_do(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1, "x": 1}, {"id": 2, "x": 2}])
    with (
        pytest.raises(DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: world.delete("id = 1")),
    ):
        world.update("id = 1", x=5)
    error = refused.value
    assert (error.winner_version, error.winner_operation, error.base_version) == (1, "DELETE", 0)
    assert (error.operation, error.predicate, error.rows) == ("UPDATE", "id = 1", [0])
    assert error.file.endswith(".parquet")
    for said in ("version 1, DELETE", "UPDATE", "id = 1", error.file, "Run the command again", world.log.table):
        assert said in str(error)
    assert type(pickle.loads(pickle.dumps(error))) is type(error)
