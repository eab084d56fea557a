"""``df.writeTo(name)``: create, append, overwrite and replace, for Delta tables; other tables are Spark's.

`anabranch._api.install` puts this in front of Spark's ``DataFrameWriterV2``. Guarantee: every step is applied to
Spark's own writer as well, so that other tables get exactly what was requested.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame

from anabranch._api.reader_and_writer import Optioned, table_of
from anabranch._api.replaced_rows import refuse_matching
from anabranch._catalog.named_tables import NamedTable, register_name
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._protocol.dials import RESOLUTION
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.options import WRITE
from anabranch._protocol.session_settings import use_dials
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.known_sessions import formats_of
from anabranch._spark.sessions.settings import honours
from anabranch._sql.conditions import resolve_condition
from anabranch.commands.context import RunContext
from anabranch.commands.dml.write import Write
from anabranch.commands.opening import Location, open_log
from anabranch.commands.options import Options
from anabranch.errors import InvalidOption, NameTaken, UnknownTable
from anabranch.errors.inputs import check_text


@uses_session_settings
class WriterV2(Optioned):
    """Writes to one table, by its name or by ``delta.`path` ``."""

    def __init__(self, frame: DataFrame, table: str, plain: Any) -> None:
        super().__init__(frame.sparkSession, plain)
        self._frame, self._table = frame, table
        self._provider: str | None = None
        self._properties: dict[str, str] = {}
        self._partitions: tuple[str, ...] | None = None
        self._clusters: tuple[str, ...] | None = None

    def using(self, provider: str) -> WriterV2:
        """Chooses a format for a new table."""
        self._provider = provider.lower()
        if self._provider not in formats_of(self._spark):
            self._plain = self._plain.using(provider)
        return self

    def tableProperty(self, property: str, value: str) -> WriterV2:
        """Sets a property of a new table."""
        check_text("A table property", f"{property}{value}")
        self._properties[property] = value
        self._plain = self._plain.tableProperty(property, value)
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> WriterV2:
        """The partition columns of a new table."""
        self._plain = self._plain.partitionedBy(col, *cols)
        self._partitions = tuple(map(self._column, (col, *cols)))
        return self

    def clusterBy(self, col: str, *cols: str) -> WriterV2:
        """The clustering columns of a new table."""
        self._plain = self._plain.clusterBy(col, *cols)
        self._clusters = (col, *cols)
        return self

    def _column(self, column: Any) -> str:
        """The name of a column; transforms such as ``days`` cannot partition a table."""
        if isinstance(column, Column):
            text = str(column).removeprefix("Column<'").removesuffix("'>")
            return (parts_of(text) or (text,))[-1]
        return str(column)

    # -- creating a table

    def create(self) -> None:
        """Creates the table with these rows.

        Raises:
            NameTaken: a table or view has this name.
        """
        if not self._makes_ours():
            self._plain.create()
            return
        self._make(creates=True, replaces=False)

    def replace(self) -> None:
        """Replaces the table's rows, columns and properties.

        Raises:
            UnknownTable: the table does not exist.
        """
        if not self._makes_ours():
            self._plain.replace()
            return
        self._make(creates=False, replaces=True)

    def createOrReplace(self) -> None:
        """Creates the table, or replaces it."""
        if not self._makes_ours():
            self._plain.createOrReplace()
            return
        self._make(creates=True, replaces=True)

    def _makes_ours(self) -> bool:
        if self._provider is None:
            default = self._spark.conf.get("spark.sql.sources.default", None) or ""
            return default.lower() in formats_of(self._spark) or table_of(self._spark, self._table) is not None
        return self._provider in formats_of(self._spark)

    def _make(self, *, creates: bool, replaces: bool) -> None:
        parts = parts_of(self._table)
        if parts is None:
            raise InvalidOption(option="table", value=self._table, reason="it takes the name of a table.")
        with self.speaking():
            self._make_of(parts, creates, replaces)

    def _make_of(self, parts: Name, creates: bool, replaces: bool) -> None:
        options = self._options.copy()
        location = options.take("path") or options.take("location")
        target = Resolver(self._spark).target(parts, location)
        if isinstance(target, str):
            if not creates:
                open_log(target).snapshot()
            self._write(target, creates, replaces, options)
            return
        self._check(target, creates, replaces)
        with register_name(self._spark, target):
            self._write(target.location, creates, replaces, options)

    def _check(self, named: NamedTable, creates: bool, replaces: bool) -> None:
        if named.entry is not None and not replaces:
            raise NameTaken(name=name_to_sql(named.name), table=named.location)
        if named.entry is None and not creates:
            raise UnknownTable(name=name_to_sql(named.name))

    @honours("CREATE")
    def _write(self, location: str, creates: bool, replaces: bool, options: Options) -> None:
        clusters = None if self._clusters is None else paths_of(self._clusters)
        mode = "overwrite" if replaces else "error"
        partitions = self._partitions
        if partitions is not None:
            columns = {name.lower() for name in self._frame.columns}
            missing = [name for name in partitions if name.lower() not in columns]
            if missing:
                reason = f"a table is partitioned by columns: {', '.join(self._frame.columns)}."
                raise InvalidOption(option="partitionedBy", value=missing[0], reason=reason)
        dials = options.dials()
        properties = {**options.properties(), **self._properties}
        write = Write(
            location,
            self._frame,
            mode,
            partitions,
            properties,
            cluster_by=clusters,
            replaces=replaces,
            creates=creates,
            as_select=True,
            **options.of_a_write(),
        )
        options.finish(WRITE)
        with use_dials(dials):
            write.run(SparkEngine(self._spark))

    # -- writing to an existing table

    def append(self) -> None:
        """Adds the rows, matching columns by name.

        Raises:
            SchemaMismatch: they do not fit the table's columns.
        """
        if not self._rows("append"):
            self._plain.append()

    def overwrite(self, condition: Column | str) -> None:
        """Replaces the rows for which the condition is TRUE.

        Raises:
            ReplaceWhereMismatch: a row does not satisfy it.
        """
        table = table_of(self._spark, self._table)
        if table is None:
            self._plain.overwrite(condition)
            return
        with self.speaking():
            self._replace(table.location, condition)

    @honours("a write")
    def _replace(self, path: Location, condition: Column | str) -> None:
        engine, snapshot, options = SparkEngine(self._spark), open_log(path).snapshot(), self._options.copy()
        refuse_matching(options)
        where = resolve_condition(condition, snapshot, engine)
        dials = options.dials()
        options.take(RESOLUTION)
        write = Write(path, self._frame, "overwrite", replace_where=where, **options.of_a_write())
        options.finish(WRITE)
        with use_dials(dials):
            write.run(engine, RunContext(at=snapshot))

    def overwritePartitions(self) -> None:
        """Replaces the partitions of the new rows; in a table without partitions, all rows."""
        if not self._rows("overwrite", partitionOverwriteMode="dynamic"):
            self._plain.overwritePartitions()

    def _rows(self, mode: str, **options: str) -> bool:
        """Writes the rows as ``df.write`` does; False if the table is not a Delta table."""
        if table_of(self._spark, self._table) is None:
            return False
        writer = self._frame.write.format("anabranch").mode(mode)
        writer.options(**{**self._options.remaining(), **options}).saveAsTable(self._table)
        return True
