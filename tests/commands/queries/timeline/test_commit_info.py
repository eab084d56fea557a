"""What commits say of themselves: ours in full, other engines' as far as they say it, strangers' without harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.commands.queries.timeline.commit_info import parse_commit_info
from anabranch.commands.queries.timeline.entries import CommitDescription, Entry
from anabranch.commands.queries.timeline.read import timeline
from anabranch.commands.queries.timeline.texts import LONGEST, text_of, texts_of
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit
from tests.support.worlds import World, table_path


def newest(table: Path | str) -> Entry:
    return timeline(table).entries[-1]


def test_a_commit_that_was_carried_over_says_from_where_and_over_what(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": each, "x": 0} for each in range(6)])
    with at_phase("staged", lambda: (world.delete("id = 1"), world.delete("id = 2"))):
        world.update("id = 3", x=1)
    said = newest(world.path).said
    assert (said.base, said.rebased_over, said.cut) == (0, (1, 2), 2)
    assert (said.operation, said.predicate, said.row_local) == ("UPDATE", "id = 3", True)
    assert said.engine is not None
    assert said.engine.startswith("Anabranch/")


def test_a_refused_transaction_is_known_in_its_process(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": each, "x": 0} for each in range(6)])
    with (
        pytest.raises(DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: world.delete("id = 3")),
    ):
        world.update("id = 3", x=1)
    found = timeline(world.path)
    (refusal,) = found.refusals
    assert (refusal.version, refusal.base, refusal.operation) == (1, 0, "UPDATE")
    assert refusal.condition == refused.value.getCondition()
    assert any(each.topic == "conflicts" for each in found.advice)


def test_the_refused_transactions_of_another_table_at_the_place_are_not_shown(tmp_path: Path) -> None:
    test_a_refused_transaction_is_known_in_its_process(tmp_path)
    other = World(table_path(tmp_path)).create([{"id": 1, "x": 0}])
    assert timeline(other.path).refusals == ()


def test_what_an_engine_does_not_say_stays_unknown(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata(), add("a"))
    found = newest(tmp_path)
    assert found.said == CommitDescription()
    assert found.kind == "append"


def test_streams_are_told_by_their_ids(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(), PROTOCOL, metadata(), {"txn": {"appId": "query", "version": 5}}, add("a"))
    assert newest(tmp_path).streams == (("query", 5),)


@pytest.mark.parametrize(
    ("actions", "kind"),
    [
        ([info(operation="VACUUM END")], "vacuum"),
        ([info(operation="SET TBLPROPERTIES"), metadata()], "metadata"),
        ([info(operation="RESTORE"), add("b")], "restore"),
        ([info(operation="WRITE"), add("b")], "append"),
        ([info(operation="OPTIMIZE"), add("b")], "append"),
        ([info(operation="WRITE"), add("b", dataChange=False)], "move"),
        ([info()], "empty"),
    ],
)
def test_what_a_commit_did_is_told_by_its_actions(tmp_path: Path, actions: list[Any], kind: str) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata())
    put_commit(tmp_path, 1, *actions)
    assert newest(tmp_path).kind == kind


@pytest.mark.parametrize("odd", [None, 5, True, [], {}, "x", [["x"]], {"a": {"b": [None]}}, "9" * 30, "\ud800"])
def test_a_field_of_any_type_does_no_harm(odd: Any) -> None:
    names = ("operation", "operationParameters", "operationMetrics", "engineInfo", "userName", "txnId", "readVersion")
    tags = {f"anabranch.{name}": odd for name in ("cut", "carriedOver", "reads", "rowLocal")}
    for each in ({**dict.fromkeys(names, odd), "tags": tags, "isBlindAppend": odd, "more": odd}, {"tags": odd}):
        assert parse_commit_info(each).base in (None, 5)


def test_the_record_of_moves_is_left_out_and_other_tags_are_kept() -> None:
    assert parse_commit_info({"tags": {"anabranch.moves": "x" * 9999, "mine": "y"}}).more == {"tags.mine": "y"}


@pytest.mark.parametrize("value", ["\ud800", {"a": "\ud800"}, '["\\ud800",{"key":1}]', ["\ud800"], {"\ud800": 1}])
def test_every_text_can_be_written(value: Any) -> None:
    assert "?" in str(text_of(value))
    "".join([*texts_of({"a": value}).values(), *texts_of(value)]).encode()


@pytest.mark.parametrize("value", [1, 0, 1.0, "yes", [], None])
def test_what_is_no_truth_value_is_unknown(value: Any) -> None:
    assert parse_commit_info({"isBlindAppend": value}).is_blind is None


def test_texts_are_cut() -> None:
    found = text_of("x" * 100_000)
    assert found is not None
    assert len(found) == LONGEST
    assert len(texts_of({str(each): "v" for each in range(1000)})) < 100


@pytest.mark.parametrize(
    "value",
    [
        "s3://key:hidden@bucket/t",
        {"path": "https://host/t?sig=hidden"},
        '{"fs.azure.account.key.x":"hidden","plain":"yes"}',
        '[{"password":"hidden"}]',
        ["s3://key:hidden@bucket/t"],
    ],
)
def test_no_credential_is_shown(value: Any) -> None:
    assert "hidden" not in str(text_of(value))
    assert "hidden" not in str(texts_of({"value": value}))


def test_the_value_of_an_option_with_the_name_of_a_secret_is_hidden() -> None:
    assert texts_of({"sasToken": "hidden", "mode": "Append"}) == {"sasToken": "***", "mode": "Append"}


def test_what_cannot_be_seen_is_spelled_out() -> None:
    said = parse_commit_info({"operation": "\u202eETELED\x1b[31m", "userName": "half \ud800"})
    assert (said.operation, said.user) == ("\\u202eETELED\\x1b[31m", "half ?")


def test_of_very_many_versions_that_a_commit_was_carried_over_the_first_are_said() -> None:
    said = parse_commit_info({"tags": {"anabranch.carriedOver": ",".join(map(str, range(600_000)))}})
    assert said.rebased_over == tuple(range(1_000))
