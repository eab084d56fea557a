"""Geometry and geography types are named as delta-spark and Delta's kernel name them."""

from __future__ import annotations

import pytest

from anabranch._protocol.schema.geospatial import GEOSPATIAL, canonical_geospatial, geospatial_type
from anabranch._protocol.schema.types import OPAQUE, Field, Struct, check_storable, parse_schema, schema_json
from anabranch.errors import UnsupportedType

SPELLED = {
    "geometry": "geometry(OGC:CRS84)",
    "geometry( EPSG:3857 )": "geometry(EPSG:3857)",
    "geography": "geography(OGC:CRS84, SPHERICAL)",
    "geography(OGC:CRS84)": "geography(OGC:CRS84, SPHERICAL)",
    "geography(SPHERICAL)": "geography(OGC:CRS84, SPHERICAL)",
    "geography(OGC:CRS84,SPHERICAL)": "geography(OGC:CRS84, SPHERICAL)",
    "geography(KARNEY)": "geography(OGC:CRS84, KARNEY)",
}
OTHERS = ("geometry()", "geometry(4326)", "geometry(SPHERICAL)", "geography(, KARNEY)", "geometryx", "long")


@pytest.mark.parametrize(("spelled", "name"), SPELLED.items())
def test_a_schema_gets_the_whole_name_of_each_spelling(spelled: str, name: str) -> None:
    text = schema_json(Struct((Field("g", spelled),)))
    assert parse_schema(text) == Struct((Field("g", name),))


@pytest.mark.parametrize("other", OTHERS)
def test_other_names_are_kept_as_they_are(other: str) -> None:
    assert canonical_geospatial(other) == other


def test_sql_names_a_type_by_the_number_of_its_reference_system() -> None:
    assert geospatial_type("geometry", 0) == "geometry(SRID:0)"
    assert geospatial_type("geometry", 3857) == "geometry(EPSG:3857)"
    assert geospatial_type("geography", 4326) == "geography(OGC:CRS84, SPHERICAL)"
    assert geospatial_type("geography", 3857) is None
    assert geospatial_type("geometry", 27700) is None


def test_a_table_can_store_the_types_that_spark_knows_and_no_others() -> None:
    for name in GEOSPATIAL:
        assert name in OPAQUE
        check_storable(name, "g")
    for other in ("geometry(SRID:ANY)", "geometry(EPSG:27700)", "geography(OGC:CRS84, KARNEY)", "geometry(4326)"):
        assert other not in OPAQUE
        with pytest.raises(UnsupportedType):
            check_storable(other, "g")
