"""Dials: a level only grows stronger than the table's, a conflict resolution is chosen freely."""

from __future__ import annotations

from itertools import product

import pytest

from anabranch._protocol.dials import NO_DIALS, Dials, strengthen
from anabranch._protocol.properties import Properties
from anabranch._protocol.session_settings import SessionSettings, apply_settings, current_dials, use_dials
from anabranch.errors import InvalidOption

LEVELS = ("WriteSerializable", "Serializable")
RESOLUTIONS = ("file", "row", "redo")


def properties(level: str = "WriteSerializable", resolution: str = "row", vectors: str = "true") -> Properties:
    return Properties(
        {
            "delta.isolationLevel": level,
            "anabranch.conflictResolution": resolution,
            "delta.enableDeletionVectors": vectors,
        }
    )


def refusal(name: str, value: object, reason: str) -> InvalidOption:
    return InvalidOption(option=name, value=value, reason=reason)


@pytest.mark.parametrize(("table", "asked"), [*product(LEVELS, (*LEVELS, None))])
def test_a_level_is_the_tables_or_a_stronger_one(table: str, asked: str | None) -> None:
    if (table, asked) != ("Serializable", "WriteSerializable"):
        assert strengthen(properties(table), Dials(asked), "t").isolation_level == (asked or table)
        return
    with pytest.raises(InvalidOption) as refused:
        strengthen(properties(table), Dials(asked), "file:///t")
    said = str(refused.value)
    assert refused.value.facts["option"] == "anabranch.isolationLevel"
    assert "file:///t has delta.isolationLevel = Serializable" in said
    assert "Leave anabranch.isolationLevel out, or set it to Serializable." in said


@pytest.mark.parametrize(("table", "asked"), [*product(RESOLUTIONS, (*RESOLUTIONS, None))])
def test_a_conflict_resolution_is_the_one_asked_for(table: str, asked: str | None) -> None:
    judged = strengthen(properties(resolution=table), Dials(conflict_resolution=asked), "t")
    assert judged.conflict_resolution == (asked or table)
    assert judged.isolation_level == "WriteSerializable"


def test_without_vectors_conflicts_are_judged_by_files_whatever_is_asked_but_redo() -> None:
    bare = properties(resolution="file", vectors="false")
    judged = [strengthen(bare, Dials(conflict_resolution=asked), "t").conflict_resolution for asked in RESOLUTIONS]
    assert judged == ["file", "file", "redo"]


def test_values_count_in_any_case_and_others_are_refused_by_name() -> None:
    assert Dials.parse(" serializable", "REDO", refusal) == Dials("Serializable", "redo")
    assert Dials.parse(None, None, refusal) == NO_DIALS
    for level, resolution, name in (
        ("Snapshot", None, "anabranch.isolationLevel"),
        ("SnapshotIsolation", None, "anabranch.isolationLevel"),
        (1, None, "anabranch.isolationLevel"),
        (None, "", "anabranch.conflictResolution"),
        (None, "column", "anabranch.conflictResolution"),
    ):
        with pytest.raises(InvalidOption) as refused:
            Dials.parse(level, resolution, refusal)
        assert refused.value.facts["option"] == name


def test_a_command_overrides_a_block_and_a_block_the_session_each_dial_by_itself() -> None:
    assert current_dials() == NO_DIALS
    with (
        use_dials(Dials(conflict_resolution="file")),
        apply_settings(SessionSettings(dials=Dials("Serializable", "row"))),
    ):
        assert current_dials() == Dials("Serializable", "file")
        with use_dials(Dials("WriteSerializable")):
            assert current_dials() == Dials("WriteSerializable", "file")
        assert current_dials() == Dials("Serializable", "file")
    assert current_dials() == NO_DIALS
