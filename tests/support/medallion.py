"""The jobs in `examples/`, as they are and for delta-spark."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JOB = EXAMPLES / "medallion.py"
STREAM = EXAMPLES / "streaming.py"
CUSTOMERS = EXAMPLES / "customers.py"
ERASURE = EXAMPLES / "erasure.py"
JOBS = (JOB, STREAM, CUSTOMERS, ERASURE)
STREAMED = ("bronze", "silver", "gold")
TABLES = ("bronze/changes", "silver/orders", "gold/revenue", "gold/evenings")
THEIR_LINE = "from delta_spark import DeltaTable, session"
OUR_LINE = f"from anabranch import DeltaTable, session  # on delta-spark: {THEIR_LINE}"


def for_delta_spark(job: Path = JOB) -> str:
    """A job with that line changed."""
    return job.read_text(encoding="utf-8").replace(OUR_LINE, THEIR_LINE)
