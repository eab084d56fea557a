"""Protocol requests in table properties; in the log the protocol is an action of its own.

Knows ``delta.minReaderVersion``, ``delta.minWriterVersion``, ``delta.feature.<name>`` and
``delta.ignoreProtocolDefaults``, as delta-spark 4 interprets them. Pure. Guarantee: none of them gets into a table's
metadata, and they never downgrade a protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch._protocol.actions import Protocol
from anabranch._protocol.features.refused import why_refused
from anabranch._protocol.features.table_features import SUPPORTED, reader_features, with_features, writer_features
from anabranch._protocol.properties import FEATURE_PREFIX, IGNORE_DEFAULTS, VERSIONS
from anabranch.errors import InvalidProperty, UnsupportedFeature

NO_REQUESTS: Mapping[str, str] = {}
_NAMED_BY_READERS, _NAMED_BY_WRITERS = 3, 7


@dataclass(frozen=True)
class ProtocolRequest:
    """The requested features by name, and legacy versions for readers and writers, if any.

    Example:
        >>> read_protocol_request("t", {"delta.minWriterVersion": "4", "team": "harbour"}).least_for(frozenset())
        Protocol(min_reader=1, min_writer=4, reader_features=None, writer_features=None)
    """

    features: frozenset[str] = frozenset()
    versions: tuple[int, int] | None = None

    @property
    def is_older_than_vectors(self) -> bool:
        """Whether the requested versions exclude deletion vectors."""
        return self.versions is not None and self.versions[1] < _NAMED_BY_WRITERS and not self.features

    @property
    def default_features(self) -> frozenset[str]:
        """The request of a new table unless versions are requested."""
        return frozenset({"appendOnly", "invariants"}) if self.versions is None else frozenset()

    def least_for(self, needed: frozenset[str]) -> Protocol:
        """The least protocol of a new table that fulfils the request and has these features."""
        return with_features(self._legacy_protocol() or Protocol(1, 1), needed | self.features)

    def on_top_of(self, present: Protocol) -> Protocol:
        """This protocol with the request added; lower versions change nothing."""
        requested = self._legacy_protocol()
        if requested is None or present.min_writer >= _NAMED_BY_WRITERS:
            implied = frozenset() if requested is None else reader_features(requested) | writer_features(requested)
            return with_features(present, implied | self.features)
        higher = Protocol(max(present.min_reader, requested.min_reader), max(present.min_writer, requested.min_writer))
        return with_features(higher, self.features)

    def _legacy_protocol(self) -> Protocol | None:
        """The requested legacy protocol. The newest versions imply no feature."""
        if self.versions is None or self.versions[1] >= _NAMED_BY_WRITERS:
            return None
        reader, writer = self.versions
        return Protocol(min(reader, 2 if writer >= 5 else 1), writer)


def is_protocol_request(key: str) -> bool:
    """Whether a property is a protocol request."""
    return key in VERSIONS or key == IGNORE_DEFAULTS or key.lower().startswith(FEATURE_PREFIX)


def without_requests(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that belong in the metadata."""
    return {key: value for key, value in properties.items() if not is_protocol_request(key)}


def read_protocol_request(table: str, properties: Mapping[str, str]) -> ProtocolRequest:
    """The protocol request in these properties.

    Raises:
        InvalidProperty: a value is invalid.
        UnsupportedFeature: a feature is unknown or not supported.
    """
    features = frozenset(_feature(table, k, v) for k, v in properties.items() if k.lower().startswith(FEATURE_PREFIX))
    if str(properties.get(IGNORE_DEFAULTS, "false")).strip().lower() not in ("true", "false"):
        value = properties[IGNORE_DEFAULTS]
        raise InvalidProperty(property=IGNORE_DEFAULTS, value=value, reason="it takes true or false.")
    if not any(key in properties for key in VERSIONS):
        return ProtocolRequest(features)
    reader = _version(VERSIONS[0], properties.get(VERSIONS[0], "1"), _NAMED_BY_READERS)
    return ProtocolRequest(
        features, (reader, _version(VERSIONS[1], properties.get(VERSIONS[1], "2"), _NAMED_BY_WRITERS))
    )


def _version(key: str, value: str, highest: int) -> int:
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= highest):
        raise InvalidProperty(property=key, value=value, reason=f"it takes a whole number from 1 to {highest}.")
    return int(text)


def _feature(table: str, key: str, value: str) -> str:
    if value not in ("supported", "enabled"):
        raise InvalidProperty(property=key, value=value, reason="it takes supported.")
    name = key[len(FEATURE_PREFIX) :]
    supported = next((feature for feature in SUPPORTED if feature.lower() == name.lower()), None)
    if supported is None:
        condition = "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
        facts = {"table": table, "kind": "table", "feature": name, "reason": why_refused(name)}
        raise UnsupportedFeature(**facts, delta_condition=condition)
    return supported
