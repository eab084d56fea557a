"""Counts of units since the epoch, 1970-01-01T00:00:00Z, of Arrow's timestamps, and timestamps of such counts.

Pure arithmetic on instants, in which no time zone plays a part.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.monotonic import LowerBound, Preimage, exactly
from anabranch._protocol.expressions.table import Datum

SECOND, MILLISECOND, MICROSECOND = 1_000_000, 1000, 1
"""Units in microseconds."""
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def count_begun(moments: Datum, unit: int) -> Datum:
    """The number of units from the epoch to the beginning of the unit in which a timestamp is: rounded down."""
    micros, size = moments.cast(pa.int64()), pa.scalar(unit, pa.int64())
    whole = pc.divide(micros, size)
    is_rounded_up = pc.less(micros, pc.multiply(whole, size))
    return pc.subtract(whole, is_rounded_up.cast(pa.int64()))


def count_whole(moments: Datum, unit: int) -> Datum:
    """The number of whole units between the epoch and a timestamp: rounded towards zero."""
    return pc.divide(moments.cast(pa.int64()), pa.scalar(unit, pa.int64()))


def moments_of(counts: Datum, unit: int) -> Datum:
    """The timestamps so many units after the epoch. Raises ArrowInvalid: the microseconds need more than 64 bits."""
    micros = pc.multiply_checked(counts.cast(pa.int64()), pa.scalar(unit, pa.int64()))
    return micros.cast(pa.timestamp("us", "UTC"))


def count_preimage(bound: LowerBound, unit: int) -> Preimage:
    """The instants whose number of begun units is within a bound. Raises OverflowError: they lie outside the years 1 to
    9999.
    """
    first = bound.value + bound.is_open
    return exactly(LowerBound(EPOCH + dt.timedelta(microseconds=first * unit)))
