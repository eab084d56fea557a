"""The site of a command: where its rows are, and what this process may do with them.

Facts only; who knows them makes a site (`anabranch.spark.sites`, or `alone` without Spark). Guarantee: what Arrow reads
and writes at a site is what the session there would have read and written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow.compute as pc

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.storage.contract import Store


@dataclass(frozen=True)
class Site:
    """Where rows are read, computed and written.

    Attributes:
        store: the table's.
        is_plain: whether Parquet is read and written here as the session says.
        most_bytes: of files that are read here: executors elsewhere read what is larger. None: whatever their size.
    """

    store: Store = field(repr=False)
    is_plain: bool = True
    most_bytes: int | None = None

    def reads(self, files: FileSet) -> bool:
        """Whether these files are read here."""
        if not len(files.files) or files.layouts or not self.is_plain:
            return False
        return self.most_bytes is None or (pc.sum(files.files["size"]).as_py() or 0) <= self.most_bytes


def alone(store: Store) -> Site:
    """The site of a process without Spark."""
    return Site(store)
