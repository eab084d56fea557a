"""The colours of the page can be told from what is behind them, in light and in dark (WCAG 2, contrast)."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import anabranch._api.timeline

STYLE = (Path(anabranch._api.timeline.__file__).parent / "assets" / "page.css").read_text(encoding="utf-8")
OF_TEXT, OF_MARKS = 4.5, 3.0
BEHIND = ("bg", "panel", "wash")
TEXTS = ("ink", "muted", "series")
MARKS = ("append", "change", "move", "restore", "metadata", "vacuum", "empty", "race", "series", "focus")


def blocks() -> list[dict[str, str]]:
    """The colours of each block that sets them: light, dark as the system says, dark as the button says."""
    found = re.findall(r":root[^{]*\{([^}]*--bg[^}]*)\}", STYLE)
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", each)) for each in found]


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """
    Example:
        >>> contrast("#000000", "#ffffff")
        21.0
    """
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_there_are_three_blocks_and_both_dark_ones_agree() -> None:
    light, dark, chosen = blocks()
    assert dark == chosen
    assert light.keys() == dark.keys() >= {*BEHIND, *TEXTS, *MARKS}
    assert luminance(light["bg"]) > 0.5 > luminance(dark["bg"])


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out(theme: int) -> None:
    colors = blocks()[theme]
    found = {(text, behind): contrast(colors[text], colors[behind]) for text, behind in product(TEXTS, BEHIND)}
    assert not {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < OF_TEXT}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_signs_stand_out(theme: int) -> None:
    colors = blocks()[theme]
    found = {(sign, behind): contrast(colors[sign], colors[behind]) for sign, behind in product(MARKS, BEHIND)}
    assert not {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < OF_MARKS}


def test_the_measure_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
