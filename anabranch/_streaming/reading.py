"""What a stream reads, as its options say.

Knows the options of delta-spark's streaming source. Pure. Guarantee: what a stream cannot do is refused by name before
it starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anabranch._log.lazy import lazy
from anabranch._protocol.actions import Metadata
from anabranch._protocol.options import STREAM
from anabranch._protocol.sizes import size_of
from anabranch.commands.options import Options
from anabranch.errors import InvalidOption

MOST_FILES = 1000
"""How many files a batch takes where no option says so, as in delta-spark."""
LATEST = "latest"


@dataclass(frozen=True)
class Limits:
    """How much a batch takes: file by file until one of these is reached.

    Attributes:
        files: so many files; None: any number.
        size: so many bytes; None: any number.
    """

    files: int | None = MOST_FILES
    size: int | None = None


@dataclass(frozen=True)
class Tolerance:
    """What a stream does about commits that it cannot show.

    Attributes:
        deletes: deleted rows are left out.
        changes: deleted rows are left out, and what the same commits wrote is shown.
        change_commits: commits that delete or change rows are left out whole.
        lost_versions: versions that were cleaned up are left out.
    """

    deletes: bool = False
    changes: bool = False
    change_commits: bool = False
    lost_versions: bool = False


@dataclass(frozen=True)
class Splits:
    """How the files of a batch are divided among tasks: as Spark divides files.

    Attributes:
        most_bytes: what a task reads at most, unless a row group is larger.
        open_bytes: what opening a file costs.
        tasks: how many tasks run at once.
    """

    most_bytes: int = 128 << 20
    open_bytes: int = 4 << 20
    tasks: int = 1


@dataclass(frozen=True)
class StreamRead:
    """Read ``table`` as a stream.

    Attributes:
        table: where it is.
        metadata: the body of its ``metaData`` action when the stream was made; it gives the columns.
        known_at: the version that had it.
        start: a version from which on commits are read, `LATEST` for those to come; None: the rows that are there too.
        start_timestamp: the same by a timestamp, in milliseconds since 1970.
        feed: whether changes are read instead of added rows.
        beyond: whether it may begin behind the newest version, and waits for what comes then.
        at_once: whether the rows that are there come in one batch, so that none is late for a watermark.
        zone: the time zone of timestamps in partition values that say none.
        schemas: where the stream notes the columns that it meets (`anabranch._streaming.schema_log`).
    """

    table: str
    metadata: Mapping[str, Any]
    known_at: int
    start: int | str | None = None
    start_timestamp: int | None = None
    feed: bool = False
    beyond: bool = False
    at_once: bool = False
    zone: str = "UTC"
    schemas: str | None = None
    limits: Limits = field(default_factory=Limits)
    tolerance: Tolerance = field(default_factory=Tolerance)
    splits: Splits = field(default_factory=Splits)

    def to_json(self) -> str:
        """The same as a text, for the process that plans the batches."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StreamRead:
        """What `to_json` wrote."""
        said = json.loads(text)
        parts = {"limits": Limits, "tolerance": Tolerance, "splits": Splits}
        return cls(**{key: parts[key](**value) if key in parts else value for key, value in said.items()})

    @lazy
    def columns(self) -> Metadata:
        """The metadata."""
        return Metadata.from_json(self.metadata)


def read_of(options: Options) -> dict[str, Any]:
    """What options say of a stream, as arguments of `StreamRead`, used up.

    Raises:
        InvalidOption, NotBuilt: one has a value that it does not take, or asks for what is not done here.
    """
    feed = any([options.flag("readChangeFeed"), options.flag("readChangeData")])
    kept = options.flag("failOnDataLoss")
    ignores_files = bool(options.flag("ignoreFileDeletion"))
    asked = {
        "schemas": options.take("schemaTrackingLocation") or options.take("schemaLocation"),
        "start": _start(options.take("startingVersion")),
        "feed": feed,
        "at_once": bool(options.flag("withEventTimeOrder")),
        "limits": _limits(options.take("maxFilesPerTrigger"), options.take("maxBytesPerTrigger")),
        "tolerance": Tolerance(
            deletes=bool(options.flag("ignoreDeletes")),
            changes=bool(options.flag("ignoreChanges")) or ignores_files,
            change_commits=bool(options.flag("skipChangeCommits")),
            lost_versions=kept is False,
        ),
    }
    options.finish(STREAM)
    return asked


def _start(text: str | None) -> int | str | None:
    if text is None or text.strip().lower() == LATEST:
        return None if text is None else LATEST
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        reason = "it takes a whole number from 0, or 'latest'."
        raise InvalidOption(option="startingVersion", value=text, reason=reason)
    return int(text)


def _limits(files: str | None, size: str | None) -> Limits:
    if files is None:
        return Limits(MOST_FILES if size is None else None, _bytes(size))
    if not re.fullmatch(r"\d{1,18}", files.strip()) or int(files) == 0:
        raise InvalidOption(option="maxFilesPerTrigger", value=files, reason="it takes a whole number from 1.")
    return Limits(int(files), _bytes(size))


def _bytes(text: str | None) -> int | None:
    try:
        return None if text is None else size_of(text)
    except ValueError as error:
        raise InvalidOption(option="maxBytesPerTrigger", value=text, reason=f"{error}.") from None
