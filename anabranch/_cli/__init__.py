"""``anabranch``: the command line, one subcommand per command, one module per group of commands.

Takes paths, URLs or names; prints tables for people, or one JSON value with ``--json``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from anabranch import __version__
from anabranch._cli.doctor import doctor
from anabranch._cli.maintenance_commands import clone, fsck, generate, optimize, reorg, restore, vacuum
from anabranch._cli.output import print_error, write_anything
from anabranch._cli.queries import check, detail, files, history
from anabranch._cli.showcase import demo, matrix
from anabranch._cli.statements import sql
from anabranch._cli.timeline import timeline
from anabranch.errors import AnabranchError, needs_pyspark

__all__ = ["app", "main"]

_SPARK_ERRORS = ("pyspark.errors.exceptions.base.PySparkException", "py4j.protocol.Py4JJavaError")

app = typer.Typer(help="Transactions for open Delta tables.", no_args_is_help=True)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"anabranch {__version__}")
        raise typer.Exit


for _command in (
    *(demo, history, timeline, detail, check, clone, files, sql),
    *(restore, fsck, generate, optimize, reorg, vacuum, matrix, doctor),
):
    app.command()(_command)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Transactions for open Delta tables."""


def main() -> None:
    """Runs the command line; an error is one sentence on the terminal, never a stack trace."""
    write_anything()
    try:
        with needs_pyspark("This command"):
            app()
    except AnabranchError as error:
        print_error(error.message)
        raise SystemExit(2) from None
    except OSError as error:  # such as a full disk behind standard output
        print_error(str(error))
        raise SystemExit(2) from None
    except Exception as error:
        if not any(f"{kind.__module__}.{kind.__name__}" in _SPARK_ERRORS for kind in type(error).__mro__):
            raise
        print_error(_message_of(error))
        raise SystemExit(2) from None


def _message_of(error: Exception) -> str:
    """Spark's message, without the plan and the stack frames."""
    lines = str(error).strip().splitlines()
    end = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("'", "+-", "at ", "JVM stack"))), None)
    return "\n".join(lines[:end]).rstrip(" ;\n")
