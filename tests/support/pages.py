"""Which data pages a Parquet file has, by the headers of its pages."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from anabranch._log.thrift import Bytes, struct

_TYPE, _COMPRESSED = 1, 3
_VERSIONS = {0: 1, 3: 2}


def page_versions(file: Path) -> set[int]:
    """The versions of its data pages."""
    data, footer, found = file.read_bytes(), pq.read_metadata(file), set[int]()
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            at = chunk.dictionary_page_offset or chunk.data_page_offset
            end = at + chunk.total_compressed_size
            while at < end:
                header = Bytes(data[at:end])
                fields = struct(header, 0)
                found |= {_VERSIONS[fields[_TYPE]]} if fields[_TYPE] in _VERSIONS else set()
                at += header.at + fields[_COMPRESSED]
    return found
