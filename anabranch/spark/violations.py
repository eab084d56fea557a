"""Violations: a row that breaks a table's rule, from the expression that stops the query to an error of ours.

Knows how a message of ours travels in Spark's exceptions. Guarantee: what `raised` puts into a query comes out of
`violation_in` with the same facts, whatever the values are and however Spark wraps it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.errors import AnabranchError, CheckConstraintViolated, LengthExceeded, NotNullViolated

_MARK = "anabranch-violation "
_CLASSES: Mapping[str, type[AnabranchError]] = {
    each.__name__: each for each in (CheckConstraintViolated, LengthExceeded, NotNullViolated)
}
_SHOWN_CHARACTERS = 200
"""So much of a value is shown."""


def raised(error: type[AnabranchError], facts: Mapping[str, str], values: Mapping[str, Column]) -> Column:
    """An expression that stops the query with this error; ``values`` are texts of the row at hand."""
    head = json.dumps({"error": error.__name__, "facts": dict(facts)}, ensure_ascii=False)[:-1]
    shown = F.struct(
        *[F.substring(text, 1, _SHOWN_CHARACTERS).alias(f"v{i}") for i, text in enumerate(values.values())]
    )
    names = json.dumps(list(values), ensure_ascii=False)
    text = F.to_json(shown, {"ignoreNullFields": "false"}) if values else F.lit("{}")
    return F.raise_error(F.concat(F.lit(f'{_MARK}{head}, "names": {names}, "values": '), text, F.lit("}")))


def violation_in(text: str, table: str) -> AnabranchError | None:
    """The error that `raised` put into what Spark says, if it did."""
    start = text.find(_MARK)
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start + len(_MARK))
        values = [found["values"].get(f"v{i}") for i in range(len(found["names"]))]
        facts: dict[str, Any] = {**found["facts"], "values": dict(zip(found["names"], values, strict=True))}
        return _CLASSES[found["error"]](table=table, **facts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # somebody else's message that looks like ours
