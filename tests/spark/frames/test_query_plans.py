"""Printed plans tell which files a query reads where nobody else says it."""

from __future__ import annotations

import pytest

from anabranch._spark.frames.query_plans import Relations, Scan, Whole, chooses_only, relations, scans, whole_below

MARK = "__anabranch_0123456789abcdef_v3"
EXTENDED = f"""== Parsed Logical Plan ==
'Project [*]
+- 'UnresolvedRelation [x], [], false

== Analyzed Logical Plan ==
id: bigint
Project [id#6L, scalar-subquery#5 [] AS m#7L]
:  +- Aggregate [max(id#8L) AS max(id)#9L]
:     +- SubqueryAlias {MARK}
:        +- Project [id#8L]
:           +- Relation [id#8L,_metadata#10] parquet
+- @

== Optimized Logical Plan ==
Relation [id#99L] parquet

== Physical Plan ==
FileScan parquet [id#99L]
"""
FORMATTED = """== Physical Plan ==
* Project (2)
+- Scan csv  (1)


(1) Scan csv
Output [1]: [id#1]
Location: InMemoryFileIndex [file:/main, ... 4 entries]

===== Subqueries =====

Subquery:1 Hosting operator id = 2 Hosting Expression = Subquery subquery#5, [id=#45]
* HashAggregate (4)
+- Scan parquet  (3)


(3) Scan parquet
Output [2]: [id#7L, x#8]
Batched: true
Location: InMemoryFileIndex [file:/a b, c/t, ... 2 entries]
ReadSchema: struct<id:bigint>

(5) Scan text
Output: []
Location: CatalogFileIndex [s3a://b/t]

(6) BatchScan parquet file:/t
Output [1]: [id#9L]
Location: InMemoryFileIndex(2 paths)[file:/one, file:/two]

(7) Scan of something
Output [1]: [id#10L]

(8) Project
Output [1]: [id#9L]
Location: InMemoryFileIndex [file:/no scan]
"""


def test_a_relation_is_ours_below_our_mark_and_foreign_anywhere_else() -> None:
    def read(leaf: str) -> Relations:
        return relations(EXTENDED.replace("@", leaf))

    ours = frozenset({"8", "10"})
    assert read("Range (0, 3)") == Relations(False, ours, False)
    assert read("Relation spark_catalog.d.p[id#6L] parquet") == Relations(True, ours, False)
    assert read("RelationV2[id#6L] parquet file:/t") == Relations(True, ours, False)
    assert read("Relation [id#6L] JDBCRelation(t) [numPartitions=1]") == Relations(False, ours, False)
    assert read("Relation [id#6L,... 30 more fields] json") == Relations(True, ours, True)
    assert read(f"SubqueryAlias {MARK}\n   +- Relation [id#6L] csv") == Relations(False, ours | {"6"}, False)


def test_scans_of_subqueries_and_of_what_is_cached_are_hidden_those_of_the_main_plan_are_not() -> None:
    hidden = [
        Scan(frozenset({"7", "8"}), "file:/a b, c/t", has_more=True),
        Scan(frozenset(), "s3a://b/t", has_more=False),
        Scan(frozenset({"9"}), "file:/one", has_more=True),
        Scan(frozenset({"10"}), None, has_more=True),
    ]
    assert list(scans(FORMATTED, hidden=True)) == hidden
    cached = FORMATTED.replace("* Project (2)", "InMemoryTableScan (2)\n+- InMemoryRelation (9)")
    assert list(scans(cached, hidden=True)) == [Scan(frozenset({"1"}), "file:/main", has_more=True), *hidden]


SHOWN = """== Parsed Logical Plan ==
'UnresolvedRelation [v], [], false

== Analyzed Logical Plan ==
k: bigint, v: string
SubqueryAlias v
+- View (`v`, [k#1L, v#2])
   +- {node}
      +- SubqueryAlias q
         +- SubqueryAlias __anabranch_0123456789abcdef_v3{place}
            +- Project [k#1L, v#2]
               +- Filter NOT is_deleted
                  +- Relation [k#1L,v#2] parquet

== Optimized Logical Plan ==
Relation [k#1L,v#2] parquet
"""
COLUMNS = {"k": "bigint", "v": "string"}


def shows_whole(node: str, place: str = "_atfedcba9876543210") -> bool:
    found = whole_below(SHOWN.format(node=node, place=place))
    return found is not None and chooses_only(found.projections, COLUMNS)


@pytest.mark.parametrize(
    "node",
    [
        "SubqueryAlias w",
        "View (`w`, [k#1L, v#2])",
        "Project [k#1L, v#2]",
        "Project [k#1L AS k#3L, v#2 AS v#4]",
        "Project [cast(k#1L as bigint) AS k#3L, cast(v#2 as string) AS v#4]",
    ],
)
def test_a_view_may_show_all_rows_of_a_table_as_they_are(node: str) -> None:
    assert shows_whole(node)
    assert not shows_whole(node, place=""), "rows of some files, or of a version that was asked for"


@pytest.mark.parametrize(
    "node",
    [
        "Filter (k#1L > 1)",
        "GlobalLimit 1",
        "Distinct",
        "Sort [k#1L ASC NULLS FIRST], true",
        "Generate explode(k#1L), false",
        "Union false, false",
        "Project [k#1L]",
        "Project [v#2, k#1L]",
        "Project [v#2 AS k#3, k#1L AS v#4L]",
        "Project [k#1L, v#2, 1 AS w#3]",
        "Project [cast(k#1L as int) AS k#3, v#2]",
        "Project [(k#1L + 0) AS k#3L, v#2]",
        "Project [k#1L, ... 1 more field]",
        "Project [k#1L, v#2]\n   :  +- Aggregate [max(k#9L)]",
        ":- SubqueryAlias w",
        "Join Inner",
    ],
)
def test_a_view_that_does_anything_to_rows_shows_no_table(node: str) -> None:
    assert not shows_whole(node)


def test_what_is_shown_is_named_by_its_marks() -> None:
    found = whole_below(SHOWN.format(node="Project [k#1L, v#2]", place="_atfedcba9876543210"))
    assert found == Whole("__anabranch_0123456789abcdef", "fedcba9876543210", ["Project [k#1L, v#2]"])
    assert whole_below("") is None
