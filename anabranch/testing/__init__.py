"""Tools to test pipelines with, and the laboratory that the product itself is proved in.

- `at_phase`: let something happen at a named moment inside a transaction, on one thread, with no sleep.
- `mounted`, `DictStore`, `Watched`, `Fault`: put a store of your own, or one that fails, beneath the product.
- `ArrowEngine`: the commands without a JVM.
- `Plan`, `run`, `violations`: play real transactions under a deterministic scheduler and ask the oracle.

This room may know everything below the doors; nothing but tests may know this room, and the command line's ``matrix``,
which is one.
"""

from anabranch.storage.open import mounted
from anabranch.testing.arrow_engine import ArrowEngine, Row
from anabranch.testing.faults import FAULTS, Fault
from anabranch.testing.phases import at_phase
from anabranch.testing.plans import Dice, Failure, Plan, Script, Setup
from anabranch.testing.runs import History, run
from anabranch.testing.stores import Call, DictStore, Watched
from anabranch.testing.verdicts import Violation, violations
from anabranch.transaction.phases import PHASES

__all__ = [
    "FAULTS",
    "PHASES",
    "ArrowEngine",
    "Call",
    "Dice",
    "DictStore",
    "Failure",
    "Fault",
    "History",
    "Plan",
    "Row",
    "Script",
    "Setup",
    "Violation",
    "Watched",
    "at_phase",
    "mounted",
    "run",
    "violations",
]
