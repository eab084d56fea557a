"""Two scenes about the same rows: a counter that all writers raise, and transfers between a few accounts.

Without Spark, in threads. All conflicts are real; the dial ``redo`` finishes what they would refuse.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.compute as pc

from anabranch._api.functions import append, history
from anabranch._api.open_table import table
from anabranch._api.transaction import transaction
from anabranch.errors import DeltaConcurrentModificationException

WRITERS, TURNS, ACCOUNTS, EACH = 8, 3, 4, 100
_REDO = {"anabranch.conflictResolution": "redo"}


@dataclass(frozen=True)
class Scene:
    """The outcome of a scene: how many turns were refused, and how many runs of commands were redone."""

    refused: int
    redone: int


def count_together(path: str) -> tuple[Scene, int]:
    """All writers raise one counter; returns the count as well."""
    append(path, [{"id": 1, "n": 0}], properties=_REDO)
    scene = _run_together(path, lambda writer, turn: table(path).update("id = 1", {"n": "n + 1"}))
    return scene, table(path).to_arrow().to_pylist()[0]["n"]


def transfer_together(path: str) -> tuple[Scene, Sequence[int]]:
    """All writers move money between accounts, each time by two UPDATEs and an INSERT in one transaction; returns the
    sum of all accounts at each version as well.
    """
    append(path, [{"kind": "account", "id": n, "amount": EACH} for n in range(ACCOUNTS)], properties=_REDO)

    def move(writer: int, turn: int) -> None:
        payer, payee = random.Random(f"{writer} {turn}").sample(range(ACCOUNTS), 2)
        with transaction(path):
            accounts = table(path)
            accounts.update(f"kind = 'account' AND id = {payer}", {"amount": "amount - 1"})
            accounts.update(f"kind = 'account' AND id = {payee}", {"amount": "amount + 1"})
            accounts.append([{"kind": "transfer", "id": payer, "amount": 1}])

    scene = _run_together(path, move)
    return scene, [_sum_at(path, version) for version in range(WRITERS * TURNS + 1)]


def _sum_at(path: str, version: int) -> int:
    rows = table(path).to_arrow(["amount"], "kind = 'account'", version=version)
    return pc.sum(rows["amount"]).as_py() or 0


def _run_together(path: str, take_turn: Callable[[int, int], object]) -> Scene:
    def write(writer: int) -> int:
        refused = 0
        for turn in range(TURNS):
            try:
                take_turn(writer, turn)
            except DeltaConcurrentModificationException:
                refused += 1
        return refused

    with ThreadPoolExecutor(WRITERS) as pool:
        refused = sum(pool.map(write, range(WRITERS)))
    redone = sum(int(commit["operationMetrics"].get("numRedoneRuns", 0)) for commit in history(path))
    return Scene(refused, redone)
