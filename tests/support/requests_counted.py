"""How many requests, and how many bytes, a verb costs on S3: ours, beside deltalake's, on equal tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from urllib.parse import urlsplit

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import anabranch
from tests.storage import front
from tests.storage.front import Answer, Handler, Request
from tests.support.patience import PATIENCE


@dataclass
class Counted:
    """Hands requests on and keeps them, with the bytes of their bodies in both directions."""

    inner: Handler
    seen: list[str] = field(default_factory=list)
    moved: int = 0
    lock: Lock = field(default_factory=Lock)

    def __call__(self, request: Request) -> Answer | None:
        answer = self.inner(request)
        with self.lock:
            self.seen.append(f"{request.method} {request.target}")
            self.moved += len(request.body) + (len(answer.body) if answer else 0)
        return answer


@contextmanager
def counted(options: Mapping[str, str]) -> Iterator[tuple[dict[str, str], Counted]]:
    """The options that reach a server through a front that counts."""
    port = urlsplit(options["AWS_ENDPOINT"]).port
    assert port is not None
    counts = Counted(front.forwarding(port))
    with front.serving(counts) as asked:
        yield {**options, "AWS_ENDPOINT": asked.url}, counts


ROWS = pa.table({"id": pa.array(range(100), pa.int64())})
Verb = Callable[[str, dict[str, str]], object]
OURS: dict[str, Verb] = {
    "open": lambda place, options: anabranch.files(place, storage_options=options),
    "files of a point look-up": lambda place, options: anabranch.files(place, "id = 7", storage_options=options),
    "append of Arrow rows": lambda place, options: anabranch.append(place, ROWS, storage_options=options),
    "history": lambda place, options: anabranch.history(place, storage_options=options),
    "VACUUM, dry run": lambda place, options: anabranch.vacuum(place, dry_run=True, storage_options=options),
}
DELTALAKE: dict[str, Verb] = {
    "open": lambda place, options: DeltaTable(place, storage_options=options).file_uris(),
    "files of a point look-up": lambda place, options: DeltaTable(place, storage_options=options).file_uris(),
    "append of Arrow rows": lambda place, options: write_deltalake(place, ROWS, mode="append", storage_options=options),
    "history": lambda place, options: DeltaTable(place, storage_options=options).history(),
    "VACUUM, dry run": lambda place, options: DeltaTable(place, storage_options=options).vacuum(dry_run=True),
}


@dataclass(frozen=True)
class Cost:
    """What a verb cost: its requests, and the bytes of all bodies."""

    requests: tuple[str, ...]
    moved: int


def made(place: str, options: dict[str, str], commits: int) -> None:
    """A table with this many commits by deltalake, and a checkpoint behind the tenth if there are as many."""
    for number in range(commits):
        write_deltalake(place, ROWS, mode="append", storage_options=options)
        if number == 9:
            DeltaTable(place, storage_options=options).create_checkpoint()


def cost(side: str, verb: str, place: str, options: Mapping[str, str]) -> Cost:
    """What a verb costs in a new process; deltalake would let no thread of this one answer it."""
    with counted(options) as (asked, counts):
        command = [sys.executable, "-m", __name__, side, verb, place, json.dumps(asked)]
        subprocess.run(command, check=True, timeout=PATIENCE)
    return Cost(tuple(counts.seen), counts.moved)


if __name__ == "__main__":
    (OURS if sys.argv[1] == "ours" else DELTALAKE)[sys.argv[2]](sys.argv[3], json.loads(sys.argv[4]))
