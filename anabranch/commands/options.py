"""Options of Spark's readers and writers, which the command takes one by one.

Knows case-insensitive names and values as text. Guarantee: an option that no command takes raises an error if it is
documented and would change the result, and a warning, once in each process, if it is not documented.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from typing import Any

from anabranch._protocol import options
from anabranch._protocol.compression import parse_codec
from anabranch._protocol.dials import LEVEL, RESOLUTION, Dials
from anabranch._protocol.settings import Treatment
from anabranch.commands.idempotence import application
from anabranch.errors import InvalidOption, InvalidProperty, NotBuilt, UnknownOption
from anabranch.errors.inputs import check_text
from anabranch.errors.process_state import cache

_FILE_SYSTEM = ("fs.", "dfs.")
"""Prefixes of the settings of file systems, which apply to Spark and to our own access to a bucket."""
_HADOOP = "hadoop."
_warned = cache("options warned of", 1000)


class Options:
    """Options on their way to a command."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, str]] = {}

    def copy(self) -> Options:
        """A copy for one command: a reader may be used again."""
        copied = Options()
        copied._values = dict(self._values)
        return copied

    def remaining(self) -> dict[str, str]:
        """The options that were not taken, by the names that the user wrote."""
        return dict(self._values.values())

    def put(self, name: str, value: Any) -> None:
        """Set an option; None leaves it out. Raises LoneSurrogate: its name or its value is not valid text."""
        check_text("The name of an option", name)
        if value is not None:
            check_text(f"The option {name}", str(value))
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self._values[name.lower()] = (name, text)

    def take(self, name: str) -> str | None:
        """Take an option: return its value and remove it."""
        return self._values.pop(name.lower(), ("", None))[1]

    def flag(self, name: str) -> bool | None:
        """Take a boolean option; None if it is not set. Raises InvalidOption: it is neither true nor false."""
        text = self.take(name)
        if text is not None and text.lower() not in ("true", "false"):
            raise InvalidOption(option=name, value=text, reason="it takes true or false.")
        return None if text is None else text.lower() == "true"

    def dials(self) -> Dials:
        """Take the dials of a write; before its `properties`, of which the conflict resolution is one, for a new table.
        Raises InvalidOption: one has an invalid value.
        """

        def refusal(name: str, value: str, reason: str) -> InvalidOption:
            return InvalidOption(option=name, value=value, reason=reason)

        return Dials.parse(self.take(LEVEL), self.copy().take(RESOLUTION), refusal)

    def properties(self) -> dict[str, str]:
        """Take the table properties among the options."""
        keys = [key for key in self._values if key.startswith(("delta.", "anabranch."))]
        return dict(self._values.pop(key) for key in keys)

    def file_settings(self) -> dict[str, str]:
        """The settings of file systems among the options, which stay: they apply as long as the command runs."""
        return {name: value for key, (name, value) in self._values.items() if key.startswith(_FILE_SYSTEM)}

    def of_a_write(self) -> dict[str, Any]:
        """Take the options of a write, as arguments of `anabranch.commands.dml.write.Write`. Raises InvalidOption: an
        option has an invalid value.
        """
        return {
            "user_metadata": self.take("userMetadata"),
            "txn": application(self.take("txnAppId"), self.take("txnVersion")),
            "optimized": self.flag("optimizeWrite"),
            "codec": self._codec(),
            "most_rows": self._most_rows(),
        }

    def _codec(self) -> str | None:
        text = self.take("compression")
        try:
            return None if text is None else parse_codec(text)
        except InvalidProperty as error:
            raise InvalidOption(option="compression", value=text, reason=error.facts["reason"]) from None

    def _most_rows(self) -> int | None:
        text = self.take("maxRecordsPerFile")
        if text is None:
            return None
        try:
            most = int(text)
        except ValueError:
            raise InvalidOption(option="maxRecordsPerFile", value=text, reason="it takes a whole number.") from None
        return most if most > 0 else None  # in Spark, 0 and less mean no bound

    def finish(self, door: str) -> None:
        """Check the options that no command took.

        Raises:
            InvalidOption, NotBuilt: an option requests what is not supported.
        """
        for key, (name, value) in self._values.items():
            if key.startswith(_FILE_SYSTEM):
                continue
            documented = options.option(door, key)
            if key.startswith(_HADOOP):
                raise NotBuilt(what=f"the option {name}", instead="See the page on limits in the documentation.")
            if documented is None:
                _warn(door, name)
            elif documented.treatment is Treatment.REFUSED and value.lower() != documented.harmless:
                raise InvalidOption(option=name, value=value, reason=f"{documented.why}.")
            elif documented.treatment is Treatment.HONOURED:
                raise InvalidOption(option=name, value=value, reason="this method does not take it.")


def _warn(door: str, name: str) -> None:
    if not _warned.add(name.lower(), True):
        return
    matches = get_close_matches(
        name.lower(), {option.lower(): option for option in options.names(door)}, n=1, cutoff=0.8
    )
    by_lower_name = {option.lower(): option for option in options.names(door)}
    hint = f" Did you mean {by_lower_name[matches[0]]}?" if matches else ""
    message = f"The option {name} is not documented for {door} of a Delta table, and does nothing.{hint}"
    warnings.warn(message, UnknownOption, stacklevel=6)
