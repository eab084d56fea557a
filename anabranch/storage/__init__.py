"""Names and bytes: where a table's files are kept, and the one promise that commits stand on.

This room knows names, bytes and the ways in which a disk or a bucket fails. It knows nothing of Delta: no table, no
version, no action. Guarantee: ``put_if_absent`` has exactly one winner per name, and what it acknowledges stays
(``contract.py``).
"""

from anabranch.storage.contract import Entry, Store
from anabranch.storage.open import open_store

__all__ = ["Entry", "Store", "open_store"]
