"""The options of a stream that reads a table.

Knows the options of delta-spark's streaming source. Pure. Guarantee: unsupported requests are refused by name before
the stream starts.
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
"""Default maximum number of files in a batch, as in delta-spark."""
LATEST = "latest"


@dataclass(frozen=True)
class Limits:
    """The size of a batch: files are added until one of these is reached.

    Attributes:
        files: maximum number of files; None: unlimited.
        size: maximum number of bytes; None: unlimited.
    """

    files: int | None = MOST_FILES
    size: int | None = None


@dataclass(frozen=True)
class Tolerance:
    """How a stream treats commits that it cannot show.

    Attributes:
        deletes: ignores deleted rows.
        changes: ignores deleted rows, and shows the rows that the same commits wrote.
        change_commits: ignores commits that delete or change rows.
        lost_versions: ignores versions that were cleaned up.
    """

    deletes: bool = False
    changes: bool = False
    change_commits: bool = False
    lost_versions: bool = False


@dataclass(frozen=True)
class Splits:
    """How the files of a batch are divided among tasks, as in Spark.

    Attributes:
        most_bytes: maximum number of bytes in a task, unless a row group is larger.
        open_bytes: the cost of opening a file, in bytes.
        tasks: the number of tasks that run at once.
    """

    most_bytes: int = 128 << 20
    open_bytes: int = 4 << 20
    tasks: int = 1


@dataclass(frozen=True)
class StreamRead:
    """A request to read ``table`` as a stream.

    Attributes:
        table: its location.
        metadata: the body of its ``metaData`` action when the stream was created; it has the columns.
        known_at: the version of the metadata.
        start: the first version whose commits are read, `LATEST` for future ones only; None: existing rows too.
        start_timestamp: the same by a timestamp, in milliseconds since 1970.
        feed: whether changes are read instead of added rows.
        beyond: whether it may begin behind the newest version, and waits for later ones.
        at_once: whether the existing rows form one batch, so that none is late for a watermark.
        zone: the time zone of timestamps in partition values without one.
        schemas: the location of the schema log (`anabranch._streaming.schema_log`).
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
        """The request as text, for the process that plans the batches."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StreamRead:
        """Reads the output of `to_json`."""
        fields = json.loads(text)
        parts = {"limits": Limits, "tolerance": Tolerance, "splits": Splits}
        return cls(**{key: parts[key](**value) if key in parts else value for key, value in fields.items()})

    @lazy
    def columns(self) -> Metadata:
        """The metadata."""
        return Metadata.from_json(self.metadata)


def read_of(options: Options) -> dict[str, Any]:
    """Reads the options of a stream as arguments of `StreamRead`; takes them out of ``options``.

    Raises:
        InvalidOption, NotBuilt: an option has an invalid value, or is not supported.
    """
    feed = any([options.flag("readChangeFeed"), options.flag("readChangeData")])
    fails_on_loss = options.flag("failOnDataLoss")
    ignores_files = bool(options.flag("ignoreFileDeletion"))
    arguments = {
        "schemas": options.take("schemaTrackingLocation") or options.take("schemaLocation"),
        "start": _start(options.take("startingVersion")),
        "feed": feed,
        "at_once": bool(options.flag("withEventTimeOrder")),
        "limits": _limits(options.take("maxFilesPerTrigger"), options.take("maxBytesPerTrigger")),
        "tolerance": Tolerance(
            deletes=bool(options.flag("ignoreDeletes")),
            changes=bool(options.flag("ignoreChanges")) or ignores_files,
            change_commits=bool(options.flag("skipChangeCommits")),
            lost_versions=fails_on_loss is False,
        ),
    }
    options.finish(STREAM)
    return arguments


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
