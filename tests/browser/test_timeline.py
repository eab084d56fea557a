"""The page of a timeline in a real browser: what it shows, what keys and pointer do, and what it never does."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch.commands.queries.timeline.entries import Totals
from tests.browser.opened import Opened, Window
from tests.browser.pages import HOSTILE, WIDE, entry, hostile, many, story, timeline_of, wide
from tests.support.tiers import examples

pytestmark = [pytest.mark.browser, pytest.mark.slow]

APPEND, CHANGE, RACE = "#1b6b73", "#ad4424", "#a01a5a"
APPEND_DARK = "#5cc4c0"


def details(opened: Opened) -> dict[str, str]:
    """The names and values of the details that are shown."""
    terms, values = (opened.page.locator(f"#details {each}").all_text_contents() for each in ("dt", "dd"))
    return dict(zip(terms, values, strict=True))


def test_the_page_tells_its_table_and_versions(show: Any) -> None:
    opened = show(story())
    assert opened.text("h1") == "flights"
    assert "14 versions, 0 to 13, from 2025-10-09" in opened.text("#span")
    assert opened.page.locator("#rows tr").count() == 14
    assert "OPTIMIZE would pack 7 files" in opened.text("#advice")
    assert opened.page.locator("#charts figure").count() == 6


def test_the_river_shows_kinds_and_races(show: Any) -> None:
    assert {APPEND, CHANGE, RACE} <= show(story()).colors()


def test_the_legend_names_what_is_there_and_nothing_else(show: Any) -> None:
    labels = show(story()).page.locator("#legend li").all_text_contents()
    assert {"Adds rows", "Raced with others", "Of a stream", "Checkpoint", "Refused"} <= set(labels)
    bar = "Bar: number of rows (logarithmic)"
    assert show(timeline_of(entry(0))).page.locator("#legend li").all_text_contents() == ["Adds rows", bar]


def test_a_table_without_kept_commits_has_a_page(show: Any) -> None:
    opened = show(timeline_of())
    assert "keeps no commit file" in opened.text("#span")
    opened.page.focus("#river")
    opened.press("ArrowLeft", "Enter", "Home", "End", "+", "-")


def test_arrow_keys_go_from_version_to_version(show: Any) -> None:
    opened = show(story())
    opened.page.focus("#river")
    opened.press("Home")
    assert opened.value("aria-valuenow") == "0"
    opened.press("ArrowRight", "ArrowRight")
    assert (opened.value("aria-valuenow"), opened.value("role")) == ("2", "slider")
    opened.press("End", "ArrowLeft")
    assert str(opened.value("aria-valuetext")).startswith("Version 12: VACUUM by user 0")


def test_enter_shows_details_and_escape_closes_them(show: Any) -> None:
    opened = show(story())
    opened.page.focus("#river")
    opened.press("Home", *["ArrowRight"] * 8, "Enter")
    assert opened.page.is_visible("#details")
    shown = details(opened)
    assert (shown["Base"], shown["Carried over"]) == ("version 5", "versions 6, 7")
    assert (shown["Condition"], shown["Row-local"]) == ("id = 3", "yes")
    assert "Version 8: UPDATE by user 2" in opened.text("#live")
    opened.press("Escape")
    assert not opened.page.is_visible("#details")
    assert opened.page.evaluate("document.activeElement.id") == "river"


def test_details_follow_the_selection_while_they_are_open(show: Any) -> None:
    opened = show(story())
    opened.page.focus("#river")
    opened.press("End", "Enter", "ArrowLeft", "ArrowLeft")
    assert opened.text("#details-title") == "Version 11 · METADATA"
    assert "DELETE: DELTA_CONCURRENT_DELETE_READ" in details(opened)["Refused"]


def test_what_is_unknown_is_called_so(show: Any) -> None:
    opened = show(timeline_of(entry(1, operation=None, user=None, engine=None, base=None)))
    opened.page.focus("#river")
    opened.press("End", "Enter")
    assert (details(opened)["Base"], details(opened)["Carried over"]) == ("unknown", "unknown")
    assert opened.text("#details-title") == "Version 1 · unknown operation"


def test_the_first_version_has_no_base(show: Any) -> None:
    opened = show(timeline_of(entry(0), entry(1, base=None)))
    assert opened.page.locator("#rows td:nth-child(5)").all_text_contents() == ["unknown", "none"]
    opened.page.focus("#river")
    opened.press("Home", "Enter")
    assert (details(opened)["Base"], details(opened)["Carried over"]) == ("none", "no other")


def test_a_version_s_number_stands_on_its_row(show: Any) -> None:
    row = show(timeline_of(entry(0), entry(1))).page.locator("#rows tr").first
    number, operation = (row.locator(each).evaluate(_TEXT_BOTTOM) for each in ("button", "td:nth-child(3)"))
    assert number == pytest.approx(operation, abs=1)


def test_commits_are_counted_and_no_rate_is_made_of_a_second_s_work(show: Any) -> None:
    opened = show(timeline_of(*(replace(entry(at), timestamp=1_760_000_000_000 + at) for at in range(20))))
    shown = opened.page.locator("#charts figcaption").filter(has_text="within the hour").text_content()
    assert shown == "Commits within the hour before1 to 20"


def test_an_advice_s_command_can_be_copied(show: Any) -> None:
    opened = show(story())
    button = opened.page.get_by_role("button", name="Copy OPTIMIZE")
    button.click()
    assert opened.page.evaluate("String(getSelection())") == opened.text("#advice code")
    assert "OPTIMIZE" in opened.text("#live")


def test_numbers_beyond_those_of_javascript_are_shown_to_the_last_digit(show: Any) -> None:
    opened = show(wide())
    opened.page.focus("#river")
    opened.press("End", "Enter")
    shown, newest = details(opened), WIDE + 2
    assert opened.text("#details-title") == f"Version {newest} · CHANGE"
    assert (opened.value("aria-valuenow"), opened.value("aria-valuemax")) == (str(newest), str(newest))
    assert (shown["Base"], shown["Ordered after"]) == (f"version {WIDE}", f"version {WIDE}")
    assert (shown["Carried over"], shown["Streams"]) == (f"version {WIDE + 1}", f"query-1, version {WIDE + 10}")
    assert shown["Rows"] == f"{WIDE + 6:,} rows added, {WIDE + 8:,} rows marked as deleted"
    assert shown["Files added"] == f"1 (8.0 PB, {WIDE + 4:,} bytes)"
    assert (shown["Live rows"], shown["Deleted rows"]) == (f"{WIDE + 14:,}", f"{WIDE + 16:,}")
    assert shown["Size"] == f"8.0 PB, {WIDE + 12:,} bytes"
    assert (shown["Condition"], shown["numOutputRows"]) == (f"id = {WIDE}", str(WIDE + 2))
    assert f"{WIDE + 6:,} rows" in opened.text("#details li")
    assert f"{WIDE} to {newest}" in opened.text("#span")
    assert opened.page.locator("#rows tr").all_text_contents()[0].startswith(str(newest))


def test_races_are_told_among_versions_beyond_the_numbers_of_javascript(show: Any) -> None:
    opened = show(wide())
    opened.page.check("#races")
    assert opened.text("#count") == "1 of 2 versions"
    opened.page.uncheck("#races")
    opened.page.focus("#river")
    opened.press("Home", "Enter")
    assert details(opened)["Refused"] == "DELETE: DELTA_CONCURRENT_DELETE_READ"


def test_a_long_value_beside_long_names_has_the_whole_width(show: Any) -> None:
    parameters = {"predicate": "t.year = s.year AND t.month = s.month", "notMatchedBySourcePredicates": "[]"}
    opened = show(timeline_of(entry(0, parameters=parameters)))
    opened.page.focus("#river")
    opened.press("End", "Enter")
    list_, value = (opened.page.locator("#details dl").filter(has_text="predicate"), "dd:has-text('t.year')")
    assert list_.locator(value).bounding_box()["width"] == list_.bounding_box()["width"]


def test_a_chart_has_a_version_s_figure_where_the_selection_stands(show: Any) -> None:
    opened = show(timeline_of(*(replace(entry(at), totals=Totals(9 * (at > 4) + 1, 1, 1, 0, 0)) for at in range(6))))
    assert opened.page.evaluate(_LIVE_FILES_AT_THE_LAST) == pytest.approx(20, abs=2)


def test_plus_and_minus_zoom_about_the_selected_version(show: Any) -> None:
    opened = show(many(200))
    opened.page.focus("#river")
    opened.press("End", "ArrowLeft", "+", "+", "+")
    low, high = opened.view
    assert high - low < 70
    assert low < 198 < high
    opened.press("-", "-", "-", "-", "-")
    assert opened.view == (0, 200)


def test_a_hover_tells_a_version_and_a_click_its_details(show: Any) -> None:
    opened = show(story())
    box = opened.page.locator("#river").bounding_box()
    x, y = box["x"] + box["width"] * 8.5 / 14, box["y"] + 100
    opened.page.mouse.move(x, y)
    opened.frame()
    assert "Version 8: UPDATE by user 2, read version 5, carried over versions 6, 7" in opened.text("#tip")
    opened.page.mouse.click(x, y)
    assert opened.text("#details-title") == "Version 8 · UPDATE"


def test_a_drag_moves_the_river_and_opens_nothing(show: Any) -> None:
    opened = show(many(200))
    opened.page.click("#in")
    opened.frame()
    box, before = opened.page.locator("#river").bounding_box(), opened.view
    opened.page.mouse.move(box["x"] + 300, box["y"] + 50)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 500, box["y"] + 50, steps=4)
    opened.page.mouse.up()
    opened.frame()
    assert opened.view[0] < before[0]
    assert not opened.page.is_visible("#details")


def test_the_wheel_zooms_with_ctrl_and_scrolls_the_page_without(show: Any) -> None:
    opened = show(many(200))
    opened.page.hover("#river")
    opened.page.mouse.wheel(0, -100)
    opened.frame()
    assert opened.view == (0, 200)
    opened.page.hover("#river")
    opened.page.keyboard.down("Control")
    opened.page.mouse.wheel(0, -100)
    opened.page.keyboard.up("Control")
    opened.frame()
    assert opened.view[1] - opened.view[0] < 200


@pytest.mark.parametrize(
    ("choose", "count"),
    [
        (lambda page: page.select_option("#writer", "user 1"), 5),
        (lambda page: page.select_option("#operation", "MOVE"), 2),
        (lambda page: page.check("#races"), 1),
        (lambda page: page.fill("#from", "2025-10-09T09:03:20"), 4),
        (lambda page: page.fill("#to", "2025-10-09T08:54:20"), 2),
    ],
)
def test_filters_choose_by_writer_operation_time_and_race(show: Any, choose: Any, count: int) -> None:
    opened = show(story())
    choose(opened.page)
    opened.frame()
    assert opened.text("#count") == f"{count} of 14 versions"
    assert opened.page.locator("#rows tr").count() == count
    opened.page.click("#clear")
    assert opened.text("#count") == "all 14 versions"


def test_the_second_that_is_shown_is_in_the_range_that_names_it(show: Any) -> None:
    late = replace(entry(0), timestamp=1_760_000_000_900)  # shown as 08:53:20
    opened = show(timeline_of(late, entry(1)))
    opened.page.fill("#to", "2025-10-09T08:53:20")
    assert opened.text("#count") == "1 of 2 versions"
    assert opened.page.locator("label", has=opened.page.locator("#to")).text_content().startswith("To (UTC)")


def test_a_writer_and_an_operation_without_a_name_are_unknown_and_can_be_chosen(show: Any) -> None:
    opened = show(timeline_of(entry(0, user=" ", engine="", operation=""), entry(1)))
    opened.page.select_option("#writer", "unknown writer")
    opened.page.select_option("#operation", "unknown operation")
    opened.frame()
    assert opened.text("#count") == "1 of 2 versions"


def test_keys_pass_over_what_the_filter_leaves_out(show: Any) -> None:
    opened = show(story())
    opened.page.select_option("#operation", "MOVE")
    opened.page.focus("#river")
    opened.press("Home", "ArrowRight")
    assert opened.value("aria-valuenow") == "9"
    opened.press("ArrowRight")
    assert opened.value("aria-valuenow") == "9"


def test_the_table_has_pages_and_opens_details(show: Any) -> None:
    opened = show(many(60))
    assert opened.page.locator("#rows tr").count() == 25
    opened.page.click("#older-page")
    opened.page.click("#older-page")
    assert opened.text("#page") == "page 3 of 3"
    assert opened.page.is_disabled("#older-page")
    opened.page.click("#rows tr:last-child button")
    assert opened.text("#details-title") == "Version 1 · CHANGE"


def test_what_is_closed_gives_the_focus_back(show: Any) -> None:
    opened = show(many(60))
    opened.page.focus("#rows tr:nth-child(3) button")
    opened.press("Enter", "Escape")
    assert opened.page.evaluate("document.activeElement.textContent") == "58"


def test_everything_can_be_reached_with_the_tab_key(show: Any) -> None:
    opened = show(story())
    reached = set()
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        reached.add(opened.page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "writer", "operation", "from", "races", "clear", "in", "out", "river", "older-page"} - reached <= {
        "older-page"  # which is disabled where there is one page
    }
    assert "BUTTON" in reached  # of the table's rows


def test_the_focus_is_seen(show: Any) -> None:
    opened = show(story())
    opened.page.focus("#writer")
    opened.page.keyboard.press("Tab")
    outline = opened.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


def test_every_control_has_a_name(show: Any) -> None:
    opened = show(story())
    unnamed = opened.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [tabindex='0']")].filter((each) =>
          !(each.labels?.length || each.ariaLabel || each.textContent.trim() || each.getAttribute("aria-labelledby"))
        ).map((each) => each.outerHTML)"""
    )
    assert unnamed == []


