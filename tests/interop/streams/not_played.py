"""The cases of delta-spark's suites of streams that no scenario plays, and why."""

from __future__ import annotations

from collections.abc import Mapping

_JVM = "it looks into objects of the JVM, which no user of Python has"
_BETWEEN = "it takes a commit away between two calls that Spark makes of a source, which only a test in the JVM can do"
_OFFSETS = "it tests a class of the JVM; what a checkpoint then has is seen by `losses` and by the offsets of `reading`"
_LOG_OF_SCHEMAS = "it is of the log of schemas, whose files are our own (`tests/streaming/test_schema_log.py`)"

NOT_PLAYED: Mapping[str, str] = {
    "DeltaSourceSuite: fail on missing trailing commit - trailing commit disappears …": _BETWEEN,
    "DeltaSourceSuite: fail on missing trailing commit - empty batch …": _BETWEEN,
    "DeltaSinkSuite: DeltaSink.catalogTable is correctly populated - catalog-based table": _JVM,
    "DeltaSinkSuite: DeltaSink.catalogTable is correctly populated - path-based table": _JVM,
    "DeltaSinkSuite: DeltaSink.deltaLog is not initialized in DeltaSink constructor": _JVM,
    "DeltaSinkSuite: DeltaSink rejects DataFrame with UDT containing NullType": "types of users are classes of the JVM",
    "DeltaSourceOffsetSuite: isInitialSnapshot serializes as isStartingVersion": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset deserialization": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset serialization": _OFFSETS,
    "DeltaSourceOffsetSuite: DeltaSourceOffset.validateOffsets": _OFFSETS,
    "DeltaSourceColumnMappingSuite: deltaLog snapshot should not be updated outside of the stream": _JVM,
    "DeltaSourceSchemaEvolutionSuite: every other case": _LOG_OF_SCHEMAS,
}
