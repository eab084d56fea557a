"""Violations: the error of a row that breaks a table's rule, carried through Spark's exceptions.

Guarantee: `violation_in` returns what `raised` put into a query, with the same details, whatever the values are and
however Spark wraps the message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.errors import AnabranchError, CheckConstraintViolated, LengthExceeded, NotNullViolated
from anabranch.errors.rows import may_show_rows

_MARK = "anabranch-violation "
_CLASSES: Mapping[str, type[AnabranchError]] = {
    each.__name__: each for each in (CheckConstraintViolated, LengthExceeded, NotNullViolated)
}
_SHOWN_CHARACTERS = 200
"""How much of a value is shown."""


def raised(error: type[AnabranchError], facts: Column, values: Mapping[str, Column], table: str) -> Column:
    """An expression that makes the query fail with this error. ``facts`` are its details, as `stated` gives them,
    ``values`` column -> text of the row, which is left out where the table's rows are not to be shown.
    """
    values = values if may_show_rows(table) else {}
    cut = [F.substring(each, 1, _SHOWN_CHARACTERS).alias(f"v{i}") for i, each in enumerate(values.values())]
    text = F.to_json(F.struct(*cut), {"ignoreNullFields": "false"}) if cut else F.lit("{}")
    head = F.lit(f'{_MARK}{{"error": "{error.__name__}", "names": {_json(list(values))}, "facts": ')
    return F.raise_error(F.concat(head, facts, F.lit(', "values": '), text, F.lit("}")))


def stated(**facts: str) -> Column:
    """Details of an error, as `raised` takes them; a CASE may choose among several."""
    return F.lit(_json(facts))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def violation_in(text: str, table: str) -> AnabranchError | None:
    """The error that `raised` put into Spark's message; None where there is none."""
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
