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
    known, done = comparison.reasons(), []
    for each in library.chosen(asked.only, library.libraries()):
        try:
            done.append(_compared(each, asked, known))
        except subprocess.CalledProcessError as error:
            print(f"{each.name}: left out, since this failed: {' '.join(map(str, error.cmd))}", flush=True)
    print(f"\n{comparison.table(done)}")
    return int(not done or any(each.unexplained or each.idle or not each.theirs for each in done))


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--only", nargs="+", default=[], metavar="LIBRARY", help="run these libraries only")
    parser.add_argument("--engine", choices=runs.ENGINES, help="run on one engine; the other's last outcomes are read")
    parser.add_argument("--git", default=sources.GIT, metavar="PLACE", help="the folder or host of the repositories")
    parser.add_argument("given", nargs=argparse.REMAINDER, metavar="-- ARGS", help="arguments for pytest")
    return parser.parse_args(arguments)


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
            runs.run(each, engine, python, source, interop.jars(), asked.given[1:])
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
