"""The storage of a table's files, as names and bytes.

Knows names, bytes, and how a disk or a bucket fails. Knows nothing of Delta: no table, no version, no action.
Guarantee: ``put_if_absent`` has exactly one winner per name, and what it acknowledges is durable (``contract.py``).
"""

from anabranch._storage.contract import Entry, Store
from anabranch._storage.open import open_store

__all__ = ["Entry", "Store", "open_store"]
