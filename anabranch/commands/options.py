"""Options as Spark's readers and writers take them, used up one by one by the command that honours them.

Knows names without case and values as text. Guarantee: what nobody used up is refused by name where it is documented
and would change what the command does, and is warned of, once in each process, where nobody documents it.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches
from typing import Any

from anabranch._protocol import options
from anabranch._protocol.rules.table_rules import parse_codec
from anabranch._protocol.settings import Fate
from anabranch.commands.idempotence import application
from anabranch.errors import InvalidOption, InvalidProperty, NotBuilt, UnknownOption
from anabranch.errors.inputs import check_text
from anabranch.errors.process_state import cache

_FILE_SYSTEM = ("fs.", "dfs.")
"""How settings of file systems begin, which both sides of a bucket follow."""
_HADOOP = "hadoop."
NOT_BUILT = ("datachange", "replaceon", "replaceusing", "targetalias")
_warned = cache("options warned of", 1000)


class Options:
    """Options on their way to a command."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, str]] = {}

    def copy(self) -> Options:
        """The same, to be used up by one command: a reader may be asked again."""
        other = Options()
        other._values = dict(self._values)
        return other

    def remaining(self) -> dict[str, str]:
        """All that nobody took, by the names that they were given."""
        return dict(self._values.values())

    def put(self, name: str, value: Any) -> None:
        """Set one, or leave it out with None. Raises LoneSurrogate: its name or its value is no text."""
        check_text("The name of an option", name)
        if value is not None:
            check_text(f"The option {name}", str(value))
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self._values[name.lower()] = (name, text)

    def take(self, name: str) -> str | None:
        """The value of one, which is then used up."""
        return self._values.pop(name.lower(), ("", None))[1]

    def flag(self, name: str) -> bool | None:
        """Whether one is true, which is then used up; None where it is not set. Raises InvalidOption: it is neither."""
        text = self.take(name)
        if text is not None and text.lower() not in ("true", "false"):
            raise InvalidOption(option=name, value=text, reason="it takes true or false.")
        return None if text is None else text.lower() == "true"

    def properties(self) -> dict[str, str]:
        """The table properties among them, used up."""
        keys = [key for key in self._values if key.startswith(("delta.", "anabranch."))]
        return dict(self._values.pop(key) for key in keys)

    def file_settings(self) -> dict[str, str]:
        """The settings of file systems among them, which stay: they count for as long as the command runs."""
        return {name: value for key, (name, value) in self._values.items() if key.startswith(_FILE_SYSTEM)}

    def of_a_write(self) -> dict[str, Any]:
        """What they say of any write, as arguments of `anabranch.commands.dml.write.Write`. Raises InvalidOption: one
        has a value that it does not take.
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
        return most if most > 0 else None  # as Spark's, which has no bound then

    def finish(self, door: str) -> None:
        """Judge the options that nobody took.

        Raises:
            InvalidOption, NotBuilt: one asks for what is not done here.
        """
        for key, (name, value) in self._values.items():
            if key.startswith(_FILE_SYSTEM):
                continue
            known = options.option(door, key)
            if key.startswith(_HADOOP) or (known and known.fate is Fate.REFUSED and key in NOT_BUILT):
                if known is None or value.lower() != known.harmless:
                    raise NotBuilt(what=f"the option {name}", instead="See the page on limits in the documentation.")
            elif known is None:
                _warn(door, name)
            elif known.fate is Fate.REFUSED and value.lower() != known.harmless:
                raise InvalidOption(option=name, value=value, reason=f"{known.why}.")
            elif known.fate is Fate.HONOURED:
                raise InvalidOption(option=name, value=value, reason="this method does not take it.")


def _warn(door: str, name: str) -> None:
    if not _warned.add(name.lower(), True):
        return
    near = get_close_matches(name.lower(), {each.lower(): each for each in options.names(door)}, n=1, cutoff=0.8)
    known = {each.lower(): each for each in options.names(door)}
    hint = f" Did you mean {known[near[0]]}?" if near else ""
    said = f"The option {name} is none that is documented for {door} of a Delta table, and does nothing.{hint}"
    warnings.warn(said, UnknownOption, stacklevel=6)
