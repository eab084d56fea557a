"""Properties of our entries: their names, and the encoding of their values, so that Spark hides none of them.

Spark hides properties whose values look like secrets, and a path may look so.
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
"""Marks of a table that has two names for a moment: in the old entry, and in the new one."""
_HEX = "hex:"
_SECRET = re.compile(r"url|pass|secret|token|key|cred|auth|^hex:", re.IGNORECASE)
"""Matches more than Spark hides by default."""
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def encode_hex(value: str) -> str:
    """A value in hexadecimal, which needs no quoting in any text of Spark's."""
    return f"{_HEX}{value.encode().hex()}"


def encode_if_secret(value: str) -> str:
    """A value as stored in the catalog: in hexadecimal if Spark might take it for a secret."""
    return encode_hex(value) if _SECRET.search(value) else value


def decode_property(key: str, value: str) -> str:
    """Decodes a stored property. Raises InvalidOption: the session hides it."""
    if not key.startswith(OURS):
        return value
    if value == HIDDEN:
        reason = f"with it Spark hides the property {key} of a table's name, and so where the table lies."
        raise InvalidOption(option="spark.sql.redaction.string.regex", value=value, reason=reason)
    return bytes.fromhex(value.removeprefix(_HEX)).decode() if value.startswith(_HEX) else value


def format_properties(values: Mapping[str, str], spark: SparkSession) -> str:
    """Properties as a list in a statement. Raises InvalidOption: as `literal`."""
    return ", ".join(f"{literal(key, spark)} = {literal(value, spark)}" for key, value in values.items())


def literal(text: str, spark: SparkSession) -> str:
    """A text as an SQL literal. Raises InvalidOption: the session does not read escapes in literals."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    if escaped != text and (spark.conf.get(_ESCAPED, None) or "").lower() == "true":
        reason = "with it this text cannot be written in a statement: " + text
        raise InvalidOption(option=_ESCAPED, value="true", reason=reason)
    return f"'{escaped}'"
