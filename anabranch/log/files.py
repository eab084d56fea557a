"""Files: where the bytes lie that a path of the log names, in the table's folder or outside it.

Knows both spellings of paths and how stores are opened. The one place that turns a path into a store and a name in it.
Guarantee: a file in the table's folder is found through the table's own store, whatever the path looks like; what comes
from outside, as in a shallow clone, is another table's, and only to be read.
"""

from __future__ import annotations

from anabranch.protocol.paths import outside, store_name
from anabranch.storage.contract import Store
from anabranch.storage.open import open_beside


def located_file(store: Store, path: str) -> tuple[Store, str]:
    """The store that keeps the file of a path, and its name there.

    Args:
        store: of the table in whose log the path stands.

    Raises:
        ValueError: the path leaves the table's folder, or goes up and down.
        UnknownStore: it names no store.

    Example:
        >>> located_file(store, "file:/data/origin/part%201.parquet")
        (LocalStore(root='/data/origin'), 'part 1.parquet')
    """
    name = store_name(store.url, path)
    if name is not None:
        return store, name
    folder, base = outside(path)
    return open_beside(store, folder), base
