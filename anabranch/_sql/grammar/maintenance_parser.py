"""Parses statements that show a table, and those that maintain it.

A function begins after the first words of its statement. A statement that only Delta has must name a Delta table; the
function of one that Spark has too returns None for other tables.
"""

from __future__ import annotations

from typing import TypeVar

from anabranch._catalog.table_names import name_to_sql
from anabranch._expressions.dialect import TokenType
from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar.create_table import option
from anabranch._sql.grammar.parts import Statement, Table, View
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.row_parser import partition
from anabranch._sql.grammar.statement_values import (
    CacheTable,
    DescribeDetail,
    DescribeHistory,
    DescribeOther,
    DescribeTable,
    GenerateManifest,
    OptimizeTable,
    RefreshTable,
    ReorgTable,
    RepairTable,
    RestoreTable,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    UncacheTable,
    VacuumTable,
)
from anabranch._sql.grammar.view_values import CacheView, CreateTempView
from anabranch.errors import InvalidOption, NotBuilt, UnknownTable

_S = TypeVar("_S", bound=Statement)


def _table(r: Reader, *, travels: bool = False) -> Table | None:
    """Take the name of a table, or its path as a string literal; None if it is no Delta table."""
    if not r.is_text():
        return r.table(travels=travels)
    start, path = r.start, r.string()
    return Table(path, (path,), span=(start, r.stop))


def _delta_table(r: Reader, *, travels: bool = False) -> Table:
    """Take a Delta table.

    Raises:
        UnknownTable: it is another table.
    """
    table = _table(r, travels=travels)
    if table is not None:
        return table
    start, name = r.start, r.path()
    raise UnknownTable(name=name_to_sql(name), excerpt=excerpt(r.text, start, r.stop))


# -- DESCRIBE, SHOW ----------------------------------------------------------------------------------------------------


def describe_history(r: Reader) -> Statement | None:
    """Parse ``DESCRIBE HISTORY t [LIMIT n]``."""
    if r.is_at_end:  # DESCRIBE of a table named history
        return None
    return _finish(r, DescribeHistory(_delta_table(r), r.whole() if r.take("LIMIT") else None))


def describe_detail(r: Reader) -> Statement | None:
    """Parse ``DESCRIBE DETAIL t``, of any table."""
    table = _table(r)
    if table is not None:
        return _finish(r, DescribeDetail(table))
    start, name = r.start, r.path("the name of a table")
    return _finish(r, DescribeOther(name, (start, r.stop)))


def describe(r: Reader) -> Statement | None:
    """Parse ``DESCRIBE [TABLE] [EXTENDED | FORMATTED] t [column]``."""
    r.take("TABLE")
    extended = r.take("EXTENDED") or r.take("FORMATTED")
    table = r.table() if r.is_name() else None
    if table is None:
        return None
    return _finish(r, DescribeTable(table, extended, None if r.is_at_end else r.path("the name of a column")))


def show_columns(r: Reader) -> Statement | None:
    """Parse ``SHOW COLUMNS {IN | FROM} t [{IN | FROM} schema]``."""
    if not (r.take("IN") or r.take("FROM")):
        r.fail("IN is expected here.")
    start, name = r.start, r.path("the name of a table")
    if r.take("IN") or r.take("FROM"):
        schema = r.path("the name of a schema")
        name = name if name[:-1] == schema else (*schema, *name)
    location = r.find_location(name)
    if location is None or isinstance(location, View):
        return None
    return _finish(r, ShowColumns(Table(location, name, span=(start, r.stop))))


def show_partitions(r: Reader) -> Statement | None:
    """Parse ``SHOW PARTITIONS t [PARTITION (c = …)]``."""
    table = r.table()
    if table is None:
        return None
    return _finish(r, ShowPartitions(table, r.take_list(lambda: partition(r)) if r.take("PARTITION") else ()))


def show_properties(r: Reader) -> Statement | None:
    """Parse ``SHOW TBLPROPERTIES t [(key)]``."""
    table = r.table()
    return None if table is None else _finish(r, ShowProperties(table, _key(r)))


def show_create(r: Reader) -> Statement | None:
    """Parse ``SHOW CREATE TABLE t``."""
    table = r.table()
    return None if table is None else _finish(r, ShowCreateTable(table))


def _key(r: Reader) -> str | None:
    if not r.is_type(TokenType.L_PAREN):
        return None
    return r.single(lambda: r.string() if r.is_text() else ".".join(r.path()))


def _finish(r: Reader, statement: _S) -> _S:
    r.finish()
    return statement


def refresh(r: Reader) -> Statement | None:
    """Parse ``REFRESH TABLE t``."""
    table = r.table()
    return None if table is None else _finish(r, RefreshTable(table))


def cache(r: Reader) -> Statement | None:
    """Parse ``CACHE [LAZY] TABLE t [OPTIONS ('storageLevel' = '…')]``, or ``… v [OPTIONS (…)] [AS]`` a query."""
    lazy, at = r.has_taken("LAZY"), r.i
    table = r.table()
    level = _storage_level(r) if table is not None and r.take("OPTIONS") else None
    if table is not None and r.is_at_end:
        return CacheTable(table, lazy, level)
    r.i = at
    return _parse_cache_query(r, lazy)


