"""Tables that list collations: written while no column has one, and read whatever they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.new_table import NewTable
from anabranch.errors import UnsupportedFeature
from anabranch.errors.process_state import forget
from tests.support.worlds import World, table_path

COLLATED = Field("c", "string", metadata={"__COLLATIONS": {"c": "spark.UTF8_LCASE"}})


def test_a_table_that_lists_collations_is_changed_like_any_other_while_no_column_has_one(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "s": "a"} for i in range(3)])
    AddFeatureSupport(world.path, "collations").run()
    assert {"collations", "domainMetadata"} <= (world.log.snapshot().protocol.writer_features or set())
    world.update("s = 'a' AND id = 1", s="b")
    world.append({"id": 7, "s": "A"})
    assert [row["s"] for row in world.rows()] == ["a", "b", "a", "A"]


def test_a_table_with_a_collated_column_is_read_and_nothing_changes_it(tmp_path: Path) -> None:
    """Where the protocol lists no collations, that of a column is a mere comment."""
    world, schema = World(table_path(tmp_path)), Struct((Field("id", "long"), COLLATED))
    Create(world.path, NewTable(schema)).run()
    world.append({"id": 1, "c": "a"})
    log = Path(world.path, "_delta_log", f"{0:020d}.json")
    text = log.read_text()
    log.write_text(text.replace('"writerFeatures":[', '"writerFeatures":["collations","domainMetadata",'))
    assert log.read_text() != text
    forget()
    assert world.rows() == [{"id": 1, "c": "a"}]
    for change in (lambda: world.append({"id": 2, "c": "A"}), lambda: world.delete("c = 'A'"), world.optimize):
        with pytest.raises(UnsupportedFeature, match="compare collated strings by their collations"):
            change()
    other = World(table_path(tmp_path))
    with pytest.raises(UnsupportedFeature, match="collations"):
        Create(other.path, NewTable(schema, None, {"delta.feature.collations": "supported"})).run()
