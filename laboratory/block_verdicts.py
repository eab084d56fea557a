"""Verdicts on blocks: what the transactions of several statements promise besides what every transaction does.

Knows what was seen, and what a block means (`laboratory.blocks`). Pure. One that asks to be serializable stands in the
order as in the log; the feed of its version is the net difference that it makes at its place; one that commits nothing
leaves no file; and under `redo` it is refused only where its program would notice that it ran again, or where nothing
may run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from anabranch.errors import (
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
    StagedFilesVacuumed,
)
from laboratory.blocks import Block, counts_of, net_of
from laboratory.feeds import Feeds
from laboratory.oracle import Landed, Order, replayed, serial_order
from laboratory.runs import Act, History, name_of
from laboratory.statements import Row, Rows, Told, bag

_TAKEN, _BROUGHT = ("delete", "update_preimage"), ("insert", "update_postimage")


def blocks_fit(order: Order) -> bool:
    """Whether every block that asks to be serializable stands behind all that were committed before it."""
    return all(
        earlier.version < later.version or not _is_serializable(earlier)
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def _is_serializable(made: Landed) -> bool:
    return isinstance(made.statement, Block) and made.statement.isolation == "Serializable"


def block_was_idle(block: Block, told: Told, rows: Rows) -> bool:
    """Whether a block that committed nothing may have met these rows: it gave up, or had nothing to do; and it told
    what it tells there.
    """
    return (block.gives_up or block.is_idle(rows)) and told in (None, block.apply(rows)[1])


def net_faults(history: History, landed: Sequence[Landed]) -> Iterator[str]:
    """Feeds of blocks that are not the net difference which these make at their place in any order that explains what
    was seen up to their versions.
    """
    feeds = history.feeds
    if feeds is None or not history.plan.setup.feed:
        return
    seen = {version.number: version.rows for version in history.versions}
    initial, level = history.versions[history.base].rows, history.plan.setup.isolation
    for made in landed:
        if not isinstance(made.statement, Block):
            continue
        there, said = [each for each in landed if each.version <= made.version], _said(feeds, made.version)

        def tells(order: Order, made: Landed = made, said: tuple[Counter[Row], ...] = said) -> bool:
            return blocks_fit(order) and (made not in order or _net(initial, order, made) == said)

        order = serial_order(initial, there, seen, level=level, fits=blocks_fit)
        if order is not None and serial_order(initial, there, seen, level=level, fits=tells) is None:
            taken, brought = (sorted(rows.elements(), key=str) for rows in _net(initial, order, made))
            wanted = f"take {taken} and bring {brought}"
            are = sorted(feeds.plain[made.version], key=str)
            yield f"the changes of version {made.version} should {wanted}, and are {are}"


def _said(feeds: Feeds, version: int) -> tuple[Counter[Row], ...]:
    """The rows that a version's feed takes, and those that it brings."""
    return tuple(bag(row for kind, row in feeds.plain[version] if kind in kinds) for kinds in (_TAKEN, _BROUGHT))


def _net(initial: Rows, order: Order, made: Landed) -> tuple[Counter[Row], ...]:
    """The rows that a block takes, and those that it brings, at its place in an order."""
    assert isinstance(made.statement, Block)
    net = net_of(made.statement, replayed(initial, order[: order.index(made)]))
    return net.taken, net.brought


def left_faults(history: History) -> Iterator[str]:
    """Files of blocks that committed nothing, where no store failed: such a block takes all of them away."""
    for act in history.acts:
        if isinstance(act.statement, Block) and act.told in ("refused", "nothing") and not history.plan.failures:
            own = f"-{name_of(act.who)}-0000-"
            left = sorted(name for name in history.kept if own in name)
            if left:
                yield f"writer {act.who} was told {act.told!r}, and left {left}"


# -- redo --------------------------------------------------------------------------------------------------------------

_FINAL = MetadataChangedException | ProtocolChangedException | StagedFilesVacuumed


def redo_faults(history: History) -> Iterator[str]:
    """Blocks that were refused though the dial is `redo`, and would have told the same on every version on which they
    may have run again.
    """
    if history.plan.failures:
        return
    for act in history.acts:
        if isinstance(act.statement, Block) and _ought_to_run_again(history, act, act.statement):
            yield f"writer {act.who} was refused, and would have told the same again: {act.error}"


def _ought_to_run_again(history: History, act: Act, block: Block) -> bool:
    error = act.error
    if act.told != "refused" or not isinstance(error, DeltaConcurrentModificationException):
        return False
    dial = block.resolution or history.plan.setup.resolution
    base, is_final = error.facts.get("base_version"), isinstance(error, _FINAL)
    planned = history.plan.statements[act.who]
    was_told_of_failure = isinstance(planned, Block) and len(planned.statements) > len(block.statements)
    if dial != "redo" or is_final or was_told_of_failure or not block.sees_no_rows or not isinstance(base, int):
        return False
    met = history.versions[base : act.last_version + 1]
    if any(each.kinds & {"metaData", "protocol"} for _, each in pairwise(met)):
        return False
    after = max(int(error.facts.get("winner_version") or 0), base + 1)  # it ran again on this version, or a later one
    later = [version for version in met if version.number >= after]
    return all(counts_of(block, version.rows) == counts_of(block, met[0].rows) for version in later)
