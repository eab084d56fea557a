"""Where rows are, once they were moved: every answer is complete, or there is none."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from anabranch._protocol.layout.curves import ORIGINS
from anabranch._protocol.layout.moves import Group, Origin, Output, RowsNotLocated, from_text, locate_rows, to_text

files = st.lists(st.tuples(st.integers(0, 40), st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39))), min_size=1)


def a_group(drawn: list[tuple[int, set[int], set[int]]]) -> tuple[Group, dict[str, BitMap64], dict[str, BitMap64]]:
    """Sources with their dead rows, and some of their live ones to ask for."""
    dead, asked, sources = {}, {}, []
    for number, (records, gone, wanted) in enumerate(drawn):
        path = f"s{number}"
        dead[path] = BitMap64(row for row in gone if row < records)
        asked[path] = BitMap64(row for row in wanted if row < records) - dead[path]
        sources.append(origin(path, records, dead[path]))
    live = sum(each.records - len(dead[each.path]) for each in sources)
    return Group(tuple(sources), (Output("o", live),), True), dead, asked


def origin(path: str, records: int, dead: BitMap64) -> Origin:
    """A file with these dead rows, as the log describes their vector."""
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 34, "cardinality": len(dead)}
    return Origin(path, records, vector if dead else None)


def in_order(group: Group, dead: dict[str, BitMap64]) -> list[tuple[str, int]]:
    return [(each.path, row) for each in group.sources for row in range(each.records) if row not in dead[each.path]]


def nothing(name: str) -> pa.Table:
    raise AssertionError(name)


@pytest.mark.slow
@given(files)
def test_rows_that_lie_one_behind_the_other_are_found(drawn: list[tuple[int, set[int], set[int]]]) -> None:
    group, dead, asked = a_group(drawn)
    written = in_order(group, dead)
    found = locate_rows(group, asked, lambda row: dead[row["path"]], nothing)
    assert {written[place] for place in found.get("o", ())} == {(path, row) for path in asked for row in asked[path]}


@pytest.mark.slow
@given(files, st.randoms(use_true_random=False), st.integers(1, 4))
def test_rows_in_another_order_are_found(drawn: list[tuple[int, set[int], set[int]]], dice: object, parts: int) -> None:
    group, dead, asked = a_group(drawn)
    written = in_order(group, dead)
    dice.shuffle(written)  # type: ignore[attr-defined]
    size = -(-len(written) // parts) or 1
    pieces = {f"o{i}": written[start : start + size] for i, start in enumerate(range(0, len(written), size))}
    outputs = tuple(Output(name, len(piece), f"{name}.origins") for name, piece in pieces.items())
    group = Group(group.sources, outputs, False)

    def origins(name: str) -> pa.Table:
        rows = [{"source": int(path[1:]), "row": row} for path, row in pieces[name.removesuffix(".origins")]]
        return pa.Table.from_pylist(rows, schema=ORIGINS)

    found = locate_rows(group, asked, lambda row: dead[row["path"]], origins)
    there = {pieces[name][place] for name, places in found.items() for place in places}
    assert there == {(path, row) for path in asked for row in asked[path]}


def test_the_record_is_read_as_it_was_written() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 34, "cardinality": 2}
    ordered = Group((Origin("a b", 10, vector), Origin("c", 3)), (Output("o", 11),), True)
    curved = Group((Origin("d", 4),), (Output("p", 2, "m/p"), Output("q", 2, "m/q")), False)
    assert from_text(to_text([ordered, curved])) == (ordered, curved)


@pytest.mark.parametrize("text", ["", "7", "[]", '{"form":2,"groups":[]}', '{"form":1}', '{"form":1,"groups":[[]]}'])
def test_a_record_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_text(text)


def one(records: int, *dead: int, written: int, in_order: bool = True) -> dict[str, BitMap64]:
    group = Group((origin("s", records, BitMap64(dead)),), (Output("o", written),), in_order)
    return locate_rows(group, {"s": BitMap64([1])}, lambda row: BitMap64(dead), nothing)


def test_a_row_that_was_dead_before_it_was_moved_has_no_address() -> None:
    assert one(3, 0, written=2) == {"o": BitMap64([0])}
    with pytest.raises(RowsNotLocated):
        one(3, 1, written=2)


def test_a_row_behind_the_end_of_its_file_has_no_address() -> None:
    with pytest.raises(RowsNotLocated):
        one(1, written=1)


def test_a_record_that_counts_other_rows_than_there_were_is_not_believed() -> None:
    with pytest.raises(RowsNotLocated):
        one(3, written=2)


def test_of_an_order_that_was_not_recorded_nothing_is_known() -> None:
    with pytest.raises(RowsNotLocated):
        one(3, written=3, in_order=False)


def test_of_all_rows_it_needs_no_record_where_each_went() -> None:
    dead = {"s": BitMap64([1]), "t": BitMap64()}
    sources = (origin("s", 3, dead["s"]), origin("t", 2, dead["t"]))
    group = Group(sources, (Output("o", 3), Output("q", 1)), False)
    every = {"s": BitMap64([0, 2]), "t": BitMap64([0, 1])}
    found = locate_rows(group, every, lambda row: dead[row["path"]], nothing)
    assert found == {"o": BitMap64([0, 1, 2]), "q": BitMap64([0])}
    short = Group(group.sources, group.outputs[:1], False)
    for wrong, rows in ((group, {"s": BitMap64([0, 2])}), (short, every)):
        with pytest.raises(RowsNotLocated):
            locate_rows(wrong, rows, lambda row: dead[row["path"]], nothing)


def test_origins_that_do_not_cover_their_file_are_not_believed() -> None:
    group = Group((Origin("s", 2),), (Output("o", 2, "x"),), False)
    short = pa.Table.from_pylist([{"source": 0, "row": 1}], schema=ORIGINS)
    with pytest.raises(RowsNotLocated):
        locate_rows(group, {"s": BitMap64([1])}, lambda row: BitMap64(), lambda name: short)
