"""Make an environment for each library: the PySpark of delta-spark's own environment, and what the library needs.

Knows pip and venv. Both engines run a library in one environment, so that they differ in nothing else.
What all libraries need is installed once; an environment sees the packages of those below it, and its own go first.
"""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

from . import ROOT, cache
from .library import Library

COMMON = ("pytest>=8.3,<9", "pytest-timeout>=2.3", "pytest-mock>=3.14", "pandas>=2.2,<3", "setuptools<81")


def environment(library: Library, source: Path, base: Path) -> Path:
    """The Python of the library's environment, made unless it is there; `base` is the one that has PySpark.

    Raises CalledProcessError.
    """
    below = _made("common", [base], [[*COMMON, *_our_dependencies()]], "")
    wanted = [["--no-deps", "--ignore-requires-python", str(source)]]
    if library.requirements:
        wanted.insert(0, list(library.requirements))
    return _made(library.name, [below, base], wanted, library.pin)


def _made(name: str, below: Sequence[Path], wanted: Sequence[Sequence[str]], pin: str) -> Path:
    packages = wanted[:-1] if pin else wanted  # the folder of a source is another one at each run
    facts = repr((packages, pin, list(map(str, below)))).encode()
    folder = cache() / f"{name}-{hashlib.sha256(facts).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"Making an environment for {name} in {folder} ...", flush=True)
        subprocess.run([str(below[-1]), "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
        Path(_site_packages(python), "below.pth").write_text("".join(f"{_site_packages(each)}\n" for each in below))
        pip = [str(below[-1]), "-m", "pip", "--python", str(python), "install"]
        pip += ["--disable-pip-version-check", "--no-input", "--quiet", "--no-compile"]
        for packages in wanted:
            subprocess.run([*pip, *packages], check=True)
        (folder / "ready").touch()
    return python


def _our_dependencies() -> list[str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def _site_packages(python: Path) -> str:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
