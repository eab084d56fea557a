"""Fetch the source of a library, with its tests, and lay it out for a run.

Knows pip and git. A source from the package index is held to its SHA-256; one from git to its commit, which is a hash
of all that it holds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from . import cache
from .library import Library

GIT = "https://github.com"


def fetched(library: Library, git: str = GIT) -> Path:
    """The archive of the library's source, fetched unless it is in the cache. Raises CalledProcessError."""
    archive = cache() / "sources" / f"{library.name}-{library.pin[:16]}.tar"
    if not archive.exists():
        part = archive.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        (_by_pip if library.sha256 else _by_git)(library, part, git)
        next(part.glob("*.tar*")).rename(archive)
        shutil.rmtree(part)
    return archive


def laid_out(library: Library, archive: Path, place: Path) -> Path:
    """The folder of the library in its source, extracted anew into `place`."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data")
    source = place if library.repository else next(each for each in place.iterdir() if each.is_dir())
    folder = (source / library.folder).resolve()
    if library.at:
        _move(folder, library.at, f"{folder}/")
    return folder


def _by_pip(library: Library, folder: Path, _: str) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{library.name}=={library.version} --hash=sha256:{library.sha256}\n")
    how = ["--no-deps", "--no-binary", ":all:", "--ignore-requires-python", "--require-hashes", "--quiet"]
    run = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *how]
    subprocess.run([*run, "-d", str(folder), "-r", str(wanted)], check=True)


def _by_git(library: Library, folder: Path, git: str) -> None:
    here = ["git", "-C", str(folder)]
    subprocess.run([*here, "init", "--quiet", "--bare", "repository"], check=True)
    here = ["git", "-C", str(folder / "repository")]
    subprocess.run([*here, "fetch", "--quiet", "--depth=1", f"{git}/{library.repository}", library.commit], check=True)
    subprocess.run([*here, "archive", f"--output={folder}/source.tar", library.commit], check=True)


def _move(folder: Path, old: str, new: str) -> None:
    """Replace the name of a place in all text files."""
    for path in folder.rglob("*"):
        if path.is_file() and old.encode() in (data := path.read_bytes()) and b"\0" not in data:
            path.write_bytes(data.replace(old.encode(), new.encode()))
