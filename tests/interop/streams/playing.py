"""The stage on which a stream is played: tables, queries, and what is seen of them.

A scenario is given a `Stage` and returns what it saw, by name. No query waits for another's rows: each is run to its
end (``availableNow``), but for those of `Stage.running`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.documented.given import Given, Seen

Play = Callable[["Stage"], Mapping[str, Any]]

SECONDS = 90
"""How long a query may take."""


def case(*cases: str) -> Callable[[Play], Callable[[Given], Iterator[Seen]]]:
    """Say of a scenario which cases of which suites it plays, as ``DeltaSourceSuite: basic``."""

    def marked(play: Play) -> Callable[[Given], Iterator[Seen]]:
        @wraps(play)
        def scenario(given: Given) -> Iterator[Seen]:
            yield from (
                (what, found, None) for what, found in play(Stage(given.spark, given.folder, given.name)).items()
            )

        scenario.documents = cases  # type: ignore[attr-defined]
        return scenario

    return marked


_WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH", "PYTHON_")
"""How the names of errors begin in which Spark wraps that of a source or a sink."""


def condition(error: Exception) -> str:
    """The name of an error, or of the one inside it; one without a name is told."""
    text = str(error)
    named = re.findall(r"\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_]+)*\]", text)
    inner = [name for name in named if not name.startswith(_WRAPPERS)]
    if inner:
        return inner[0]
    reason = re.sub(r"#\d+|o\d+\.", "", text.partition("exception: ")[2] or text)
    return f"{type(error).__name__}: {reason.partition(chr(10))[0][:80]}"


@dataclass
class Played:
    """What a query gave: the rows of each batch that has any, sorted, and the name of the error that ended it."""

    batches: list[list[Any]] = field(default_factory=list)
    error: str = ""
    text: str = ""

    @property
    def rows(self) -> list[Any]:
        """All rows, sorted."""
        return sorted((row for batch in self.batches for row in batch), key=repr)

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each batch."""
        return [len(batch) for batch in self.batches]

    @property
    def outcome(self) -> Any:
        """The rows, or, of a query that failed, the rows before it did and why."""
        return [self.rows, self.error] if self.error else self.rows

    def take(self, batch: DataFrame, number: int) -> None:
        """Be the sink of a query."""
        if rows := values(batch):
            self.batches.append(rows)


def values(frame: DataFrame) -> list[Any]:
    """The rows of a DataFrame, sorted; those of one column as plain values."""
    found = [list(row) if len(row) > 1 else row[0] for row in frame.collect()]
    return sorted(found, key=repr)


