"""The root of all errors: it formats facts into a message and joins PySpark's and Delta's exceptions where installed.

Knows no other error by name. All errors, the root too, are imported from `anabranch.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

from anabranch.errors.rows import hides_any, may_show_rows, without_partitions
from anabranch.errors.secrets import without_secrets
from anabranch.errors.visible import visible

__all__ = ["AnabranchError", "InputBase", "ParseBase", "of_pyspark", "twin"]

try:
    from pyspark.errors import AnalysisException as InputBase
    from pyspark.errors import ParseException as ParseBase
    from pyspark.errors import PySparkException as _Base
except ImportError:  # log tools work without PySpark
    _Base = Exception  # type: ignore[assignment, misc]
    InputBase = Exception  # type: ignore[assignment, misc]
    ParseBase = Exception  # type: ignore[assignment, misc]

try:
    import pyspark.errors as _pyspark
except ImportError:
    _pyspark = None  # type: ignore[assignment]

try:
    import delta.exceptions as _delta
except Exception:  # not there, another package of that name, or one for another PySpark; it only adds base classes
    _delta = None


def twin(name: str) -> type:
    """Delta's class of this name, or an empty one."""
    return getattr(_delta, name, None) or type("_NoBase", (), {})


def of_pyspark(name: str) -> type:
    """PySpark's class of this name, or an empty one."""
    return getattr(_pyspark, name, None) or type("_NoBase", (), {})


_PATHS = ("file", "name", "reason")
"""Facts that hold paths, which may have partition values in folder names."""
_TABLES = ("table", "root", "source")
"""Facts that name a table by its URL."""
_Error = TypeVar("_Error", bound="AnabranchError")


class Facts(dict[str, Any]):
    """Facts for a template; a missing one reads ``unknown``."""

    def __missing__(self, key: str) -> str:
        return "unknown"


class AnabranchError(_Base):
    """The root: ``condition`` is the stable name, ``sql_state`` the SQLSTATE, ``facts`` the details of the case.

    Facts that are texts show locations without secrets (`anabranch.errors.secrets.without_secrets`). For an SQL
    statement the fact ``excerpt`` shows the line, with carets below the word at fault.

    Example:
        >>> try:
        ...     anabranch.history("/no/such/table")
        ... except anabranch.errors.AnabranchError as error:
        ...     error.condition, error.facts["table"]
    """

    condition = "ANABRANCH_ERROR"
    sql_state = "58000"
    retryable = False
    template = "Anabranch failed."
    prefix = ""

    def __init__(self, **facts: Any) -> None:
        shown = all(may_show_rows(facts.get(n)) for n in _TABLES)
        facts = facts if shown else self.without_rows(facts)
        facts = {name: without_secrets(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
        self.facts: Mapping[str, Any] = facts
        text = f"[{self.getCondition()}] {self.prefix}{self.template.format_map(Facts(self.message_facts(facts)))}"
        self.message = visible(without_secrets(f"{text}\n{facts['excerpt']}" if facts.get("excerpt") else text))
        super().__init__(self.message)
        if hides_any():
            self.__suppress_context__ = True  # tracebacks show it, and it may quote a row

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__} has no fact {name!r}")

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> Any:
        return partial(type(self), **self.facts), ()

    def getCondition(self) -> str:
        """The stable name of this condition, as in PySpark's errors; the fact ``delta_condition`` overrides it."""
        return str(self.facts.get("delta_condition") or self.condition)

    getErrorClass = getCondition

    def getSqlState(self) -> str:
        """The SQLSTATE of this condition."""
        return self.sql_state

    def without_rows(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The facts without values of rows; a subclass with further values overrides this."""
        paths = {name: without_partitions(str(facts[name])) for name in _PATHS if facts.get(name)}
        return {**facts, **paths}

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts by the names in the template; a subclass may add words made of several facts."""
        return facts

    def pointing(self: _Error, excerpt: str) -> _Error:
        """The error with the excerpt of the statement at fault; an error that has an excerpt keeps it."""
        return self if self.facts.get("excerpt") else type(self)(**{**self.facts, "excerpt": excerpt})

    def of(self: _Error, table: str) -> _Error:
        """The error for a table; an error that names a table keeps it."""
        return self if self.facts.get("table") else type(self)(**{**self.facts, "table": table})

    def getMessageParameters(self) -> dict[str, str]:
        """The facts as text."""
        return {name: str(value) for name, value in self.facts.items()}
