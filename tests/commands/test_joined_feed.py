"""The feeds of statements, folded into that of one commit: the net difference, and labels that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.change_feed import DELETE, INSERT, POSTIMAGE, PREIMAGE
from anabranch.commands.joined_feed import Feed, fold

Told = list[tuple[str, str]]


def told(keys: Sequence[str], *feeds: Feed) -> Told:
    """The net changes of statements whose recorded rows have these values."""
    return sorted((kind, keys[row]) for kind, row in fold(feeds, keys))


def test_a_row_that_came_and_went_is_in_no_feed() -> None:
    assert told(["a", "a"], Feed(inserts=[0]), Feed(deletes=[1])) == []


def test_an_inserted_row_that_was_updated_is_one_insert() -> None:
    assert told(["a", "a", "b"], Feed(inserts=[0]), Feed(pairs=[(1, 2)])) == [(INSERT, "b")]


def test_a_row_that_was_updated_twice_is_one_update() -> None:
    found = told(["a", "b", "b", "c"], Feed(pairs=[(0, 1)]), Feed(pairs=[(2, 3)]))
    assert found == [(POSTIMAGE, "c"), (PREIMAGE, "a")]


def test_an_updated_row_that_was_deleted_is_the_deletion_of_its_oldest_image() -> None:
    assert told(["a", "b", "b"], Feed(pairs=[(0, 1)]), Feed(deletes=[2])) == [(DELETE, "a")]


def test_a_statement_does_not_see_the_rows_that_it_writes_itself() -> None:
    found = told(["a", "b", "b", "c"], Feed(pairs=[(0, 1), (2, 3)]))
    assert found == [(POSTIMAGE, "b"), (POSTIMAGE, "c"), (PREIMAGE, "a"), (PREIMAGE, "b")]


ROWS = st.sampled_from("abc")


@st.composite
def stories(draw: st.DrawFn) -> tuple[Counter[str], list[str], list[Feed]]:
    """A table of a few equal rows, and statements that change rows which are there."""
    rows, keys, feeds = Counter(draw(st.lists(ROWS, max_size=4))), list[str](), list[Feed]()
    first = rows.copy()
    for _ in range(draw(st.integers(1, 5))):
        there = sorted(rows.elements())
        changed = draw(st.permutations(there))[: draw(st.integers(0, len(there)))]
        split = draw(st.integers(0, len(changed)))
        gone, updated = changed[:split], [(old, draw(ROWS)) for old in changed[split:]]
        came = draw(st.lists(ROWS, max_size=2))

        def number(row: str) -> int:
            keys.append(row)
            return len(keys) - 1

        feeds.append(Feed([*map(number, gone)], [*map(number, came)], [(number(a), number(b)) for a, b in updated]))
        rows = rows - Counter(changed) + Counter(came) + Counter(new for _, new in updated)
    return first, keys, feeds


@given(stories())
def test_the_net_changes_are_the_difference_of_the_table(story: tuple[Counter[str], list[str], list[Feed]]) -> None:
    first, keys, feeds = story
    last = first.copy()
    for feed in feeds:
        last.subtract(keys[row] for row in (*feed.deletes, *(old for old, _ in feed.pairs)))
        last.update(keys[row] for row in (*feed.inserts, *(new for _, new in feed.pairs)))
    net = first.copy()
    changes = fold(feeds, keys)
    for kind, row in changes:
        net[keys[row]] += 1 if kind in (INSERT, POSTIMAGE) else -1
    assert +net == +last
    kinds = Counter(kind for kind, _ in changes)
    assert kinds[PREIMAGE] == kinds[POSTIMAGE]
    assert all(count >= 0 for count in net.values())
