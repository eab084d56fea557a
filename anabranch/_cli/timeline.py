"""The command ``timeline``: a table's versions as one HTML page, or as JSON."""

from __future__ import annotations

import os
import tempfile
import uuid
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from anabranch._api.timeline.document import name_of
from anabranch._api.timeline.view import Timeline
from anabranch._api.timeline.view import timeline as timeline_of
from anabranch._cli.arguments import Json, TableArgument, location_of
from anabranch._cli.output import print_json, print_text
from anabranch.commands.queries.timeline.read import LAST
from anabranch.errors import InvalidOption


def timeline(
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the page here; by default NAME-timeline.html in this folder."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser; without -o it is a temporary file.")
    ] = False,
    last: Annotated[int, typer.Option(help="Show at most this many versions, the newest.", min=1)] = LAST,
    as_json: Json = False,
) -> None:
    """Draw the versions of the table, what each did and what would help: one HTML page that needs no network."""
    view = timeline_of(location_of(table), last)
    if as_json:
        print_json(view.as_json())
        return
    page = _save_page(view, output) if output else _save_page(view, _place_of(view, temporary=show), follows=False)
    print_text(str(page))
    if show:
        webbrowser.open(page.absolute().as_uri())


def _place_of(view: Timeline, *, temporary: bool) -> Path:
    name = f"{name_of(view.data.table)}-timeline.html"
    return Path(tempfile.mkdtemp(prefix="anabranch-")) / name if temporary else Path(name)


def _save_page(view: Timeline, page: Path, *, follows: bool = True) -> Path:
    """Saves the page; without ``follows``, not through a link, which may be anybody's if the user named no place."""
    try:
        if not follows:
            return _save_atomically(view, page)
        return view.save(page)
    except OSError as error:
        raise InvalidOption(
            option="--output", value=str(page), reason=f"it cannot be written: {_reason(page, error)}"
        ) from None


def _save_atomically(view: Timeline, page: Path) -> Path:
    """Replaces the page in one step, without changing the target of a link at its place."""
    temporary = page.with_name(f".{page.name}.{uuid.uuid4().hex}.tmp")
    try:
        os.replace(view.save(temporary), page)
        return page
    finally:
        temporary.unlink(missing_ok=True)


def _reason(page: Path, error: OSError) -> str:
    if page.is_dir():
        return "it is a folder. Name a file in it."
    if not page.parent.is_dir():
        return f"there is no folder {page.parent}. Make it first."
    return f"{error.strerror}."
