"""What a process keeps stands in one place, with a bound; no module keeps anything beside it."""

from __future__ import annotations

import ast
import gc
import importlib
import threading
from pathlib import Path

import pytest

from anabranch.errors.process_state import STATE, Cache, ProcessState, forget
from tests.support.patience import started
from tests.support.sources import tree_of

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "anabranch").rglob("*.py"))
OF_A_THREAD = {
    "anabranch/_transaction/own_commits.py",
    "anabranch/_transaction/phases.py",
    "anabranch/_transaction/open_transaction.py",
    "anabranch/_sql/executor/transaction_statements.py",
    "anabranch/_protocol/session_settings.py",
    "anabranch/_protocol/compression.py",
    "anabranch/errors/rows.py",
    "anabranch/_storage/store_settings.py",
    "anabranch/commands/rerunning.py",
    "anabranch/commands/watching.py",
    "anabranch/_spark/sessions/settings.py",
}
"""What listens on one thread, and what one call says; both end with the block that began them."""
HELD = {
    "the process that used a bucket first",
    "stores in memory",
    "stores put in place of others",
    "frames of tables' rows",
    "held settings",
    "temporary views",
    "cached tables",
    "installed sessions",
    "how many sessions were installed",
    "sessions with streams",
    "wrapped attributes",
    "who watches commands",
    "what commands show",
}
BOUNDS = {
    "tables whose rows are not shown": 10_000,
    "names of tables whose rows are not shown": 10_000,
    "places of tables shown": 10_000,
    "queries of web locations": 1000,
    "locations warned of": 1000,
    "buckets": 64,
    "footers of Parquet files": 8,
    "file systems": 64,
    "connections of WebHDFS": 64,
    "clients of web servers": 64,
    "newest snapshots": 1000,
    "checksums": 1000,
    "refused transactions": 1000,
    "clean-ups of logs": 10_000,
    "deletion vectors": 512,
    "classes of views of stores": 64,
    "schemas of files": 100_000,
    "options warned of": 1000,
    "settings warned of": 1000,
    "when a session's settings were listed": None,
    "sessions whose executors cannot run Arrow": None,
    "sessions that have Delta's own JARs": None,
    "sessions that said what only Spark's writer can do": None,
    "moves of winners": None,
    "names of something else": None,
    "spellings of tables' files": 1000,
    "sessions that know the format of names": None,
    "catalogs in memory": None,
    "working folders of sessions": None,
    "what schemas ask for": 256,
    "unreadable changes of types": 256,
    "levels of schemas": 256,
    "rules of tables": 256,
    "looks at statements": 512,
    "relations of many files": 4,
    "programs by their commits": 10_000,
}


def test_every_kind_that_is_kept_has_a_bound_or_a_reason() -> None:
    for module in MODULES:
        if module.name != "__main__.py" and "testing" not in module.parts:
            importlib.import_module(".".join(module.relative_to(ROOT).with_suffix("").parts))
    assert {name: STATE.bounds[name] for name in STATE.bounds} == BOUNDS
    assert set(STATE.held) == HELD
    assert all(STATE.held.values())


def kept_in(tree: ast.Module) -> list[int]:
    """The lines at which a module begins to keep something by itself."""
    empty = {"dict", "list", "set", "OrderedDict", "defaultdict", "deque", "WeakKeyDictionary", "WeakValueDictionary"}
    empty |= {"WeakSet", "local", "ContextVar", "PerObject", "Cache", "Counter"}
    found = []
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call):
            called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
            found += [node.lineno] if (called in empty and not value.args[:1]) or called == "ContextVar" else []
        elif isinstance(value, ast.Dict | ast.List) and not (value.keys if isinstance(value, ast.Dict) else value.elts):
            is_constant = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith("Mapping[")
            found += [] if is_constant else [node.lineno]
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef):
            names = {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in each.decorator_list}
            found += [each.lineno] if names & {"lru_cache", "cache", "cached"} else []
        found += [each.lineno] if isinstance(each, ast.Global) else []
    return found


