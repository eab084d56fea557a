"""``PYTHONPATH=tools python -m jobs``: run each library on both engines, then say where they differ.

0 where every difference has a reason.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

import interop

from . import comparison, environments, library, runs, sources, work


def main(arguments: Sequence[str]) -> int:
    asked = _asked(arguments)
    known, done, left = comparison.reasons(), [], []
    for each in library.chosen(asked.only, library.libraries()):
        try:
            done.append(_compared(each, asked, known))
        except subprocess.CalledProcessError as error:
            left.append(f"{each.name}: left out, since this failed: {' '.join(map(str, error.cmd))}")
            print(left[-1], flush=True)
    print("", comparison.table(done), *left, sep="\n")
    return int(bool(left) or not all(each.is_well for each in done))


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--only", nargs="+", default=[], metavar="LIBRARY", help="run these libraries only")
    parser.add_argument("--engine", choices=runs.ENGINES, help="run on one engine; the other's last outcomes are read")
    parser.add_argument("--git", default=sources.GIT, metavar="PLACE", help="the folder or host of the repositories")
    parser.epilog = "Arguments behind -- go to pytest."
    at = list(arguments).index("--") if "--" in arguments else len(arguments)
    asked = parser.parse_args(arguments[:at])
    asked.given = arguments[at + 1 :]
    return asked


def _compared(
    each: library.Library, asked: argparse.Namespace, known: Sequence[comparison.Reason]
) -> comparison.Comparison:
    archive = sources.fetched(each, asked.git)
    told = {}
    for engine in runs.ENGINES:
        if asked.engine in (None, engine):
            source = sources.laid_out(each, archive, work(each.name) / engine)
            python = environments.environment(each, source, interop.python())
            print(f"{each.name} on {engine} ...", flush=True)
            runs.run(each, engine, python, source, interop.jars(), asked.given)
        told[engine] = runs.last(each, engine)
    found = comparison.compare(each.name, told["delta-spark"], told["anabranch"], known)
    _say(found, told["anabranch"])
    return found


def _say(found: comparison.Comparison, ours: dict[str, runs.Outcome]) -> None:
    print(f"{found.library}: {found.theirs} pass on delta-spark, {found.ours} here, {found.both} on both")
    for test, reason in found.differing.items():
        said = ours[test].said.splitlines() if test in ours else ["did not run"]
        print(f"  {test}: {reason.kind if reason else 'NO REASON; ' + ' '.join(said[:1])[:200]}")
    for each in found.idle:
        print(f"  the reason holds for no test that differs: {each.why}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
