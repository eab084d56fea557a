"""Public: the names of ``delta.tables``."""

from anabranch.errors import needs_pyspark

with needs_pyspark("anabranch.tables"):
    from anabranch._api.delta_table import DeltaTable
    from anabranch._api.merge_builder import DeltaMergeBuilder
    from anabranch._api.optimize_builder import DeltaOptimizeBuilder
    from anabranch._api.table_builder import DeltaTableBuilder, IdentityGenerator

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]
