"""Settings of a session: each one that is documented has one fate, and all others are unknown."""

from __future__ import annotations

from collections import Counter

import pytest

from anabranch._protocol import settings
from anabranch._protocol.options import OPTIONS
from anabranch._protocol.settings import PREFIX, SETTINGS, Treatment, check, default_properties, flag, number, unknown
from anabranch.errors import UnsupportedSetting


def test_each_setting_and_each_option_stands_once() -> None:
    assert [name for name, count in Counter(each.name for each in SETTINGS).items() if count > 1] == []
    doors = Counter((door, each.name.lower()) for each in OPTIONS for door in each.doors)
    assert [key for key, count in doors.items() if count > 1] == []


@pytest.mark.parametrize(
    "each", [each for each in SETTINGS if each.treatment is Treatment.REFUSED], ids=lambda each: each.name
)
def test_a_refused_setting_stops_the_statements_that_it_would_change_and_no_other(each: settings.Setting) -> None:
    other = "false" if each.default == "true" else "true"
    for verb in each.verbs or {"INSERT"}:
        with pytest.raises(UnsupportedSetting) as refused:
            check({each.name: other}, verb)
        assert refused.value.facts["setting"] == each.name
        check({each.name: f" {each.default.upper()}"}, verb)
    if each.verbs:
        check({each.name: other}, "a statement that it does not concern")


def test_a_setting_that_is_honoured_or_harmless_stops_nothing() -> None:
    check({each.name: "anything" for each in SETTINGS if each.treatment is not Treatment.REFUSED}, "MERGE")


def test_what_nobody_documents_is_unknown_and_the_one_that_may_be_meant_is_named() -> None:
    given = [PREFIX + "commitInfo.usermetadata", PREFIX + "properties.defaults.nope", PREFIX + "vacuum.lite.enabled"]
    assert unknown([*given, "spark.sql.shuffle.partitions"]) == {
        given[0]: f" Did you mean {settings.USER_METADATA}?",
        given[1]: "",
    }


def test_a_misspelled_setting_of_ours_is_unknown_too() -> None:
    assert unknown(["anabranch.isolationlevel", "spark.anabranch.installed.x", "anabranch.conflictResolution"]) == {
        "anabranch.isolationlevel": " Did you mean anabranch.isolationLevel?"
    }


def test_defaults_are_properties_and_features_under_their_own_names() -> None:
    given = {"appendOnly": "true", "minWriterVersion": "7", "feature.deletionVectors": "supported", "nope": "x"}
    assert default_properties({settings.DEFAULTS + key: value for key, value in given.items()}) == {
        "delta.appendOnly": "true",
        "delta.minWriterVersion": "7",
        "delta.feature.deletionVectors": "supported",
    }


def test_the_versions_of_new_tables_have_settings_of_their_own_too() -> None:
    given = {f"{PREFIX}minReaderVersion": "1", f"{PREFIX}minWriterVersion": "2"}
    assert default_properties(given) == {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    assert not unknown(given)


def test_a_value_that_a_setting_does_not_take_is_refused() -> None:
    assert flag({"a": " TRUE"}, "a", False)
    assert number({"a": "12"}, "a") == 12
    for value in ("0", "²", "few"):
        with pytest.raises(UnsupportedSetting):
            number({"a": value}, "a")
    with pytest.raises(UnsupportedSetting):
        flag({"a": "yes"}, "a", False)
