"""What a caller asked for is shown where it is refused, and no secret with it."""

from __future__ import annotations

import pytest

from anabranch.errors import InvalidOption, InvalidProperty
from tests.support.planted import SECRET


@pytest.mark.parametrize("name", ["my.secret", "fs.s3a.access.key", "password", "x-auth-token"])
@pytest.mark.parametrize("reason", ["{0} is none.", "it takes a number, and is '{0}'.", "no"])
def test_a_value_under_the_name_of_a_secret_is_in_no_part_of_a_refusal(name: str, reason: str) -> None:
    for error in (
        InvalidProperty(property=name, value=SECRET, reason=reason.format(SECRET)),
        InvalidOption(option=name, value=SECRET, reason=reason.format(SECRET)),
    ):
        assert SECRET not in f"{error} {error!r} {dict(error.facts)}"
        assert name in str(error)


def test_a_short_secret_spoils_no_word_of_the_reason() -> None:
    error = InvalidProperty(property="my.secret", value="no", reason="there is none, and no no.")
    assert "there is none, and *** ***." in str(error)


def test_values_under_other_names_are_shown() -> None:
    assert "5 is odd" in str(InvalidOption(option="size", value="5", reason="5 is odd"))
