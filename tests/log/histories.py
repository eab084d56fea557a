"""Random histories of file actions, spelled in many ways, and the plain replay that they are held against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from anabranch._log.commit_files import Raw

COLUMNS = ("p", "q")
Key = tuple[str, str | None]
Body = Mapping[str, Any]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
paths = st.sampled_from(["a.parquet", "b%20c.parquet", "p=1/é.parquet", "s3://elsewhere/d.parquet"])
vectors = st.none() | st.builds(
    lambda kind, path, offset: {
        "storageType": kind,
        "pathOrInlineDv": path,
        "sizeInBytes": 40,
        "cardinality": 2,
        **({} if offset is None else {"offset": offset}),
    },
    st.sampled_from("up"),
    st.sampled_from(["^-aqEH.-t@S}K{vb[*k^", "x"]),
    st.sampled_from([None, 0, 1, 50]),
)
values = st.dictionaries(st.sampled_from(COLUMNS), st.none() | texts)
optional = {
    "tags": st.dictionaries(texts.filter(bool), texts, max_size=2),
    "baseRowId": st.integers(0, 2**62),
    "stats": st.just('{"numRecords":3,"tags":{"a":1}}') | texts,
}
bodies = st.fixed_dictionaries(
    {"path": paths, "partitionValues": values, "size": st.integers(0, 2**62), "dataChange": st.booleans()},
    optional=optional,
)
adds = st.tuples(
    st.just("add"), st.builds(lambda body, ms: {**body, "modificationTime": ms}, bodies, st.integers(0, 9))
)
removes = st.tuples(st.just("remove"), bodies)
actions = st.tuples(adds | removes, vectors).map(
    lambda drawn: (drawn[0][0], drawn[0][1] if drawn[1] is None else {**drawn[0][1], "deletionVector": drawn[1]})
)
commits = st.lists(actions, min_size=1, max_size=5, unique_by=lambda action: key_of(action[1]))
histories = st.lists(commits, min_size=1, max_size=6)

strange = st.sampled_from(
    [
        '{"commitInfo":{"operation":"x"}}',
        '{"madeUp":{"add":{"path":"a.parquet"}}}',
        '{"cdc":{"path":"_change_data/x","partitionValues":{},"size":1,"dataChange":false}}',
        "",
        " \t ",
    ]
)
unknown = st.sampled_from([{}, {"madeUp": {"add": [1, None, {"x": "}"}]}}, {"path2": "b", "stats2": None}])
styles = st.sampled_from(
    [
        lambda action: json.dumps(action, separators=(",", ":"), ensure_ascii=False),
        lambda action: json.dumps(action, separators=(",", ":")),
        lambda action: json.dumps(action),
        lambda action: "  " + json.dumps(action, separators=(" , ", " : ")) + "\t ",
        lambda action: '{"add":' + json.dumps(action["add"]) + "}" if "add" in action else json.dumps(action),
    ]
)


def key_of(body: Body) -> Key:
    """What tells two logical files apart (PROTOCOL.md, "Action Reconciliation")."""
    vector = body.get("deletionVector")
    if vector is None:
        return body["path"], None
    return body["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


@st.composite
def spelled(draw: st.DrawFn) -> tuple[list[list[tuple[str, Body]]], list[Raw]]:
    """A history, and its commit files in odd spellings, with unknown fields and actions."""
    history, raws = draw(histories), []
    for version, commit in enumerate(history):
        lines = [draw(strange)]
        for kind, body in commit:
            lines += [draw(styles)({kind: {**body, **draw(unknown)}}), draw(strange)]
        end = draw(st.sampled_from(["\n", "\r\n"]))
        text = end.join(lines) + draw(st.sampled_from(["", end]))
        raws.append(Raw(version, text.encode()))
    return history, raws


def replayed(history: list[list[tuple[str, Body]]]) -> tuple[dict[Key, Body], dict[Key, Body]]:
    """Live files and tombstones, one action after the other."""
    live: dict[Key, Body] = {}
    gone: dict[Key, Body] = {}
    for commit in history:
        for kind, body in commit:
            here, there = (live, gone) if kind == "add" else (gone, live)
            here[key_of(body)] = body
            there.pop(key_of(body), None)
    return live, gone


def as_bodies(table: pa.Table) -> dict[Key, Body]:
    """The rows of a table of files or tombstones as the bodies of actions, by key; none of them twice."""
    rows = [_plain(row) for row in table.to_pylist()]
    found = {key_of(row): row for row in rows}
    assert len(found) == len(rows)
    return found


def expected(bodies: Mapping[Key, Body], schema: pa.Schema) -> dict[Key, Body]:
    """What a table of this schema can say of these bodies: each partition column has a value or null."""
    return {
        key: _plain(
            {
                **{name: body.get(name) for name in schema.names},
                "partitionValues": {column: body["partitionValues"].get(column) for column in COLUMNS},
            }
        )
        for key, body in bodies.items()
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if value is not None and name not in ("line", "dataChange")}
    for name in ("partitionValues", "tags", "deletionVector"):
        if name in plain:
            plain[name] = dict(plain[name])
    if "deletionVector" in plain:
        plain["deletionVector"] = {k: v for k, v in plain["deletionVector"].items() if v is not None}
    return plain


def without_stats_and_tags(bodies: dict[Any, Any]) -> dict[Any, Any]:
    """Tombstones as a checkpoint keeps them."""
    return {key: {k: v for k, v in body.items() if k not in ("stats", "tags")} for key, body in bodies.items()}
