"""Our properties of entries: their names, and how their values are spelled, so that Spark hides none of them.

Spark hides properties whose values look like secrets from whoever asks, and a path may look so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

from anabranch._spark.sessions.session import HIDDEN
from anabranch.errors import InvalidOption

OURS = "anabranch."
LOCATION, MANAGED, COLUMNS = "anabranch.location", "anabranch.managed", "anabranch.columns"
VIEW = "anabranch.view"
MOVES_TO, CAME_FROM = "anabranch.renamed.to", "anabranch.renamed.from"
"""Marks of a table that has two names for a moment: in the entry that goes, and in the one that stays."""
_HEX = "hex:"
_SECRET = re.compile(r"url|pass|secret|token|key|cred|auth|^hex:", re.IGNORECASE)
"""More than what Spark hides by default."""
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def encode_hex(value: str) -> str:
    """A value of ours in hexadecimal, which no text of Spark's can be mistaken in."""
    return f"{_HEX}{value.encode().hex()}"


def encode_if_secret(value: str) -> str:
    """A value of ours as the catalog keeps it: in hexadecimal where Spark might take it for a secret."""
    return encode_hex(value) if _SECRET.search(value) else value


def decode_property(key: str, value: str) -> str:
    """A property's value behind what the catalog says. Raises InvalidOption: the session hides it."""
    if not key.startswith(OURS):
        return value
    if value == HIDDEN:
        reason = f"with it Spark hides the property {key} of a table's name, and so where the table lies."
        raise InvalidOption(option="spark.sql.redaction.string.regex", value=value, reason=reason)
    return bytes.fromhex(value.removeprefix(_HEX)).decode() if value.startswith(_HEX) else value


def format_properties(values: Mapping[str, str], spark: SparkSession) -> str:
    """Properties as a statement lists them. Raises InvalidOption: as `literal`."""
    return ", ".join(f"{literal(key, spark)} = {literal(value, spark)}" for key, value in values.items())


def literal(text: str, spark: SparkSession) -> str:
    """A text as SQL. Raises InvalidOption: the session reads what stands for a quote or a backslash in another way."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    if escaped != text and (spark.conf.get(_ESCAPED, None) or "").lower() == "true":
        reason = "with it this text cannot be said in a statement: " + text
        raise InvalidOption(option=_ESCAPED, value="true", reason=reason)
    return f"'{escaped}'"
