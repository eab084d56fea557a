"""The corpus of SQL: statements in files, each with what it gives.

A file is a script over tables of its own: ``@a`` stands for a Delta table in an empty folder. Behind a statement, which
a semicolon ends, a line says what it gives: ``--> rows`` and the rows as JSON, sorted; ``--> columns`` and their names,
where the rows differ from day to day; ``--> nothing``; or ``--> error`` and its condition. Before it a line ``--? …``
gives the values of the statement's parameters, as JSON. Where delta-spark gives something else, a line ``--| …`` says
what, and, behind ``#``, why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parent.parent / "corpus"
FILES = sorted(FOLDER.glob("*.sql"))
_TABLE = re.compile(r"@([a-z]\w*)")
_VARYING = re.compile(
    r"^(DESCRIBE (HISTORY|DETAIL|EXTENDED)|SHOW CREATE|SHOW TBLPROPERTIES @\w+$|RESTORE|CREATE .*CLONE"
    r"|OPTIMIZE|REORG|VACUUM)"
)


@dataclass(frozen=True)
class Entry:
    """A statement with what it gives: ``theirs`` on delta-spark, where that differs, for a ``reason``."""

    file: str
    line: int
    statement: str
    ours: str
    theirs: str | None = None
    reason: str = ""
    args: Any = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def read(file: Path) -> list[Entry]:
    """The entries of a file, in order."""
    return list(_entries(file))


def _entries(file: Path) -> Iterator[Entry]:
    statement: list[str] = []
    lines = file.read_text(encoding="utf-8").splitlines()
    start, found, args = 1, None, None
    for number, line in enumerate(lines, 1):
        if line.startswith("--> "):
            if found is not None:
                yield found
            text = "\n".join(statement).removesuffix(";")
            found = Entry(file.name, start, text, line.removeprefix("--> "), args=args)
            statement, start, args = [], number + 1, None
        elif line.startswith("--? "):
            args = json.loads(line.removeprefix("--? "))
        elif line.startswith("--| "):
            assert found is not None, f"{file.name}:{number} says what delta-spark gives for nothing"
            theirs, _, reason = line.removeprefix("--| ").partition(" # ")
            found = replace(found, theirs=theirs, reason=reason)
            start = number + 1
        elif line.strip():
            start = start if statement else number
            statement.append(line)
    assert not statement, f"{file.name} ends without saying what {statement} gives"
    if found is not None:
        yield found


def placed(statement: str, folder: Path) -> str:
    """The statement with the tables of a folder in the place of their letters."""
    return _TABLE.sub(lambda match: f"delta.`{folder / match[1]}`", statement)


def outcome(statement: str, found: pa.Table) -> str:
    """What a statement gave, as a file says it."""
    if not found.column_names:
        return "nothing"
    if _VARYING.match(statement):
        return f"columns {json.dumps(found.column_names)}"
    rows = [[_plain(value) for value in row.values()] for row in _rows(found)]
    return f"rows {json.dumps(sorted(rows, key=json.dumps), ensure_ascii=False)}"


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    names = [f"c{i}" for i in range(found.num_columns)]  # two columns may have one name
    return found.rename_columns(names).to_pylist()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
