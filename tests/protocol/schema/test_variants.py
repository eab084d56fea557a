"""A shredded variant is told from one that is not, wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._protocol.schema.variants import shredded_column

PLAIN = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
SHREDDED = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])

PLACES: list[tuple[DataType, dict[str, pa.DataType]]] = [
    ("variant", {"plain": PLAIN, "shredded": SHREDDED}),
    (Array("variant"), {"plain": pa.list_(PLAIN), "shredded": pa.list_(SHREDDED)}),
    (Map("string", "variant"), {"plain": pa.map_(pa.string(), PLAIN), "shredded": pa.map_(pa.string(), SHREDDED)}),
    (
        Struct((Field("m", Array("variant")),)),
        {"plain": pa.struct([("m", pa.list_(PLAIN))]), "shredded": pa.struct([("m", pa.list_(SHREDDED))])},
    ),
]


def found(tmp_path: Path, column: pa.DataType, data_type: DataType) -> str | None:
    table = pa.table({"id": pa.array([1]), "c": pa.nulls(1, column)})
    pq.write_table(table, tmp_path / "a.parquet")
    schema = Struct((Field("id", "long"), Field("c", data_type)))
    return shredded_column(pq.read_metadata(tmp_path / "a.parquet"), schema)


@pytest.mark.parametrize(("data_type", "forms"), PLACES)
def test_only_shredded_variants_are_found(tmp_path: Path, data_type: DataType, forms: dict[str, pa.DataType]) -> None:
    assert found(tmp_path, forms["plain"], data_type) is None
    assert found(tmp_path, forms["shredded"], data_type) == "c"


def test_a_users_own_member_of_that_name_is_no_variant(tmp_path: Path) -> None:
    own = Struct((Field("metadata", "binary"), Field("value", "binary"), Field("typed_value", "long")))
    assert found(tmp_path, SHREDDED, own) is None
