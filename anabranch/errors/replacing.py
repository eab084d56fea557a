"""Refused requests of an overwrite that replaces the rows which its own rows match: REPLACE ON and REPLACE USING."""

from __future__ import annotations

from anabranch.errors.inputs import InputError, InvalidCondition, InvalidOption


class IncompatibleOptions(InvalidOption):
    """Two options of a writer exclude each other."""

    condition = "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"
    sql_state = "42613"
    template = (
        "The `{option}` option cannot be used with the `{other}` option for Delta tables. Nothing was written: leave "
        "one of them out."
    )


class ReplacesByFilter(IncompatibleOptions):
    """An overwrite selects the rows to replace by a condition on the table, and by its own rows as well."""

    condition = "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING"
    template = (
        "Overwrite by filter is incompatible with the `replaceOn`/`replaceUsing` option. Nothing was written: use "
        "{other} alone, with the filter in its condition, or {option} alone."
    )


class ReplacesPartitions(IncompatibleOptions):
    """An overwrite replaces the partitions that it writes, and the rows that its own rows match as well."""

    condition = "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"
    template = (
        "Dynamic partition overwrite is incompatible with the `replaceOn`/`replaceUsing` option. Nothing was written: "
        "leave {option} or {other} out."
    )


class AmbiguousReplaceColumns(InvalidCondition):
    """A condition of REPLACE ON names columns that both the table and the rows have."""

    condition = "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"
    sql_state = "42702"
    template = (
        "Column(s) {columns} are ambiguous in the condition of INSERT REPLACE ON, {expression}, for the table at "
        "{table}: qualify them by an alias of the table (targetAlias) or of the rows."
    )


class UnknownReplaceColumns(InvalidCondition):
    """A condition of REPLACE ON names columns that neither the table nor the rows have."""

    condition = "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
    sql_state = "42703"
    template = (
        "Column(s) {columns} cannot be resolved in the condition of INSERT REPLACE ON, {expression}, for the table at "
        "{table}. The alias of the table is the option targetAlias; that of the rows comes from alias(), in SQL from "
        "the word behind the query in parentheses."
    )


class UnknownUsingColumn(InputError):
    """REPLACE USING names a column that the table or the rows do not have."""

    condition = "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"
    sql_state = "42703"
    template = (
        "Column {column} of REPLACE USING cannot be resolved in the {side}, for the table at {table}. Did you mean one "
        "of the following? [{columns}]."
    )


class MisalignedUsingColumns(InputError):
    """Columns of REPLACE USING are at another place in the rows, which are stored by position, than in the table."""

    condition = "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"
    sql_state = "42802"
    template = (
        "INSERT REPLACE USING has misaligned columns: {columns}. They must be at the same ordinal position in both the "
        "table at {table} and the source query, whose columns are stored by position. Reorder them, or match the "
        "columns by name."
    )