def test_a_reader_of_dark_pages_gets_a_dark_page(show: Any) -> None:
    assert APPEND_DARK in show(story(), color_scheme="dark").colors()


def test_the_button_changes_between_light_and_dark(show: Any) -> None:
    opened = show(story(), color_scheme="light")
    opened.page.click("#theme")
    opened.frame()
    assert APPEND_DARK in opened.colors()
    opened.page.click("#theme")
    opened.frame()
    assert APPEND in opened.colors()


def test_who_wants_less_motion_gets_none(show: Any) -> None:
    opened = show(story(), reduced_motion="reduce")
    assert opened.page.evaluate("getComputedStyle(document.querySelector('button')).transitionDuration") == "0s"


@pytest.mark.parametrize("width", [320, 400, 1400])
def test_the_page_is_never_wider_than_its_window(show: Any, width: int) -> None:
    for timeline in (story(), hostile()):
        opened = show(timeline, width)
        opened.page.focus("#river")
        opened.press("Home", "Enter")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_a_log_says_is_shown_and_never_run(show: Any) -> None:
    opened = show(hostile())
    opened.page.focus("#river")
    opened.press("Home", "Enter")
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("script").count() == 2
    assert HOSTILE in details(opened)["Writer"]
    assert HOSTILE in opened.text("#advice")
    opened.page.select_option("#writer", HOSTILE)
    assert opened.text("#count") == "1 of 2 versions"


