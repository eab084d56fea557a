"""What properties ask of a protocol; the expected protocols are those that delta-spark 4.4 was seen to write."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from anabranch._protocol.actions import Protocol
from anabranch._protocol.features.requested_by_properties import (
    ProtocolRequest,
    read_protocol_request,
    without_requests,
)
from anabranch.errors import InvalidProperty, UnsupportedFeature

BASIC = frozenset({"appendOnly", "invariants"})
OF_FOUR = BASIC | {"checkConstraints", "changeDataFeed", "generatedColumns"}


def asked(**properties: str) -> Mapping[str, str]:
    return {f"delta.{key.replace('__', '.')}": value for key, value in properties.items()}


def named(*features: str, readers: frozenset[str] | None = None) -> Protocol:
    return Protocol(1 if readers is None else 3, 7, readers, frozenset(features))


V1_2, V1_4 = asked(minReaderVersion="1", minWriterVersion="2"), asked(minReaderVersion="1", minWriterVersion="4")
VECTORS = frozenset({"deletionVectors"})


@pytest.mark.parametrize(
    ("properties", "needed", "protocol"),
    [
        (V1_2, set(), Protocol(1, 2)),
        (asked(minReaderVersion="1", minWriterVersion="3"), set(), Protocol(1, 3)),
        (V1_4, set(), Protocol(1, 4)),
        (asked(minReaderVersion="2", minWriterVersion="5"), set(), Protocol(2, 5)),
        (asked(minReaderVersion="2", minWriterVersion="6"), set(), Protocol(2, 6)),
        (asked(minReaderVersion="1", minWriterVersion="7"), set(), Protocol(1, 1)),
        (asked(minReaderVersion="3", minWriterVersion="7"), set(), Protocol(1, 1)),
        (asked(minReaderVersion="3"), set(), Protocol(1, 2)),
        (asked(minWriterVersion="7"), set(), Protocol(1, 1)),
        (asked(minReaderVersion="1", minWriterVersion="1"), set(), Protocol(1, 1)),
        (V1_4, VECTORS, named("deletionVectors", *OF_FOUR, readers=VECTORS)),
        (asked(feature__deletionVectors="supported"), BASIC, named("deletionVectors", *BASIC, readers=VECTORS)),
        (asked(feature__checkConstraints="supported"), BASIC, Protocol(1, 3)),
        (asked(feature__domainMetadata="supported"), BASIC, named("domainMetadata", *BASIC)),
        (asked(feature__appendOnly="supported", minWriterVersion="7"), set(), named("appendOnly")),
        ({**V1_4, **asked(feature__domainMetadata="supported")}, set(), named("domainMetadata", *OF_FOUR)),
    ],
)
def test_a_new_table_gets_the_least_protocol_that_says_what_is_asked(
    properties: Mapping[str, str], needed: frozenset[str], protocol: Protocol
) -> None:
    assert read_protocol_request("t", properties).least_for(frozenset(needed)) == protocol


@pytest.mark.parametrize(
    ("present", "properties", "protocol"),
    [
        (Protocol(1, 2), V1_4, Protocol(1, 4)),
        (Protocol(1, 2), asked(minReaderVersion="3", minWriterVersion="7"), Protocol(1, 2)),
        (Protocol(1, 2), asked(minReaderVersion="1", minWriterVersion="1"), Protocol(1, 2)),
        (Protocol(1, 2), asked(minReaderVersion="2", minWriterVersion="5"), Protocol(2, 5)),
        (
            Protocol(1, 4),
            asked(feature__deletionvectors="supported"),
            named("deletionVectors", *OF_FOUR, readers=VECTORS),
        ),
        (named("domainMetadata"), V1_2, named("domainMetadata", *BASIC)),
    ],
)
def test_a_table_that_is_there_only_gains(present: Protocol, properties: Mapping[str, str], protocol: Protocol) -> None:
    assert read_protocol_request("t", properties).on_top_of(present) == protocol


def test_what_is_asked_of_the_protocol_stands_in_no_metadata() -> None:
    other = {"team": "harbour", "delta.appendOnly": "true"}
    properties = {**V1_2, "delta.ignoreProtocolDefaults": "true", "delta.feature.appendOnly": "supported", **other}
    assert without_requests(properties) == other
    assert read_protocol_request("t", other) == ProtocolRequest()


@pytest.mark.parametrize(
    "properties",
    [
        asked(minReaderVersion="4"),
        asked(minReaderVersion="0"),
        asked(minWriterVersion="8"),
        asked(minWriterVersion="two"),
        asked(minWriterVersion=""),
        asked(ignoreProtocolDefaults="perhaps"),
        asked(feature__appendOnly="yes"),
    ],
)
def test_values_that_ask_for_no_protocol_are_refused(properties: Mapping[str, str]) -> None:
    with pytest.raises(InvalidProperty):
        read_protocol_request("t", properties)


def test_a_feature_that_is_not_held_is_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedFeature, match="catalogManaged"):
        read_protocol_request("t", asked(feature__catalogManaged="supported"))
