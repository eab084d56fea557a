"""Which codec compresses the files of a table."""

from __future__ import annotations

import pytest

from anabranch._protocol.actions import Metadata
from anabranch._protocol.compression import CODEC_PROPERTY, DEFAULT_CODEC, arrow_options, codec_text, parse_codec
from anabranch._protocol.rules.table_rules import rules_of
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch._protocol.session_settings import SessionSettings, apply_settings
from anabranch.errors import InvalidProperty


def test_the_table_says_it_before_its_session_and_the_session_before_the_default() -> None:
    assert codec_text({}) == DEFAULT_CODEC
    with apply_settings(SessionSettings(codec="gzip")):
        assert codec_text({}) == "gzip"
        assert codec_text({CODEC_PROPERTY: "zstd"}) == "zstd"
    with apply_settings(SessionSettings()):
        assert codec_text({}) == DEFAULT_CODEC


def test_a_codec_that_is_unknown_here_hinders_no_reader_but_each_writer() -> None:
    schema = schema_json(Struct((Field("id", "long"),)))
    rules = rules_of(Metadata("", schema, configuration={CODEC_PROPERTY: "lzo"}))
    with pytest.raises(InvalidProperty, match="it takes gzip, lz4, lz4_raw, none, snappy, uncompressed, zstd"):
        _ = rules.compression


@pytest.mark.parametrize(
    ("text", "arrow"),
    [("LZ4_RAW", ("lz4", None)), ("None", ("none", None)), ("zstd", ("zstd", 3)), ("gzip", ("gzip", 6))],
)
def test_arrow_compresses_at_the_level_of_sparks_writer(text: str, arrow: tuple[str, int | None]) -> None:
    assert tuple(arrow_options(parse_codec(text)).values()) == arrow