@dataclass(frozen=True)
class Stage:
    """A session and an empty folder, in which ``t`` is the table of a scenario, and ``{t}`` its name in SQL."""

    spark: SparkSession
    folder: Path
    name: str

    def path(self, name: str = "t") -> str:
        return str(self.folder / name)

    def sql(self, *statements: str, name: str = "t") -> None:
        """Run statements."""
        for text in statements:
            self.spark.sql(text.replace("{t}", f"delta.`{self.path(name)}`"))

    def make(self, columns: str, *clauses: str, name: str = "t", **properties: str) -> None:
        """An empty table; ``a__b`` stands for the property ``delta.a.b``."""
        listed = ", ".join(f"'delta.{key.replace('__', '.')}' = '{value}'" for key, value in properties.items())
        ends = [*clauses, f"TBLPROPERTIES ({listed})"] if listed else clauses
        self.sql(f"CREATE TABLE {{t}} ({columns}) USING delta {' '.join(ends)}", name=name)

    def add(self, start: int, end: int, files: int = 1, name: str = "t", **options: str) -> None:
        """Append a range of numbers as the column ``id``; the first one makes the table."""
        self.save(self.spark.range(start, end, 1, files), name, **options)

    def save(self, rows: DataFrame, name: str = "t", mode: str = "append", by: str = "", **options: str) -> None:
        """Write rows to a table."""
        writer = rows.write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(by) if by else writer).save(self.path(name))

    def one_by_one(self, start: int, end: int, name: str = "t") -> None:
        """Append each number by a commit of its own."""
        for number in range(start, end):
            self.add(number, number + 1, name=name)

    def read(self, name: str = "t") -> list[Any]:
        """The rows of a table as they are now."""
        return values(self.spark.read.format("delta").load(self.path(name)))

    def stream(self, name: str = "t", **options: Any) -> DataFrame:
        """The table as a stream."""
        return self.spark.readStream.format("delta").options(**options).load(self.path(name))

    def play(self, frame: DataFrame, checkpoint: str = "", failing_at: int = -1, **trigger: Any) -> Played:
        """Run a query to its end; its checkpoint is a new one, or that of a name.

        Args:
            failing_at: the batch whose sink fails.
        """
        played = Played()

        def sink(batch: DataFrame, number: int) -> None:
            if number == failing_at:
                raise RuntimeError("the sink fails")
            played.take(batch, number)

        return self._run(self._writer(frame, checkpoint).foreachBatch(sink), played, trigger)

    def write(
        self, frame: DataFrame, name: str = "out", checkpoint: str = "writing", mode: str = "append", **options: Any
    ) -> Played:
        """Run a query that writes to a table to its end."""
        writer = self._writer(frame, checkpoint).format("delta").outputMode(mode)
        return self._run(writer.options(path=self.path(name), **options), Played(), {})

    def _writer(self, frame: DataFrame, checkpoint: str) -> Any:
        name = checkpoint or f"checkpoint-{sum(1 for _ in self.folder.glob('checkpoint-*'))}"
        self.checkpoint(name).mkdir(exist_ok=True)
        return frame.writeStream.option("checkpointLocation", str(self.checkpoint(name)))

    def checkpoint(self, name: str) -> Path:
        """Where a query keeps how far it came."""
        return self.folder / f"of-{name}" if not name.startswith("checkpoint-") else self.folder / name

    def _run(self, writer: Any, played: Played, trigger: Mapping[str, Any]) -> Played:
        query = None
        try:
            query = writer.trigger(**(trigger or {"availableNow": True})).start()
            if not query.awaitTermination(SECONDS):
                played.error = "it did not end"
        except Exception as error:  # whatever it is, it is what is seen
            played.error, played.text = condition(error), str(error)
        finally:
            if query is not None:
                query.stop()
        return played

    @contextmanager
    def running(self, frame: DataFrame, checkpoint: str = "running") -> Iterator[Callable[[], Played]]:
        """A query that goes on; call what is given to let it take all that is there, and see what it then gave."""
        played = Played()
        query = self._writer(frame, checkpoint).foreachBatch(played.take).start()

        def more() -> Played:
            try:
                query.processAllAvailable()
            except Exception as error:
                played.error, played.text = condition(error), str(error)
            given, played.batches = played.batches, []
            return Played(given, played.error, played.text)

        try:
            yield more
        finally:
            query.stop()

    def outcome(self, make: Callable[[], DataFrame], checkpoint: str = "") -> Any:
        """What a query gives, or by which error it is refused before it starts."""
        try:
            frame = make()
        except Exception as error:
            return f"not begun: {condition(error)}"
        return self.play(frame, checkpoint).outcome

    def given(self, checkpoint: str = "", name: str = "t", **options: Any) -> Any:
        """What a query gives that reads the table with these options."""
        return self.outcome(lambda: self.stream(name, **options), checkpoint)

    def offset(self, checkpoint: str) -> Any:
        """Version, index and whether it is of the first snapshot, as a checkpoint last noted them."""
        notes = self.checkpoint(checkpoint) / "offsets"
        newest = max((each for each in notes.iterdir() if each.name.isdigit()), key=lambda each: int(each.name))
        kept = json.loads(newest.read_text().splitlines()[-1])
        return [kept["reservoirVersion"], kept["index"], kept["isStartingVersion"]]

    def log(self, name: str = "t") -> list[Path]:
        """The commits of a table, in order."""
        return sorted(Path(self.path(name), "_delta_log").glob("*.json"))

    def files(self, name: str = "t") -> set[Path]:
        """The files of data in the folder of a table."""
        return {each for each in Path(self.path(name)).rglob("*.parquet") if "_delta_log" not in each.parts}

    def commit(self, *actions: Mapping[str, Any], name: str = "t") -> None:
        """Write the next commit by hand."""
        newest = int(self.log(name)[-1].stem)
        info = {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "BY HAND", "operationParameters": {}}}
        lines = [json.dumps(action) for action in (info, *actions)]
        Path(self.path(name), "_delta_log", f"{newest + 1:020}.json").write_text("\n".join(lines) + "\n")

    def forget_versions(self, *versions: int, name: str = "t") -> None:
        """Remove commits from the log, as a clean-up does, with what else is of these versions."""
        for version in versions:
            for each in Path(self.path(name), "_delta_log").glob(f"*{version:020}*.json*"):
                each.unlink()
            for each in Path(self.path(name), "_delta_log").glob(f".{version:020}.json.crc"):
                each.unlink()

    @contextmanager
    def setting(self, **values: str) -> Iterator[None]:
        """Settings of the session; ``a__b`` stands for ``spark.a.b``."""
        named = {f"spark.{key.replace('__', '.')}": value for key, value in values.items()}
        before = {key: self.spark.conf.get(key, None) for key in named}
        try:
            for key, value in named.items():
                self.spark.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                self.spark.conf.unset(key) if old is None else self.spark.conf.set(key, old)
