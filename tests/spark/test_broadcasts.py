"""Which source of a MERGE is sent to every executor, which on a cluster means through the driver."""

from __future__ import annotations

from pyspark.sql import types as T

from anabranch._spark.merging.merge import is_broadcast
from anabranch._spark.merging.merge_source import MergeSource

MIB = 1 << 20
COLUMNS = T.StructType([T.StructField("id", T.LongType()), T.StructField("x", T.LongType())])


def test_on_a_cluster_what_counts_is_what_the_rows_take_in_the_drivers_memory() -> None:
    many = MergeSource(
        "file:///kept", COLUMNS, 50_000_000, 30 * MIB
    )  # what repeats itself takes next to nothing in a file
    assert is_broadcast(many, "local[2]")
    assert not is_broadcast(many, "spark://host:7077")
    assert not is_broadcast(many, None), "the client of a server is not told where it runs"


def test_a_small_source_is_broadcast_everywhere() -> None:
    small = MergeSource("file:///kept", COLUMNS, 100_000, MIB)
    assert all(is_broadcast(small, master) for master in ("local", "yarn", "spark://host:7077", None))
