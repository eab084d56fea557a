"""What a commit says of its steps is what EXPLAIN prints, short and without values of rows."""

from __future__ import annotations

from anabranch._protocol.steps import RowPlan, Step


def test_a_step_says_what_does_it_and_why() -> None:
    steps = [Step("find rows", log=True), Step("write new rows"), Step("join", "its keys are nested")]
    said = ["find rows: the log", "write new rows: Arrow", "join: Spark, since its keys are nested"]
    assert [str(each) for each in steps] == said


def test_what_is_done_twice_by_the_same_is_said_once_and_by_another_twice() -> None:
    find, other = Step("find rows"), Step("find rows", "a date is none")
    assert RowPlan.of([find, other, find]) == RowPlan((find, other))


def test_groups_of_files_that_are_written_anew_alike_are_counted() -> None:
    groups = [Step("pack", groups=(2,)), Step("pack", "there is a NaN", groups=(5,)), Step("pack", groups=(1,))]
    assert str(RowPlan.of(groups)) == (
        "pack 3 files, in 2 groups: Arrow\npack 5 files, in 1 group: Spark, since there is a NaN"
    )
    ordered = Step("order", order=("a", "b"), groups=(1,))
    assert str(ordered) == "order 1 file by a, b, in 1 group: Arrow"


def test_a_commit_holds_no_literal_of_an_expression() -> None:
    secret = """the text 'a ''secret'' \\' one' or "another secret": it is not read in one way"""
    assert RowPlan((Step("find rows", secret),)).commit_text == (
        "find rows: Spark, since the text '…' or '…': it is not read in one way"
    )


def test_what_a_commit_holds_is_short_and_of_one_line_for_each_step() -> None:
    long = RowPlan(tuple(Step(f"step {i}", f"the column {'x' * 1000}\n is\x1b read") for i in range(100)))
    lines = long.commit_text.split("\n")
    assert len(lines) == 21
    assert lines[-1] == "and 80 more steps"
    assert max(map(len, lines)) == 200
    assert "\x1b" not in RowPlan((Step("a", "\x1b[31m"),)).commit_text
