"""The document of a timeline: whole in itself, and nothing of the log is markup in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from anabranch._api.timeline.document import name_of, payload
from anabranch._api.timeline.view import timeline
from tests.browser.pages import HOSTILE, entry, hostile, many, story, timeline_of
from tests.support.worlds import World, table_path


class Parsed(HTMLParser):
    """The tags and attributes of a document, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inside = ""
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.inside in self.texts:
            self.texts[self.inside].append(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def data_of(page: str) -> dict[str, object]:
    found: dict[str, object] = json.loads("".join(Parsed(page).texts["script"][:1]))
    return found


def test_what_a_log_says_adds_no_tag_and_no_attribute() -> None:
    mean, plain = Parsed(hostile().html), Parsed(timeline_of(entry(0), entry(1)).html)
    assert mean.tags == plain.tags
    assert [each for each in mean.attributes if each not in plain.attributes] == []


def test_the_data_comes_through_as_it_was() -> None:
    found = data_of(hostile().html)
    assert HOSTILE in found["texts"]  # type: ignore[operator]
    assert "<" not in Parsed(hostile().html).texts["script"][0]
    assert found == json.loads(json.dumps(payload(hostile().data)))


def test_the_policy_allows_the_page_s_own_style_and_script_only() -> None:
    parsed = Parsed(story().html)
    (policy,) = [value for tag, name, value in parsed.attributes if name == "content" and "default-src" in value]
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (*parsed.texts["style"], parsed.texts["script"][-1])
    ]
    assert policy.startswith("default-src 'none'; ")
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert "unsafe" not in policy


def test_the_document_names_no_other_place() -> None:
    assert not re.search(r"https?://|//[a-z]|@import|url\(", timeline_of(entry(0)).html.replace("file:///", ""))


def test_the_script_sets_texts_and_never_markup() -> None:
    script = Parsed(story().html).texts["script"][-1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_texts_that_are_often_the_same_stand_once() -> None:
    found = payload(many(100).data)
    assert len(found["texts"]) == 7
    assert "after" in found["entries"][0]


def test_a_notebook_s_frame_is_bounded_and_closed_off(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    shown = timeline(world.path)._repr_html_()
    parsed = Parsed(shown)
    assert parsed.tags == ["iframe"]
    attributes = {name: value for _, name, value in parsed.attributes}
    assert attributes["sandbox"] == "allow-scripts"
    assert "max-height" in attributes["style"]
    assert attributes["srcdoc"] == timeline(world.path).html


def test_the_text_of_a_timeline_is_short() -> None:
    assert repr(story()) == "Timeline('file:///data/flights': versions 0 to 13)"
    assert "no commit is kept" in repr(timeline_of())


def test_a_page_is_saved_in_place_of_another(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("another")
    assert story().save(page) == page
    assert page.read_text(encoding="utf-8") == story().html


def test_a_table_is_called_by_the_last_part_of_its_place() -> None:
    assert [name_of(each) for each in ("s3://lake/a/flights/", "/", "flights")] == ["flights", "/", "flights"]
