"""The site of a command: where its rows are, and what this process may do with them.

Facts only; `anabranch._spark.writing.sites` creates a site with Spark, `site_without_spark` one without. Guarantee:
Arrow at a site reads and writes what the session there would have read and written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.contract import Store


@dataclass(frozen=True)
class Site:
    """Where rows are read, computed and written.

    Attributes:
        store: the table's store.
        is_plain: whether this process reads and writes Parquet as the session's settings demand.
        most_bytes: maximum bytes of files that are read here; remote executors read larger sets. None: unlimited.
        says: further key-value metadata of footers, from which Spark learns the calendar of dates.
        spells: whether this process writes partition values of every type as text; otherwise Spark's settings decide
            the text of some types.
        altered: settings that change the meaning of functions in a table's rules.
        threads: number of reading, and of writing, threads; 0: no further threads.
        copies: whether files that are not on a disk are copied to one for work on local files.
    """

    store: Store = field(repr=False)
    is_plain: bool = True
    most_bytes: int | None = None
    says: Mapping[str, str] = field(default_factory=dict)
    spells: bool = True
    altered: frozenset[str] = frozenset()
    threads: int = field(default_factory=lambda: min(8, os.cpu_count() or 1))
    copies: bool = False

    def check_plain(self, files: FileSet) -> None:
        """Raises Unsupported if only Spark reads and writes such files under the session's settings."""
        if files.layouts:
            raise Unsupported("files of the table name their columns by numbers")
        if not self.is_plain:
            raise Unsupported("the session's settings are for Spark's own reader and writer")

    def check_read(self, files: FileSet) -> None:
        """Raises Unsupported if Spark has to read these files."""
        self.check_plain(files)
        size = pc.sum(files.files["size"]).as_py() or 0
        if self.most_bytes is not None and size > self.most_bytes:
            most = f"{self.most_bytes >> 20} MB"
            raise Unsupported(f"Spark's executors are elsewhere, and the files take more than {most}")


def site_without_spark(store: Store) -> Site:
    """The site of a process without Spark."""
    return Site(store, copies=True)
