"""Build the sdist and the wheel, check them, and install the wheel into a clean environment of each declared Python.

Knows `pyproject.toml`, git, venv, pip, build and twine. The environments are made in a folder of their own outside the
clone, where nothing but the wheel can be imported from, and removed at the end. In each the command line says its
version, and the package is imported and used without PySpark. In one, that of the newest Python, the extra `spark` is
installed too and a table is created, appended to and read.

    python tools/dist.py [--no-spark] [--sizes]      --sizes prints what is installed, as the rows of a table
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pythons

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

WITHOUT_SPARK = """
import pathlib, tempfile
import anabranch

assert "site-packages" in anabranch.__file__, anabranch.__file__
where = str(pathlib.Path(tempfile.mkdtemp()) / "table")
assert anabranch.append(where, [{"id": 1}]) == 0
assert anabranch.append(where, [{"id": 2}]) == 1
assert anabranch.files(where, "id > 1").num_rows == 1
assert anabranch.check(where, deep=True).is_clean
try:
    anabranch.session
except ImportError as error:
    assert "anabranch[spark]" in str(error), error
else:
    raise AssertionError("there is PySpark")
"""

WITH_SPARK = """
import pathlib, tempfile
import anabranch
from anabranch import DeltaTable

spark = anabranch.session("dist", "local[1]")
where = str(pathlib.Path(tempfile.mkdtemp()) / "table")
DeltaTable.create(spark).location(where).addColumn("id", "BIGINT").execute()
anabranch.append(where, [{"id": 1}, {"id": 2}])
spark.range(3, 5).write.format("delta").mode("append").save(where)
DeltaTable.forPath(spark, where).delete("id = 2")
assert sorted(row["id"] for row in spark.read.format("delta").load(where).collect()) == [1, 3, 4]
"""

SIZES = """
from importlib.metadata import distributions

for found in distributions():
    size = sum(file.locate().stat().st_size for file in found.files or () if file.locate().is_file())
    print(f"{found.name} {found.version} {size}")
"""


class Failed(Exception):
    """A step went wrong; what it printed stands above."""


def main(arguments: Sequence[str]) -> int:
    """Build, check and try; 0 where all went well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--no-spark", action="store_true", help="leave out PySpark, which is large")
    parser.add_argument("--sizes", action="store_true", help="print what is installed, with its size")
    options = parser.parse_args(arguments)
    try:
        _everything(options.no_spark, options.sizes)
    except Failed as failed:
        print(f"\n{failed}", file=sys.stderr)
        return 1
    return 0


def _everything(no_spark: bool, sizes: bool) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    wheel, sdist = _built(version)
    _compare_with_git(sdist)
    found = {each: python for each in pythons.declared() if (python := pythons.found(each))}
    for each in pythons.declared():
        if each not in found:
            print(f"Python {each}: left out, there is no such Python here")
    for each, python in found.items():
        spark = not no_spark and each == list(found)[-1]
        _try(wheel, version, each, python, spark=spark, sizes=sizes and each == next(iter(found)))


def _built(version: str) -> tuple[Path, Path]:
    """The wheel and the sdist, made anew and checked."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], quiet=True)
    made = sorted(DIST.iterdir())
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, made)])
    wheel, sdist = DIST / f"anabranch-{version}-py3-none-any.whl", DIST / f"anabranch-{version}.tar.gz"
    if set(made) != {wheel, sdist}:
        raise Failed(f"Other files than one wheel and one sdist were made: {', '.join(each.name for each in made)}")
    for each in made:
        print(f"{each.name}: {each.stat().st_size / 1e6:.2f} MB")
    return wheel, sdist


def _compare_with_git(sdist: Path) -> None:
    """The sdist holds every file that git tracks, so that its tests run; outside of a clone nobody can tell."""
    asked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    if missing := sorted({name for name in asked.stdout.split("\0") if name and (ROOT / name).exists()} - inside):
        raise Failed(f"The sdist lacks: {', '.join(missing)}")


def _try(wheel: Path, version: str, name: str, base: str, *, spark: bool, sizes: bool) -> None:
    """Install the wheel into an environment of this Python, and use it from there."""
    with tempfile.TemporaryDirectory(prefix="anabranch-dist-") as folder:
        python = Path(folder) / "bin" / "python"
        _run([base, "-m", "venv", folder])
        _install(python, str(wheel))
        said = _run([str(python.parent / "anabranch"), "--version"], at=folder, quiet=True)
        if version not in said:
            raise Failed(f"`anabranch --version` of {version} says: {said}")
        _run([str(python), "-c", WITHOUT_SPARK], at=folder)
        if sizes:
            _print_sizes(_run([str(python), "-c", SIZES], at=folder, quiet=True))
        if spark:
            _install(python, f"{wheel}[spark]")
            _run([str(python), "-c", WITH_SPARK], at=folder)
    print(f"Python {name}: {said.strip()}, installed and used without PySpark" + (" and with it" if spark else ""))


def _install(python: Path, what: str) -> None:
    _run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", what])


def _print_sizes(text: str) -> None:
    """The largest first, as rows of a table in Markdown."""
    found = [line.rsplit(" ", 1) for line in text.splitlines()]
    for what, size in sorted(found, key=lambda each: -int(each[1])):
        print(f"| {what} | {int(size) / 1e6:.1f} |")


def _run(command: Sequence[str], at: str | None = None, *, quiet: bool = False) -> str:
    """What a command prints where it is quiet; else it is shown.

    Raises:
        Failed: it did not succeed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    done = subprocess.run(command, cwd=at or ROOT, env=environment, capture_output=quiet, text=True, check=False)
    if done.returncode:
        print((done.stdout or "") + (done.stderr or ""), file=sys.stderr)
        raise Failed(f"{' '.join(command)[:200]} ended with {done.returncode}")
    return done.stdout or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
