"""Sites of sessions: what this process may read and write of a table beside Spark.

Knows settings of a session. Guarantee: where a session says anything of files that Arrow cannot do, or has executors
from which reading here would take work, the site says so.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from anabranch._arrow.site import Site
from anabranch._protocol.expressions.resolving import ALTERING, altered_settings
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.table_rules import NONE
from anabranch._spark.columns.rule_columns import check_own_functions
from anabranch._spark.sessions import writer_settings
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch._storage.local import LocalStore

SMALL_BYTES = 32 << 20
"""Of files that are read here even where Spark's executors are elsewhere."""


def site_of(spark: SparkSession, root: str) -> Site:
    """Where the rows of the table at a root are, for a session. Raises UnknownStore: the root names no store."""
    store = open_store(root)
    most = None if _is_here(spark, store) else SMALL_BYTES
    return Site(store, is_plain=writer_settings.are_plain(spark), most_bytes=most)


def writing_site(spark: SparkSession, files: FileSet, *, obeys: bool = True) -> Site:
    """The same for rows that are written to the table of a file set; unless they are copied only, its rules hold them.

    Raises:
        UnknownStore: the root names no store.
        RuleRefused: a function that a rule of the table calls is not Spark's own in the session.
    """
    rules = files.rules if obeys else NONE
    check_own_functions(spark, rules, files.schema, files.root)
    is_asked = bool(rules.checks or rules.generated)
    altered = altered_settings({name: str(spark.conf.get(name)) for name in ALTERING if is_asked})
    site = site_of(spark, files.root)
    return replace(site, says=writer_settings.footer_metadata(spark), spells=False, altered=altered)


def is_here(spark: SparkSession, root: str) -> bool:
    """Whether a table lies on a disk, and Spark's executors are threads of this machine."""
    return _is_here(spark, open_store(root))


def _is_here(spark: SparkSession, store: Store) -> bool:
    return isinstance(store, LocalStore) and (spark.conf.get("spark.master", None) or "").startswith("local")