def test_the_policy_lets_no_other_script_and_no_request_through(window: Window, tmp_path: Path) -> None:
    opened = Opened.at(window, story().save(tmp_path / "page.html").as_uri())
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "https://example.invalid/x.png";
          document.body.append(image);
          fetch("https://example.invalid/").catch(() => {});
        }"""
    )
    opened.frame()
    assert opened.page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in each for each in opened.complaints) >= 3


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(window: Window, tmp_path: Path) -> None:
    host = tmp_path / "notebook.html"
    style = "<style>* { color: rgb(1, 2, 3) !important }</style>"
    host.write_text(f"<!doctype html>{style}<body>{hostile()._repr_html_()}", encoding="utf-8")
    opened = Opened.at(window, host.as_uri())
    frame = opened.page.frames[1]
    assert frame.text_content("#count") == "all 2 versions"
    assert frame.evaluate("getComputedStyle(document.body).color") != "rgb(1, 2, 3)"
    assert opened.page.locator("iframe").bounding_box()["height"] <= 900
    assert opened.complaints == []


def test_ten_thousand_versions_stay_smooth(show: Any) -> None:
    """A frame takes about as much work for many versions as for few, since what lies together is drawn as one; else it
    would take ten times as much. `docs/verbs/timeline.md` has the figures of a quiet machine. A browser's clock is
    coarse, so a millisecond is the least that is compared.
    """
    medians, steps = [], examples(240, 16)
    for count in (1_000, 10_000):
        opened = show(many(count))
        frames = opened.page.evaluate(_ZOOM_AND_PAN, steps)
        assert opened.page.evaluate("timelinePage.view.high") <= count
        assert len(frames) == steps
        medians.append(statistics.median(frames))
    print(json.dumps(medians))
    assert medians[1] < 5 * max(medians[0], 1.0)


# From above, the first pixel of the line of the second chart in the middle of the last of six versions.
_TEXT_BOTTOM = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getBoundingClientRect().bottom;
}"""
_LIVE_FILES_AT_THE_LAST = """() => {
  const canvas = document.querySelectorAll("#charts canvas")[1];
  const pixels = canvas.getContext("2d").getImageData(Math.round((canvas.width * 5.5) / 6), 0, 1, canvas.height).data;
  const isLine = (at) => pixels[at] < 100 && pixels[at + 3] > 200; // neither the grey scale nor the pale area
  for (let y = 0; y < canvas.height; y++) if (isLine(4 * y)) return y;
}"""
_ZOOM_AND_PAN = """async (steps) => {
  const river = document.getElementById("river");
  const press = (key) => river.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const frame = () => new Promise(requestAnimationFrame);
  const took = [];
  press("End");
  for (let step = 0; step < steps; step++) {
    const began = performance.now();
    press(step % 40 < 15 ? "+" : step % 40 < 25 ? "ArrowLeft" : "-");
    const asked = performance.now() - began;
    await frame();
    await new Promise((done) => setTimeout(done));
    took.push(asked + timelinePage.state.took);
  }
  return took;
}"""
