"""Curves: the order in which clustered rows lie, so that rows which are near in several columns share a file.

Pure data, passed between the rooms that choose an order and the engine that sorts by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Kind = Literal["zorder", "hilbert"]
ORIGINS = pa.schema([pa.field("source", pa.int32(), nullable=False), pa.field("row", pa.int64(), nullable=False)])
"""Where a row comes from: the place of its file in the list of files that was read, and its position in that file."""


@dataclass(frozen=True)
class Curve:
    """An order over the values of some columns (names as users say them, nested ones with dots)."""

    columns: tuple[str, ...]
    kind: Kind
