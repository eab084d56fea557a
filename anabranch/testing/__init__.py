"""Tools to test pipelines with.

- `at_phase`, `PHASES`: run something at a named moment inside a transaction, on one thread, without sleeping.
- `DictStore`, `ObservedStore`, `Call`: a store in memory, and one that reports every call and may fail it.
- `FAULTS`, `Fault`: the ways in which a call of a store may fail.
- `mounted`: lets the product use your own store.
- `ArrowEngine`, `Row`: runs the commands without a JVM.
- `anabranch.testing.matrix`: runs the documented matrices of conflicts; the command line's ``matrix`` prints them.

Knows everything below the public API. Only tests, the laboratory and that one command import it. The simulator that
proves the product is in `laboratory/`, which no wheel contains.
"""

from anabranch._storage.open import mounted
from anabranch._transaction.phases import PHASES
from anabranch.testing.arrow_engine import ArrowEngine, Row
from anabranch.testing.faults import FAULTS, Fault
from anabranch.testing.phases import at_phase
from anabranch.testing.stores import Call, DictStore, ObservedStore

__all__ = [
    "FAULTS",
    "PHASES",
    "ArrowEngine",
    "Call",
    "DictStore",
    "Fault",
    "Row",
    "ObservedStore",
    "at_phase",
    "mounted",
]
