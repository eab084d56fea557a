"""The command ``doctor``: checks this machine, and whether a store does what commits need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from anabranch._cli.arguments import Json
from anabranch._cli.diagnosis import Check, worst
from anabranch._cli.machine import connector, machine_checks
from anabranch._cli.output import console, print_json, print_text
from anabranch._cli.sessions import get_or_start_session
from anabranch._cli.store_probe import store_checks
from anabranch.errors import AnabranchError

_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(
    location: Annotated[
        str | None, typer.Argument(metavar="[LOCATION]", help="Path or URL of a table or folder, whose store is tried.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Start a session too: run a job in workers, try LOCATION.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check what Anabranch needs on this machine, and try the store of a location. Exit code 1 if a check fails.

    Starts no JVM unless it is asked to. In LOCATION it writes a few names, in folders of its own, and removes them.
    """
    checks = []
    for check in _checks(location, spark):
        checks.append(check)
        if not as_json:
            _print_check(check)
    state = worst(checks)
    if as_json:
        print_json({"state": state, "checks": [asdict(result) for result in checks]})
    raise typer.Exit(1 if state == "failed" else 0)


def _checks(location: str | None, spark: bool) -> Iterator[Check]:
    yield from machine_checks()
    if location is not None:
        results = list(store_checks(location))
        yield from results
        if results[0].state == "ok":
            yield connector(results[0].found.partition(":")[0])
        else:
            location = None
    if spark:
        yield from _spark_checks(location)


def _spark_checks(location: str | None) -> Iterator[Check]:
    """Starts a session, and probes the store of a location with it, if any."""
    try:
        session = get_or_start_session("anabranch doctor")
        yield Check("Spark", "ok", session.version)
        yield Check("job in workers", "ok", f"Python {_worker_python_version(session)}")
        if location is not None:
            from anabranch._cli.spark_probe import spark_checks  # needs PySpark

            yield from spark_checks(session, location)
    except AnabranchError as error:
        yield Check("Spark", "failed", error.message)
    except Exception as error:  # report whatever keeps Spark from running
        from anabranch._spark.frames.failures import reason_of

        yield Check("Spark", "failed", reason_of(error), "Its workers may run another Python: see the check above.")


def _worker_python_version(session: object) -> str:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    assert isinstance(session, SparkSession)
    version = F.udf(lambda _: __import__("platform").python_version(), "string")  # workers need no Anabranch
    return str(session.range(1).select(version("id")).collect()[0][0])


def _print_check(check: Check) -> None:
    console.print(f"{check.state:<9}", style=_STYLES[check.state], end="", highlight=False)
    print_text(f"{check.name}: {check.found}")
    if check.advice and check.state != "ok":
        print_text(f"{'':<9}{check.advice}")
