"""Blocks as functions from rows to rows, and what is judged of them, by cases whose answer is known."""

from __future__ import annotations

from laboratory.block_verdicts import block_was_idle, blocks_fit
from laboratory.blocks import Block, Look, Recall, Tell, Unless, counts_of, net_of
from laboratory.oracle import Landed
from laboratory.statements import Append, Delete, Merge, Plus, Put, Rows, Select, Take, Test, Update, When, bag

ROWS: Rows = ((1, 0, 0), (2, 1, 1))
NEW = (9, 1, 0)
UPSERT = (When("matched", sets=(Take("x"),)), When("not matched"))


def test_each_statement_meets_the_rows_of_the_one_before_and_tells_its_own_number() -> None:
    block = Block((Append((NEW,)), Update((Plus("x"),), Test("p", "=", 1)), Delete(Test("x", "=", 2))))
    assert block.apply(ROWS) == (((1, 0, 0), (9, 1, 1)), (None, 2, 1))


def test_a_program_uses_what_it_has_seen_last() -> None:
    seen = (Look(Test("p", "=", 1)), Recall((Put("k", 7),)), Tell(Test("k", "=", 1)), Unless(Append((NEW,))))
    rows, told = Block(seen).apply(ROWS)
    assert rows == ((1, 0, 1), (2, 1, 1), (7, 1, 1))
    assert told == (((2, 1, 1),), None, 1, None)
    nothing = Block((Look(Test("p", "=", 5)), Recall(()), Unless(Append((NEW,)))))
    assert nothing.apply(ROWS)[0] == (*ROWS, NEW)


def test_the_net_difference_has_no_row_that_came_and_went() -> None:
    block = Block(
        (
            Append((NEW, (8, 0, 0))),
            Update((Plus("x"),), Test("k", ">=", 2)),
            Update((Plus("x"),), Test("k", "=", 2)),
            Delete(Test("k", "=", 8)),
        )
    )
    net = net_of(block, ROWS)
    assert net.taken == bag([(2, 1, 1)])
    assert net.brought == bag([(2, 1, 3), (9, 1, 1)])


def test_the_net_difference_has_rows_that_were_given_their_own_values_and_copies() -> None:
    block = Block((Update((Put("x", 1),), Test("k", "=", 2)), Select((Put("p", 5),), Test("k", "=", 1))))
    net = net_of(block, ROWS)
    assert net.taken == bag([(2, 1, 1)])
    assert net.brought == bag([(2, 1, 1), (1, 5, 0)])
    merge = Block((Merge(((1, 0, 4), NEW), ("k",), UPSERT), Delete(Test("k", "=", 1))))
    assert net_of(merge, ROWS).taken == bag([(1, 0, 0)])
    assert net_of(merge, ROWS).brought == bag([NEW])
    assert net_of(Block((Select((), Test("k", "=", 1), overwrites=True),)), ROWS).taken == bag(ROWS)


def test_a_merge_reports_clause_by_clause() -> None:
    inserts, updates = (Merge(((key, 0, 0),), ("k",), UPSERT) for key in (5, 2))
    assert inserts.apply(ROWS)[1] == updates.apply(ROWS)[1] == 1
    assert counts_of(Block((inserts,)), ROWS) != counts_of(Block((updates,)), ROWS)


def test_a_block_that_asks_to_be_serializable_stands_where_it_was_committed() -> None:
    strict = Landed(0, Block((Delete(Test("p", "=", 1)),), isolation="Serializable"), 2, 0, 9)
    append = Landed(1, Append((NEW,)), 1, 0, 5)
    assert blocks_fit((append, strict))
    assert not blocks_fit((strict, append))
    assert blocks_fit((Landed(0, Block(()), 2, 0, 9), append))


def test_what_committed_nothing_had_nothing_to_do_and_told_so() -> None:
    idle = Block((Look(Test("k", "=", 1)), Delete(Test("p", "=", 5))))
    assert block_was_idle(idle, (((1, 0, 0),), 0), ROWS)
    assert not block_was_idle(idle, ((), 0), ROWS)
    assert not block_was_idle(Block((Append((NEW,)),)), (None,), ROWS)
    assert block_was_idle(Block((Append((NEW,)),), gives_up=True), (None,), ROWS)


def test_a_block_is_told_as_sql() -> None:
    block = Block((Append((NEW,)), Look(Test("p", "=", 1)), Unless(Append((NEW,)))), resolution="redo")
    assert str(block).startswith("BEGIN (redo); INSERT (9, 1, 0); rows = SELECT")
    assert str(block).endswith("IF NOT EXISTS rows THEN INSERT (9, 1, 0); COMMIT")
