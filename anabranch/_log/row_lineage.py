"""Reads row lineage: the original row of each row in a moved file, as the move recorded it beside its files.
Knows one Parquet file in the store. Guarantee: the result has the columns of `ORIGINS` and no gap, or is refused.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._protocol.layout.curves import ORIGINS
from anabranch._protocol.layout.paths import decode
from anabranch._storage.contract import Store
from anabranch._storage.native import native_file
from anabranch.errors import CorruptLog, NotFound


def origins_of(store: Store, path: str) -> pa.Table:
    """The row lineage at a path that a commit names. Raises CorruptLog: the file is missing or malformed."""
    try:
        table = pq.read_table(native_file(store.get(decode(path))), columns=ORIGINS.names)
        return pa.table([table[name].cast(ORIGINS.field(name).type) for name in ORIGINS.names], schema=ORIGINS)
    except NotFound:
        raise CorruptLog(table=store.url, file=path, reason="the record of moved rows is not there.") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptLog(table=store.url, file=path, reason=f"the record of moved rows is damaged ({error}).") from None