def _parse_cache_query(r: Reader, lazy: bool) -> Statement | None:
    """Parse ``v [OPTIONS (…)] [AS]`` a query; None if the query reads no Delta table."""
    if not r.is_name() or not r.reads_delta():
        return None
    at, name = r.i, r.name("the name of a view")
    level = _storage_level(r) if r.take("OPTIONS") else None
    if r.is_at_end:
        r.i = at
        raise NotBuilt(what="CACHE TABLE of a persistent view", instead=f"Use CACHE TABLE … AS SELECT * FROM {name}.")
    r.take("AS")
    return CacheView(CreateTempView(name, r.query()), lazy, level)


def _storage_level(r: Reader) -> str:
    key, value = r.single(lambda: option(r))
    if key.lower() != "storagelevel":
        raise InvalidOption(option=key, value=value, reason="storageLevel is the only option of CACHE TABLE.")
    return value


def uncache(r: Reader) -> Statement | None:
    """Parse ``UNCACHE TABLE [IF EXISTS] t``."""
    r.take("IF", "EXISTS")
    table = r.table()
    return None if table is None else _finish(r, UncacheTable(table))


# -- maintenance -------------------------------------------------------------------------------------------------------


def optimize(r: Reader) -> OptimizeTable:
    """Parse ``OPTIMIZE t [FULL] [WHERE …] [ZORDER BY (…)]``."""
    table = _delta_table(r)
    full = r.take("FULL")
    where = r.expression("ZORDER", what="a condition") if r.take("WHERE") else None
    zorder: tuple[tuple[str, ...], ...] = ()
    if r.take("ZORDER", "BY"):
        zorder = _columns(r)
    return _finish(r, OptimizeTable(table, where, zorder, full))


def _columns(r: Reader) -> tuple[tuple[str, ...], ...]:
    if r.is_type(TokenType.L_PAREN):
        return r.take_list(lambda: r.path("the name of a column"))
    paths = [r.path("the name of a column")]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        paths.append(r.path("the name of a column"))
    return tuple(paths)


def reorg(r: Reader) -> Statement:
    """Parse ``REORG TABLE t [WHERE …] APPLY (PURGE | UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))``."""
    r.take("TABLE")
    table = _delta_table(r)
    where = r.expression("APPLY", what="a condition") if r.take("WHERE") else None
    r.expect("APPLY")
    r.punctuation(TokenType.L_PAREN, "(")
    version = None
    if not r.take("PURGE"):
        r.expect("UPGRADE", "UNIFORM")
        version = r.single(lambda: _iceberg_version(r))
    r.punctuation(TokenType.R_PAREN, ")")
    return _finish(r, ReorgTable(table, where, version))


def _iceberg_version(r: Reader) -> int:
    r.expect("ICEBERG_COMPAT_VERSION")
    if not r.is_type(TokenType.EQ):
        r.fail("'=' is expected here.")
    r.i += 1
    return r.whole()


def vacuum(r: Reader) -> Statement:
    """Parse ``VACUUM t [FULL | LITE] [RETAIN n HOURS] [DRY RUN]``, the parts after the name in any order."""
    table = _delta_table(r)
    hours, dry_run, kind = None, False, ""
    while not r.is_at_end:
        if not kind and (r.at("FULL") or r.at("LITE")):
            kind = r.name().upper()
        elif hours is None and r.take("RETAIN"):
            hours = float(r.number("a number of hours"))
            if not r.take("HOUR"):
                r.expect("HOURS")
        elif not dry_run and r.take("DRY", "RUN"):
            dry_run = True
        else:
            r.fail("FULL, LITE, RETAIN n HOURS or DRY RUN is expected here.")
    return VacuumTable(table, hours, dry_run, None if not kind else kind == "LITE")


def restore(r: Reader) -> Statement:
    """Parse ``RESTORE [TABLE] t [TO] {VERSION | TIMESTAMP} AS OF …``."""
    r.take("TABLE")
    table = _delta_table(r, travels=True)
    if table.version is None and table.timestamp is None:
        r.take("TO")
        version, timestamp = r.as_of()
        table = Table(table.location, table.name, version, timestamp, None, table.span)
    if table.version is None and table.timestamp is None:
        r.fail("VERSION AS OF or TIMESTAMP AS OF is expected here.")
    return _finish(r, RestoreTable(table))


def generate(r: Reader) -> Statement:
    """Parse ``GENERATE symlink_format_manifest FOR TABLE t``."""
    mode = r.string() if r.is_text() else r.name("symlink_format_manifest")
    r.expect("FOR", "TABLE")
    return _finish(r, GenerateManifest(_delta_table(r), mode))


def repair(r: Reader) -> Statement:
    """Parse ``FSCK REPAIR TABLE t [DRY RUN]``."""
    r.expect("REPAIR", "TABLE")
    table = _delta_table(r)
    return _finish(r, RepairTable(table, r.take("DRY", "RUN")))
