"""The site of a command: where its rows are, and what this process may do with them.

Facts only; who knows them makes a site (`anabranch._spark.writing.sites`, or `alone` without Spark). Guarantee: what
Arrow reads and writes at a site is what the session there would have read and written.
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
        store: the table's.
        is_plain: whether Parquet is read and written here as the session says.
        most_bytes: of files that are read here: executors elsewhere read what is larger. None: whatever their size.
        says: what footers of files say besides, by which Spark knows how their days are counted.
        spells: whether partition values are spelled here whatever their type; else Spark's settings spell some.
        altered: the settings by which functions in a table's rules mean something else.
        threads: how many read, and as many write; with 0 this one does.
        copies: whether files that lie on no disk are copied to one where they have to lie there.
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
        """Raises Unsupported: only Spark reads and writes files such as these as the session says."""
        if files.layouts:
            raise Unsupported("files of the table name their columns by numbers")
        if not self.is_plain:
            raise Unsupported("the session's settings are for Spark's own reader and writer")

    def check_read(self, files: FileSet) -> None:
        """Raises Unsupported: these files are read by Spark."""
        self.check_plain(files)
        size = pc.sum(files.files["size"]).as_py() or 0
        if self.most_bytes is not None and size > self.most_bytes:
            most = f"{self.most_bytes >> 20} MB"
            raise Unsupported(f"Spark's executors are elsewhere, and the files take more than {most}")


def alone(store: Store) -> Site:
    """The site of a process without Spark."""
    return Site(store, copies=True)
