"""What the options of a stream say."""

from __future__ import annotations

import pytest

from anabranch._streaming.reading import read_of
from anabranch.commands.options import Options
from anabranch.errors import InvalidOption


@pytest.mark.parametrize("option", ["startingVersion", "maxFilesPerTrigger", "maxBytesPerTrigger"])
@pytest.mark.parametrize("value", ["-1", "1.5", "", "many", "9" * 5000])
def test_a_number_that_is_none_is_refused_by_the_name_of_its_option(option: str, value: str) -> None:
    options = Options()
    options.put(option, value)
    with pytest.raises(InvalidOption, match=option):
        read_of(options)
