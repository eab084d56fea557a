"""Where the Pythons of this machine are: the one that runs, those on PATH, those of pyenv."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def declared() -> list[str]:
    """The versions that `pyproject.toml` declares, such as "3.11", the oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in project["classifiers"])
    return sorted((each[1] for each in found if each), key=lambda version: int(version.partition(".")[2]))


def found(version: str) -> str | None:
    """A Python of this version: this one, one on PATH, or one of pyenv's."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return str(getattr(sys, "_base_executable", sys.executable))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"))
    for candidate in (*map(str, kept[-1:]), shutil.which(f"python{version}")):
        if candidate and _runs(candidate):
            return candidate
    return None


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0
