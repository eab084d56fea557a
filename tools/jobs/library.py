"""What the project says of each library: where it comes from, what it needs, which of its tests are run.

Knows the form of `libraries.toml` and nothing of how a library is fetched or run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("libraries.toml")


@dataclass(frozen=True, slots=True)
class Library:
    """A library of others. It comes from the package index (`version`, `sha256`) or from git (`repository`, `commit`).

    Attributes:
        requirements: what pip installs for it, beside PySpark, pandas, pytest and what Anabranch itself needs.
        tests: arguments of pytest, relative to `folder` of the source.
        folder: where in its source the library lies.
        path: the folder of its packages, where it finds its own files only beside them.
        at: text in its files that names a place on the author's machine, which is replaced by the run's own folder.
        leave: tests that are not run, each with its reason.
        environment: variables for its run.
    """

    name: str
    tests: tuple[str, ...]
    version: str = ""
    sha256: str = ""
    repository: str = ""
    commit: str = ""
    requirements: tuple[str, ...] = ()
    folder: str = "."
    path: str = ""
    at: str = ""
    leave: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def pin(self) -> str:
        return self.sha256 or self.commit

    def __post_init__(self) -> None:
        from_index, from_git = bool(self.version and self.sha256), bool(self.repository and self.commit)
        if from_index == from_git:
            raise ValueError(f"{self.name}: give version and sha256, or repository and commit.")


def libraries(data: Path = DATA) -> tuple[Library, ...]:
    return tuple(_library(name, facts) for name, facts in tomllib.loads(data.read_text()).items())


def chosen(names: Iterable[str], every: Iterable[Library]) -> tuple[Library, ...]:
    """The libraries of these names, or every one. Raises KeyError for a name that is none's."""
    by_name = {each.name: each for each in every}
    return tuple(by_name[name] for name in names) or tuple(by_name.values())


def _library(name: str, facts: dict[str, Any]) -> Library:
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return Library(name, **{**facts, **lists})
