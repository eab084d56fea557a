"""Ways for a disk to fail, and a look at what is left on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from anabranch._storage import disk
from anabranch._storage.local import LocalStore


def refusing(number: int) -> Callable[..., None]:
    """A system call that always fails."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def files_of(store: LocalStore) -> list[str]:
    """Whatever lies under the root, hidden or not."""
    return [name for _, _, names in os.walk(store.root) for name in names]


def files_aside(folder: Path) -> list[Path]:
    """What writers under way, or killed, have below a folder."""
    return [path for path in folder.rglob("*") if disk.is_aside(path.name)]
