"""One HTML document of a timeline: its data, and the page's own style and script from the files next to this one.

Pure but for reading those files. Guarantee: nothing of the table's log is markup or code in the document: it is one
block of JSON without a ``<``, which the script shows as text only; the document's policy allows only its own style and
script, by their hashes, and no request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from anabranch.commands.queries.timeline.entries import Entry, Refusal, TableTimeline

_SCRIPTS = ("model.js", "river.js", "charts.js", "panels.js", "page.js")
_WIDEST = (1 << 53) - 1
"""The largest integer that JavaScript represents exactly."""
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def document(timeline: TableTimeline) -> str:
    """The whole document."""
    style, script = _asset("page.css"), "".join(map(_asset, _SCRIPTS))
    parts = {
        "{{policy}}": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
        "{{title}}": html.escape(f"Timeline of {name_of(timeline.table)}"),
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": _embed_json(payload(timeline)),
    }
    head, *rest = _asset("page.html").split("{{")
    return head + "".join(_fill_placeholder(f"{{{{{part}", parts) for part in rest)


def name_of(table: str) -> str:
    """The last part of a table's location.

    Example:
        >>> name_of("s3://lake/flights/")
        'flights'
    """
    return table.rstrip("/").rpartition("/")[2] or table


def payload(timeline: TableTimeline) -> dict[str, Any]:
    """The page's data: empty values are left out, repeated texts are stored once in ``texts``, and numbers that
    JavaScript would round are texts of digits.
    """
    texts: dict[str, int] = {}
    entries = [_entry(entry, texts) for entry in timeline.entries]
    return {
        "table": timeline.table,
        "name": name_of(timeline.table),
        "newest": _figure(timeline.newest),
        "older": timeline.older,
        "smallBelow": timeline.small_below,
        "advice": [asdict(hint) for hint in timeline.advice],
        "refusals": [_refusal(refusal) for refusal in timeline.refusals],
        "texts": list(texts),
        "entries": entries,
    }


def _entry(entry: Entry, texts: dict[str, int]) -> dict[str, Any]:
    info, did, totals = entry.said, entry.did, entry.totals
    shared = {"op": info.operation, "user": info.user, "engine": info.engine, "isolation": info.isolation}
    numbered = {name: texts.setdefault(text, len(texts)) for name, text in shared.items() if text is not None}
    rows = [did.rows_added, did.rows_removed, did.rows_marked, did.rows_moved]
    sizes = [did.files_added, did.files_removed, did.bytes_added, did.bytes_removed]
    table = totals and (totals.files, totals.bytes, totals.rows, totals.deleted_rows, totals.small_files)
    optional = {
        "base": _figure(info.base),
        "over": _figures(info.rebased_over or ()) or None,
        "cut": _figure(info.cut),
        "blind": info.is_blind,
        "reads": info.predicate,
        "rowLocal": info.row_local,
        "txn": info.txn_id,
        "params": info.parameters or None,
        "metrics": info.metrics or None,
        "more": info.more or None,
        "rows": _figures(rows) if any(rows) or None in rows else None,
        "sizes": _figures(sizes) if any(sizes) or None in sizes else None,
        "files": [[file.what, file.path, *_figures((file.bytes, file.rows))] for file in did.files] or None,
        "feed": did.change_files or None,
        "streams": [[name, _figure(version)] for name, version in entry.streams] or None,
        "checkpoint": entry.is_checkpoint or None,
        "after": table and _figures(table),
    }
    present = {name: value for name, value in optional.items() if value is not None}
    version = _figure(entry.version)
    return {"v": version, "t": entry.timestamp, "kind": entry.kind, "bytes": entry.bytes, **numbered, **present}


def _refusal(refusal: Refusal) -> dict[str, Any]:
    versions = {"version": _figure(refusal.version), "base": _figure(refusal.base)}
    return {**asdict(refusal), **versions}


def _figures(numbers: Iterable[int | None]) -> list[int | str | None]:
    return list(map(_figure, numbers))


def _figure(number: int | None) -> int | str | None:
    """The number, or its digits as text if JavaScript would round it."""
    return number if number is None or abs(number) <= _WIDEST else str(number)


def _fill_placeholder(part: str, parts: dict[str, str]) -> str:
    name, _, rest = part.partition("}}")
    return parts[f"{name}}}}}"] + rest


def _embed_json(value: Any) -> str:
    """JSON that cannot close the script element around it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign, escaped in _UNSAFE.items():
        text = text.replace(sign, escaped)
    return text.encode(errors="replace").decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return (files("anabranch._api.timeline") / "assets" / name).read_text(encoding="utf-8")
