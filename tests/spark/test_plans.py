"""Printed plans tell which files a query reads where nobody else says it."""

from __future__ import annotations

from anabranch.spark.plans import Relations, Scan, relations, scans

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
