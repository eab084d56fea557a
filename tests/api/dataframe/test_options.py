"""Options of readers and writers: used up, refused by name, or warned of once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from anabranch._protocol.options import CHANGES, OPTIONS, READ, WRITE
from anabranch._protocol.settings import Treatment
from anabranch.commands.options import Options
from anabranch.errors import InvalidOption, NotBuilt, UnknownOption
from anabranch.errors.process_state import forget


@pytest.fixture(autouse=True)
def nobody_was_warned() -> None:
    forget("options warned of")


def given(**values: Any) -> Options:
    found = Options()
    for name, value in values.items():
        found.put(name, value)
    return found


@pytest.mark.parametrize("door", [READ, CHANGES, WRITE])
def test_every_documented_option_is_taken_refused_or_harmless(door: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (each for each in OPTIONS if door in each.doors):
            if each.treatment is Treatment.HARMLESS:
                given(**{each.name: "x"}).finish(door)
            else:  # of the honoured ones, those that their command has not taken
                with pytest.raises((InvalidOption, NotBuilt)):
                    given(**{each.name.upper(): "x"}).finish(door)
            if each.harmless is not None:
                given(**{each.name: each.harmless}).finish(door)


def test_an_unknown_option_is_warned_of_once_and_the_one_that_may_be_meant_is_named() -> None:
    with pytest.warns(UnknownOption, match="mergeSchemas .* Did you mean mergeSchema\\?"):
        given(mergeSchemas="true").finish(WRITE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given(MERGESCHEMAS="true").finish(WRITE)


def test_settings_of_file_systems_are_handed_on_as_they_were_spelled() -> None:
    options = given(**{"fs.s3a.bucket.Lake.access.key": "x", "dfs.nameservices": "y", "versionAsOf": 1})
    options.take("versionAsOf")
    options.finish(READ)
    assert options.file_settings() == {"fs.s3a.bucket.Lake.access.key": "x", "dfs.nameservices": "y"}


def test_other_settings_of_hadoop_are_not_built() -> None:
    with pytest.raises(NotBuilt):
        given(**{"hadoop.security.authentication": "x"}).finish(READ)


def test_what_every_write_takes_is_used_up() -> None:
    all_of_them = given(
        userMetadata="m", txnAppId="a", txnVersion=3, optimizeWrite=True, compression="LZ4", maxRecordsPerFile="5"
    )
    found = all_of_them.of_a_write()
    assert (found["user_metadata"], found["txn"].version, found["optimized"]) == ("m", 3, True)
    assert (found["codec"], found["most_rows"]) == ("lz4_raw", 5)
    assert all_of_them.remaining() == {}
    assert given(maxRecordsPerFile=0).of_a_write()["most_rows"] is None


@pytest.mark.parametrize(
    "wrong", [{"compression": "zip"}, {"maxRecordsPerFile": "few"}, {"optimizeWrite": "yes"}, {"txnAppId": "a"}]
)
def test_a_value_that_an_option_does_not_take_is_refused_by_name(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidOption):
        given(**wrong).of_a_write()
