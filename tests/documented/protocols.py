"""The protocol: `upgradeTableProtocol`, `addFeatureSupport`, `dropFeatureSupport`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.documented.given import Given, Seen, detail_of, documents, refused

OLD = {"delta.enableDeletionVectors": "false"}


def versions(table: Any) -> list[Any]:
    return detail_of(table, "minReaderVersion", "minWriterVersion")


def features(table: Any) -> list[str]:
    return detail_of(table, "tableFeatures")[0]


@documents("DeltaTable.upgradeTableProtocol")
def the_protocol_is_raised(given: Given) -> Iterator[Seen]:
    table = given.made("id long", (1,), **OLD)
    yield "before", versions(table), [1, 2]
    yield "what it gives", table.upgradeTableProtocol(1, 3), None
    yield "after", versions(table), [1, 3]
    table.upgradeTableProtocol(readerVersion=2, writerVersion=5)
    yield "by keywords", versions(table), [2, 5]
    yield "lower", [table.upgradeTableProtocol(1, 3), versions(table)], [None, [2, 5]]
    unknown = refused(lambda: table.upgradeTableProtocol(99, 99), Exception)
    yield "unknown", unknown, "Exception"
    yield "text", refused(lambda: table.upgradeTableProtocol("1", 3), ValueError), "ValueError"
    yield "text for writers", refused(lambda: table.upgradeTableProtocol(1, "3"), ValueError), "ValueError"


@documents("DeltaTable.addFeatureSupport")
def a_feature_is_added(given: Given) -> Iterator[Seen]:
    table = given.made("id long", (1,), **OLD)
    yield "what it gives", table.addFeatureSupport("domainMetadata"), None
    yield "for writers", [versions(table), "domainMetadata" in features(table)], [[1, 7], True]
    table.addFeatureSupport(featureName="deletionVectors")
    yield "for readers", [versions(table), "deletionVectors" in features(table)], [[3, 7], True]
    commits = table.history().count()
    table.addFeatureSupport("deletionVectors")
    yield "what is there", table.history().count() - commits, 0
    yield "unknown", refused(lambda: table.addFeatureSupport("nobody"), Exception), "Exception"
    yield "a number", refused(lambda: table.addFeatureSupport(1), ValueError), "ValueError"


@documents("DeltaTable.dropFeatureSupport")
def a_feature_is_dropped(given: Given) -> Iterator[Seen]:
    table = given.made("id long", (1,), **OLD)
    table.addFeatureSupport("domainMetadata")
    yield "what it gives", table.dropFeatureSupport("domainMetadata"), None
    yield "the protocol", versions(table), [1, 2]
    table.addFeatureSupport("vacuumProtocolCheck")
    table.dropFeatureSupport("vacuumProtocolCheck")
    yield "of readers", "vacuumProtocolCheck" in features(table), False
    yield "is guarded", "checkpointProtection" in features(table), True
    absent = refused(lambda: table.dropFeatureSupport("rowTracking"), Exception)
    yield "what is not there", absent, "Exception"
    yield "unknown", refused(lambda: table.dropFeatureSupport("nobody"), Exception), "Exception"
    yield "a number", refused(lambda: table.dropFeatureSupport(1), ValueError), "ValueError"
    text = refused(lambda: table.dropFeatureSupport("rowTracking", truncateHistory="yes"), ValueError)
    yield "text for truncateHistory", text, "ValueError"
