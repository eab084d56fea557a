"""Sites of sessions: which of a table's rows this process may read and write, besides Spark.

Knows settings of a session. Guarantee: the site records whether a session has settings of files that Arrow cannot
honour, and whether it has remote executors that should do the reading.
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
"""Maximum total size of files, in bytes, that are read here even if Spark's executors run elsewhere."""


def site_of(spark: SparkSession, root: str) -> Site:
    """The site of the table at a root, for a session. Raises UnknownStore if the root names no store."""
    store = open_store(root)
    most = None if _is_here(spark, store) else SMALL_BYTES
    return Site(store, is_plain=writer_settings.are_plain(spark), most_bytes=most)


def writing_site(spark: SparkSession, files: FileSet, *, obeys: bool = True) -> Site:
    """The site for writing rows to the table of a file set; the rows obey the table's rules unless they are only
    copied.

    Raises:
        UnknownStore: the root names no store.
        RuleRefused: a function that a rule of the table calls is not Spark's own in the session.
    """
    rules = files.rules if obeys else NONE
    check_own_functions(spark, rules, files.schema, files.root)
    has_expressions = bool(rules.checks or rules.generated)
    altered = altered_settings({name: str(spark.conf.get(name)) for name in ALTERING if has_expressions})
    site = site_of(spark, files.root)
    return replace(site, says=writer_settings.footer_metadata(spark), spells=False, altered=altered)


def is_local(spark: SparkSession, root: str) -> bool:
    """Whether a table is on a disk, and Spark's executors are threads of this machine."""
    return _is_here(spark, open_store(root))


def _is_here(spark: SparkSession, store: Store) -> bool:
    return isinstance(store, LocalStore) and (spark.conf.get("spark.master", None) or "").startswith("local")
