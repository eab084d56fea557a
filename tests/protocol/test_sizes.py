"""Sizes are read as Spark reads them."""

from __future__ import annotations

import pytest

from anabranch._protocol.sizes import size_of


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("7b", 7), ("64k", 65536), ("64 KB", 65536), (" 100mb", 100 << 20), ("1g", 1 << 30), ("2tb", 2 << 40)],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "0", "0m", "-1", "1.5m", "m", "1bb", "1x", "1 m b", "٣", "1" * 19])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it takes a number of bytes"):
        size_of(text)