@pytest.mark.parametrize(
    "text",
    [
        "_a = {}",
        "_a: dict[str, int] = {}",
        "_a = set()",
        "_a = WeakKeyDictionary()",
        "_a = threading.local()",
        "@lru_cache(maxsize=3)\ndef f(x): ...",
        "@functools.cache\ndef f(x): ...",
        "def f():\n    global x",
        "_a: ContextVar[int] = ContextVar('a', default=1)",
    ],
)
def test_a_module_that_keeps_something_is_noticed(text: str) -> None:
    assert kept_in(ast.parse(text))


FILLED_AT_ONCE = {"anabranch/_sql/registry.py", "anabranch/_protocol/expressions/table.py"}
"""Tables that are put together as the package is imported, and never change."""


@pytest.mark.slow
def test_no_module_keeps_anything_by_itself() -> None:
    found = {}
    for module in MODULES:
        name = module.relative_to(ROOT).as_posix()
        lines = kept_in(tree_of(module))
        if lines and name not in OF_A_THREAD | FILLED_AT_ONCE and "testing" not in module.parts:
            found[name] = lines
    assert found == {}


def test_of_too_many_entries_those_go_that_were_used_least_recently() -> None:
    kept: Cache[int, str] = Cache(3)
    for i in range(3):
        kept[i] = str(i)
    assert kept[0] == "0"
    kept[3] = "3"
    assert list(kept) == [2, 0, 3]
    assert kept.dropped
    assert kept.get(1) is None
    assert not kept.add(3, "x")
    assert kept[3] == "x"
    assert kept.pop(9, None) is None
    kept.clear()
    assert not kept.dropped


def test_entries_that_weigh_too_much_together_go_but_for_the_one_that_was_used_last() -> None:
    kept = ProcessState().cache("weights", 10)
    kept.update(a=3, b=1, c=2, d=2)
    assert kept["a"] == 3
    kept.lighten(lambda weight: weight, 7)
    assert list(kept) == ["c", "d", "a"]
    kept.lighten(lambda weight: weight, 6)
    assert list(kept) == ["d", "a"]
    kept.lighten(lambda weight: weight, 0)
    assert list(kept) == ["a"]


def test_forgetting_drops_what_can_be_found_again_and_nothing_else() -> None:
    state = ProcessState()
    kept, held = state.cache("a", 2), state.hold("b", "it is the data")({})
    asked = []

    @state.memo("c", 2)
    def looked_up(x: int) -> int:
        asked.append(x)
        return x

    kept["x"], held["x"] = 1, 1
    assert looked_up(1) == looked_up(1) == 1
    state.forget()
    assert not kept
    assert held
    assert looked_up(1) == 1
    assert asked == [1, 1]
    with pytest.raises(AssertionError, match="kept already"):
        state.cache("b", 1)


def test_what_is_kept_of_an_object_goes_with_it() -> None:
    class Session:
        pass

    kept = ProcessState().per_object("a")
    session = Session()
    kept[session] = 1
    assert len(kept) == 1
    del session
    gc.collect()
    assert not kept


@pytest.mark.slow
def test_many_threads_use_one_cache() -> None:
    kept: Cache[int, int] = Cache(16)
    wrong = []

    def use() -> None:
        for i in range(3000):
            kept[i % 40] = i % 40
            if (found := kept.get((i * 7) % 40)) not in (None, (i * 7) % 40):
                wrong.append(found)
            kept.pop(i % 5, None)
            list(kept)

    threads = [threading.Thread(target=use) for _ in range(8)]
    started(*threads)
    assert not wrong
    assert len(kept) <= 16


def test_where_too_many_tables_hide_their_rows_none_shows_them() -> None:
    from anabranch.errors import rows

    kind = "tables whose rows are not shown"
    forget(kind)
    try:
        for number in range(BOUNDS[kind] or 0):
            rows.note(f"{number}", 1, {rows.PROPERTY: "false"})
        assert rows.may_show_rows("other")
        rows.note("one more", 1, {rows.PROPERTY: "false"})
        assert not rows.may_show_rows("0")
        assert not rows.may_show_rows("other")
    finally:
        forget(kind)
    assert rows.may_show_rows("other")
