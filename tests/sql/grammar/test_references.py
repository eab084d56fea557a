"""Which tables a statement reads, and which rows of them can matter."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from anabranch import errors
from anabranch._catalog.table_names import path_in
from anabranch._expressions.blocks import block_predicate, strip_qualifiers
from anabranch._expressions.context import Context
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._protocol.predicates import And, Compare, Predicate, Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch._sql import reading as parsing
from anabranch._sql.grammar.tables_read import tables_read

COLUMNS = Struct((Field("id", "long"), Field("day", "date"), Field("s", Struct((Field("x", "long"),)))))


def references(text: str, args: Any = None) -> list[Any]:
    found = parsing.statement(text.replace("@T", "delta.`/t`").replace("@S", "delta.`/s`"), args, path_in)
    return list(found.references)


@pytest.mark.parametrize(
    ("text", "locations"),
    [
        ("SELECT * FROM @T", ["/t"]),
        ("SELECT * FROM @T, @S", ["/t", "/s"]),
        ("SELECT * FROM a LEFT JOIN @T ON a.x = 1 JOIN (@S s CROSS JOIN b)", ["/t", "/s"]),
        ("SELECT (SELECT max(x) FROM @T) FROM b WHERE c IN (SELECT x FROM @S)", ["/t", "/s"]),
        ("SELECT delta.`/x`, extract(YEAR FROM delta.`/y`) FROM @T WHERE delta.`/z` = 1", ["/t"]),
        ("SELECT * FROM x UNION ALL SELECT * FROM @T EXCEPT TABLE @S", ["/t", "/s"]),
        ("WITH a AS (SELECT * FROM @T), b (x) AS (SELECT 1) SELECT * FROM a, b, @S", ["/t", "/s"]),
        ("FROM @T SELECT id", ["/t"]),
        ("FROM @T |> WHERE id > 1", ["/t"]),
        ("INSERT INTO names SELECT * FROM @T", ["/t"]),
        ("EXPLAIN EXTENDED SELECT * FROM @T", ["/t"]),
        ("SELECT * FROM @T t LATERAL VIEW explode(array(1)) v AS x, y", ["/t"]),
        ("SELECT * FROM @T TABLESAMPLE (10 PERCENT) s", ["/t"]),
        ("SELECT a IS DISTINCT FROM b, trim(BOTH FROM c) FROM @T", ["/t"]),
        ("DESCRIBE QUERY SELECT * FROM @T", ["/t"]),
        ("SELECT * FROM VALUES (1, 2), (f(3), 4) AS v (a, b), @T", ["/t"]),
        ("SELECT * FROM VALUES 1, 'x' v, @T, VALUES (1) w, @S", ["/t", "/s"]),
        ("SELECT * FROM u AS values, @T AS window, @S", ["/t", "/s"]),
        ("SELECT * FROM (u AS values), @T", ["/t"]),
        ("SELECT * FROM VALUES (1) JOIN @T", ["/t"]),
        ("DELETE FROM other WHERE id IN (SELECT id FROM @T)", ["/t"]),
    ],
)
def test_tables_are_found_where_tables_stand(text: str, locations: list[str]) -> None:
    assert [each.table.location for each in references(text)] == locations


def around(text: str) -> list[tuple[str, bool]]:
    return [(each.table.location, each.takes_alias) for each in references(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM ((@T))", [("/t", True)]),
        ("SELECT * FROM (((@T)) JOIN (@S AS s) USING (id)), ((@T x))", [("/t", True), ("/s", False), ("/t", False)]),
        ("SELECT * FROM ((@T JOIN @S ON a = b) LEFT JOIN (SELECT c, d FROM x) y ON (c))", [("/t", True), ("/s", True)]),
        ("SELECT * FROM ((SELECT a FROM @T) x CROSS JOIN @S)", [("/t", True), ("/s", True)]),
        ("SELECT * FROM ((TABLE @T))", [("/t", False)]),
        ("SELECT * FROM f(TABLE(@T) PARTITION BY a, TABLE(SELECT b FROM @S))", [("/t", False), ("/s", True)]),
    ],
)
def test_tables_are_found_in_parentheses(text: str, found: list[tuple[str, bool]]) -> None:
    assert around(text) == found


@pytest.mark.parametrize(
    "rest",
    [
        "JOIN b USING (@S) JOIN c USING (@S, x)",
        "WHERE a IS DISTINCT FROM (@S)",
        "WHERE extract(YEAR FROM (@S)) > trim(BOTH 'x' FROM (@S)) OR f(table(@S))",
        "JOIN (((delta.f(@S))))",
        "JOIN ((VALUES (@S, @S)) v JOIN (SELECT (@S), @S FROM b))",
    ],
)
def test_columns_and_calls_in_parentheses_are_no_tables(rest: str) -> None:
    assert around(f"SELECT * FROM @T t {rest}") == [("/t", False)]


@pytest.mark.parametrize(
    ("text", "version", "timestamp", "location"),
    [
        ("SELECT * FROM @T VERSION AS OF 3 AS x", "3", None, "/t"),
        ("SELECT * FROM @T FOR VERSION AS OF '3'", "'3'", None, "/t"),
        ("SELECT * FROM @T TIMESTAMP AS OF '2020-01-01' x JOIN y", None, "'2020-01-01'", "/t"),
        (
            "SELECT * FROM @T TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY WHERE a",
            None,
            "current_timestamp() - INTERVAL 1 DAY",
            "/t",
        ),
        ("SELECT * FROM @T VERSION AS OF :v", "7", None, "/t"),
        ("SELECT * FROM @T@v3 x", None, None, "/t@v3"),
        ("SELECT * FROM @T@20240131000000000", None, None, "/t@20240131000000000"),
    ],
)
def test_as_of_belongs_to_the_table(text: str, version: str | None, timestamp: str | None, location: str) -> None:
    (found,) = references(text, {"v": 7})
    assert (found.table.version, found.table.timestamp, found.table.location) == (version, timestamp, location)


@pytest.mark.parametrize(
    ("text", "where", "sole"),
    [
        ("SELECT * FROM @T WHERE id > 1 GROUP BY id", "id > 1", True),
        ("SELECT * FROM @T x, b WHERE x.id > 1", "x.id > 1", False),
        ("SELECT * FROM (SELECT * FROM @T WHERE id > 1 LIMIT 3) WHERE id < 9", "id > 1", True),
        ("SELECT * FROM @T x LEFT JOIN b ON x.id = b.id WHERE x.id > 1", "x.id > 1", False),
        ("SELECT * FROM b LEFT JOIN @T x ON x.id = b.id WHERE x.id IS NULL", None, False),
        ("SELECT * FROM @T x RIGHT JOIN b ON x.id = b.id WHERE x.id IS NULL", None, False),
        ("SELECT * FROM @T x FULL OUTER JOIN b ON x.id = b.id WHERE x.id = 1", None, False),
        ("SELECT * FROM @T x (a, b) WHERE a = 1", None, False),
        ("SELECT * FROM @T TABLESAMPLE (3 ROWS) WHERE id = 1", None, False),
        ("SELECT * FROM @T PIVOT (max(id) FOR day IN ('x')) WHERE id = 1", None, False),
        ("SELECT * FROM @T LATERAL VIEW explode(s) v AS id WHERE id = 1", None, False),
        ("FROM @T |> AGGREGATE count(*) AS id |> WHERE id = 1", None, False),
        ("SELECT * FROM @T UNION SELECT * FROM b WHERE id = 1", None, False),
        ("SELECT * FROM b WHERE EXISTS (SELECT 1 FROM @T WHERE id = b.id)", "id = b.id", True),
    ],
)
def test_a_condition_counts_where_rows_outside_it_cannot_matter(text: str, where: str | None, sole: bool) -> None:
    (found,) = references(text)
    assert (found.where, found.sole) == (where, sole)


def context() -> Context:
    return Context("/t", COLUMNS, dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


@pytest.mark.parametrize(
    ("where", "sole", "predicate"),
    [
        ("x.id > 1 AND b.id < 3", False, And((Compare("id", ">", 1), Unknown()))),
        ("id > 1", False, Unknown()),
        ("id > 1", True, Compare("id", ">", 1)),
        ("X.ID > 1", False, Compare("id", ">", 1)),
        ("db.X.id > 1 AND c.x.id > 1", False, And((Compare("id", ">", 1), Unknown()))),
        ("b.id > 1", True, Unknown()),
        ("s.x > 1", True, Compare(("s", "x"), ">", 1)),
        ("x.S.x > 1", False, Compare(("s", "x"), ">", 1)),
        ("s.nope > 1", True, Unknown()),
        ("x.nope > 1", True, Unknown()),
        ("x.id IN (SELECT x.id FROM y AS x WHERE x.id > 5)", True, Unknown()),
    ],
)
def test_a_blocks_condition_says_of_a_table_what_names_its_columns(
    where: str, sole: bool, predicate: Predicate
) -> None:
    assert block_predicate(where, ("db", "x"), context(), sole=sole) == predicate


def test_a_table_that_is_called_as_one_of_its_columns_is_not_guessed_at() -> None:
    for sole in (False, True):
        assert block_predicate("s.x > 1", ("s",), context(), sole=sole) == Unknown()


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("x.id + X.`id` > b.x.id", "id + `id` > b.x.id"),
        ("'x.id' = xx.id", "'x.id' = xx.id"),
        ("x.s.x = 1 -- x.id", "s.x = 1 -- x.id"),
        ("x = 1", "x = 1"),
    ],
)
def test_a_qualifier_is_taken_away_where_it_is_the_tables(text: str, bare: str) -> None:
    assert strip_qualifiers(TokenizedText(text), ("x",), COLUMNS).text == bare


def test_a_path_qualifies_as_well() -> None:
    assert strip_qualifiers(TokenizedText("delta.`/t`.id = `/t`.id"), ("delta", "/t"), COLUMNS).text == "id = id"


# -- names that end alike ----------------------------------------------------------------------------------------------

SCHEMAS = {
    name: f"/{'/'.join(name)}" for name in [("a", "t"), ("b", "t"), ("t", "t"), ("x", "a", "t"), ("a", "u"), ("t",)]
}


def located(name: tuple[str, ...]) -> str | None:
    return SCHEMAS.get(tuple(part.lower() for part in name))


def handed_on(text: str) -> tuple[str, list[str | None]]:
    """A query as Spark gets it, but for the tables, and under which aliases those are put into it."""
    found = parsing.statement(text, None, located)
    return found.text, [each.called for each in found.references]


@pytest.mark.parametrize(
    ("text", "handed", "aliases"),
    [
        (
            "SELECT a.t.id, B.t.* FROM a.t JOIN b.T ON a.t.id = b.t.id",
            "SELECT `a.t`.id, `b.T`.* FROM a.t JOIN b.T ON `a.t`.id = `b.T`.id",
            ["a.t", "b.T"],
        ),
        ("SELECT a.t.id FROM a.t, b.t", "SELECT `a.t`.id FROM a.t, b.t", ["a.t", None]),
        ("SELECT a.t.id, t.t.id FROM a.t, t.t", "SELECT `a.t`.id, t.t.id FROM a.t, t.t", ["a.t", None]),
        ("SELECT a.t.id FROM a.t, elses.t", "SELECT `a.t`.id FROM a.t, elses.t", ["a.t"]),
        (
            "SELECT a.t.id FROM a.t WHERE EXISTS (SELECT 1 FROM (b.t) WHERE b.t.id = a.t.id)",
            "SELECT `a.t`.id FROM a.t WHERE EXISTS (SELECT 1 FROM (b.t) WHERE `b.t`.id = `a.t`.id)",
            ["a.t", "b.t"],
        ),
    ],
)
def test_tables_whose_names_end_alike_are_told_apart_by_their_whole_names(
    text: str, handed: str, aliases: list[str | None]
) -> None:
    assert handed_on(text) == (handed, aliases)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.t.id, t.id FROM a.t, b.t",
        "SELECT t.*, a.t.id FROM a.t, b.t",
        "SELECT a.t.id FROM t, a.t WHERE t.id = 1",
        "SELECT a.t.id FROM a.t, x.a.t",
        "SELECT (SELECT max(a.t.id) FROM c AS a) FROM a.t, b.t",
        "SELECT (SELECT max(a.t.id) FROM c.a) FROM a.t, b.t",
        "WITH a AS (SELECT 1) SELECT a.t.id FROM a, a.t, b.t",
        "SELECT a.t.id, `a.t` FROM a.t, b.t",
        "SELECT a.t.id FROM b.t x, b.t",
        "SELECT y.a.t.id FROM a.t, b.t",
    ],
)
def test_what_could_be_another_tables_column_is_left_for_spark_to_refuse(text: str) -> None:
    handed, aliases = handed_on(text)
    assert (handed, {*aliases}) == (text, {None})


def test_one_table_by_two_names_is_not_told_apart() -> None:
    text = "SELECT a.t.id FROM t, a.t"
    assert parsing.statement(text, None, lambda name: "/one" if name[-1] == "t" else None).text == text
    assert handed_on(text)[0] == "SELECT `a.t`.id FROM t, a.t"


def test_what_is_written_has_the_same_alias_in_all_of_its_statement() -> None:
    update = parsing.statement("UPDATE a.t SET a.t.s = 1 WHERE a.t.id IN (SELECT b.t.id FROM b.t)", None, located)
    assert (update.table.alias, update.values[0][0]) == ("a.t", ("a.t", "s"))
    assert update.where.text == "`a.t`.id IN (SELECT `b.t`.id FROM b.t)"
    merge = parsing.statement(
        "MERGE INTO a.t USING elses.t ON a.t.id = elses.t.id WHEN NOT MATCHED THEN INSERT (a.t.id) VALUES (elses.t.id)",
        None,
        located,
    )
    assert (merge.table.alias, merge.source_alias, merge.source.text) == ("a.t", "elses.t", "SELECT * FROM elses.t")
    assert merge.on.text == "`a.t`.id = `elses.t`.id"
    ((path, value),) = merge.clauses[0].values
    assert (path, value.text) == (("a.t", "id"), "`elses.t`.id")
    bare = parsing.statement("DELETE FROM a.t WHERE t.id IN (SELECT b.t.id FROM b.t)", None, located)
    assert (bare.table.alias, bare.where.text) == (None, "t.id IN (SELECT b.t.id FROM b.t)")


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "location", "start", "end"),
    [
        ("SELECT * FROM table_changes('/t', 3)", "/t", "3", None),
        ("SELECT * FROM table_changes('delta.`/t`', 3, 5)", "/t", "3", "5"),
        (
            "SELECT * FROM TABLE_CHANGES(delta.`/t`, '2020-01-01', now() - x) c",
            "/t",
            "'2020-01-01'",
            "now() - x",
        ),
        (
            "SELECT * FROM table_changes_by_path('s3://b/t', coalesce(1, 2)) WHERE id = 1",
            "s3://b/t",
            "coalesce(1, 2)",
            None,
        ),
        ("SELECT * FROM table_changes(:t, :from, :to)", "/t", "7", "'x'"),
        ("WITH c AS (FROM table_changes('/t', 1)) SELECT * FROM c", "/t", "1", None),
        ("SELECT * FROM a WHERE id IN (SELECT id FROM table_changes('/t', 1, 2))", "/t", "1", "2"),
        ("SELECT * FROM a, table_changes('/t', 1) c", "/t", "1", None),
    ],
)
def test_table_changes_is_a_table(text: str, location: str, start: str, end: str | None) -> None:
    (found,) = references(text, {"t": "delta.`/t`", "from": 7, "to": "x"})
    assert (found.table.location, found.changes.start, found.changes.end) == (location, start, end)
    assert text[found.start : found.stop].lower().startswith("table_changes")
    assert text[: found.stop].endswith(")")
    assert found.where is None


def test_table_changes_stands_among_other_tables() -> None:
    text = "SELECT * FROM @T t JOIN table_changes('/s', 1) c ON t.id = c.id JOIN @S USING (id) WHERE t.id > 1"
    first, changes, last = references(text)
    assert [each.table.location for each in (first, changes, last)] == ["/t", "/s", "/s"]
    assert (first.changes, changes.table.alias, last.changes) == (None, "c", None)


def test_other_functions_are_no_tables() -> None:
    assert parsing.statement("SELECT * FROM range(3), x.table_changes('/t', 1)", None, path_in) is None
    assert parsing.statement("SELECT table_changes('/t', 1) FROM x", None, path_in) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM table_changes('/t')",
        "SELECT * FROM table_changes('/t', 1, 2, 3)",
        "SELECT * FROM table_changes('/t', 1",
        "SELECT * FROM table_changes('a b', 1)",
        "SELECT * FROM table_changes(3, 1)",
        "SELECT * FROM table_changes_by_path(t, 1)",
        "SELECT * FROM table_changes('/t', )",
    ],
)
def test_table_changes_is_refused_where_it_is_not_put_together_so(text: str) -> None:
    with pytest.raises(errors.SqlSyntaxError) as error:
        references(text)
    assert "^" in str(error.value)


def test_the_changes_of_what_is_no_delta_table_are_refused() -> None:
    with pytest.raises(errors.UnknownTable, match=r"`a`\.`b`"):
        references("SELECT * FROM table_changes('a.b', 1)")


def test_parameters_that_name_a_version_are_used_up() -> None:
    text = "SELECT ? FROM @T VERSION AS OF ? JOIN table_changes('/t', ?) WHERE id = ?"
    found = parsing.statement(text.replace("@T", "delta.`/t`"), ["a", 3, 4, "b"], path_in)
    assert (found.references[0].table.version, found.references[1].changes.start) == ("3", "4")
    assert found.arguments == ("a", "b")
    inserted = parsing.statement(
        f"INSERT INTO delta.`/t` {text}".replace("@T", "delta.`/t`"), ["a", 3, 4, "b"], path_in
    )
    assert inserted.query.arguments == ("a", "b")


def test_the_columns_of_a_join_are_no_tables() -> None:
    read = tables_read(tokenize("SELECT * FROM a JOIN b USING (c, d) JOIN (SELECT * FROM e) USING (f), g"))
    assert [each.parts for each in read] == [("a",), ("b",), ("e",), ("g",)]
    source = tables_read(tokenize("MERGE INTO a USING (SELECT * FROM b) AS s ON s.c = a.c WHEN MATCHED THEN DELETE"))
    assert [each.parts for each in source] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a, b, c", ["b", "c"]),
        ("WITH a (x, y) AS (SELECT 1, 2), b AS (SELECT * FROM a) SELECT * FROM b JOIN a", []),
        ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a", []),
        ("WITH RECURSIVE a (n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n FROM a) SELECT * FROM a", []),
        ("SELECT * FROM (WITH t AS (SELECT * FROM u) SELECT * FROM t) JOIN t", ["u", "t"]),
        ("SELECT * FROM t, u LATERAL VIEW explode(m) e AS k, v LATERAL VIEW OUTER f(x) g AS a, b WHERE k", ["t", "u"]),
    ],
)
def test_a_name_of_a_with_is_known_behind_its_own_query(text: str, read: list[str]) -> None:
    assert [each.parts[-1] for each in tables_read(tokenize(text))] == read


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("exists(tags, x -> x.name = 'a')", None),
        ("exists(tags, (X, i) -> x.id > i) AND x.id = 1", None),
        ("exists(tags, y -> y.name = x.id)", "exists(tags, y -> y.name = id)"),
    ],
)
def test_the_argument_of_a_function_hides_a_table_of_its_name(text: str, bare: str | None) -> None:
    assert strip_qualifiers(TokenizedText(text), ("x",), COLUMNS).text == (bare or text)
