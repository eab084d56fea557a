"""Geometry and geography types: their names in a schema.

Knows how delta-spark 4.4 and Delta's kernel name these types in a schema (table feature ``geospatial``; PROTOCOL.md
does not describe them yet), and which reference systems Spark 4.1 and later know. Pure. Guarantee: a type that Spark
does not know keeps its name, and is refused under it.

A value is the well-known binary (WKB) of a geometry; files hold it with Parquet's logical type of the same name.
"""

from __future__ import annotations

import re

KINDS = ("geometry", "geography")

_CRS = {0: "SRID:0", 3857: "EPSG:3857", 4326: "OGC:CRS84"}
"""The reference systems of Spark 4.1 and later, by their numbers (SRID)."""
_ON_THE_SPHERE = frozenset({4326})
"""Those that a geography can have."""
_DEFAULT_CRS, _DEFAULT_EDGES = "OGC:CRS84", "SPHERICAL"
_GEOMETRY = re.compile(r"geometry(?:\(\s*(\w+:-?\w+)\s*\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(\s*(?:(\w+:-?\w+)(?:\s*,\s*([A-Za-z_]+))?|([A-Za-z_]+))\s*\))?")


def canonical_geospatial(name: str) -> str:
    """The name of a type with the parts that may be left out; names of other types are returned as they are.

    Example:
        >>> canonical_geospatial("geography"), canonical_geospatial("geometry(EPSG:3857)"), canonical_geospatial("long")
        ('geography(OGC:CRS84, SPHERICAL)', 'geometry(EPSG:3857)', 'long')
    """
    if match := _GEOMETRY.fullmatch(name):
        return f"geometry({match[1] or _DEFAULT_CRS})"
    if match := _GEOGRAPHY.fullmatch(name):
        return f"geography({match[1] or _DEFAULT_CRS}, {match[2] or match[3] or _DEFAULT_EDGES})"
    return name


_BY_SRID = {
    **{("geometry", srid): canonical_geospatial(f"geometry({crs})") for srid, crs in _CRS.items()},
    **{("geography", srid): canonical_geospatial(f"geography({_CRS[srid]})") for srid in _ON_THE_SPHERE},
}
GEOSPATIAL = frozenset(_BY_SRID.values())
"""The names of the types that Spark 4.1 and later know."""


def geospatial_type(kind: str, srid: int) -> str | None:
    """The type of a kind by the number of its reference system, as SQL names it; None if Spark has no such type.

    Example:
        >>> geospatial_type("geometry", 4326)
        'geometry(OGC:CRS84)'
    """
    return _BY_SRID.get((kind, srid))
