"""Erasing people for good, as one writes it for delta-spark; the import of `DeltaTable` alone differs.

People ask to be forgotten. Their rows are deleted from every table that knows them, so that no query shows them; then
the files that still hold the deleted rows are written anew, and the old ones removed, so that nobody finds them on the
disk, nor in an older version. Old commits may still say a value of theirs, as the smallest one of a file that is gone;
they go when ``delta.logRetentionDuration`` is over.

    python examples/erasure.py vault
"""

import argparse
from pathlib import Path

from pyspark.sql import functions as F

from anabranch import DeltaTable, session  # on delta-spark: from delta_spark import DeltaTable, session

PEOPLE = 300
EVENTS = 3000
TABLES = ("people", "events")


def make_tables(spark, folder):
    """People, and what they did; their addresses stand in both."""
    person = F.concat(F.lit("person-"), F.col("id"), F.lit("@example.org"))
    people = spark.range(PEOPLE).select(F.col("id").alias("person"), person.alias("mail"))
    people.repartition(3).write.format("delta").save(f"{folder}/people")
    of = (F.col("id") * 7 % PEOPLE).alias("person")
    events = spark.range(EVENTS).select("id", of, F.concat(F.lit("mail to person-"), of, F.lit("@example.org")))
    events.toDF("id", "person", "text").repartition(4).write.format("delta").save(f"{folder}/events")
    for table in TABLES:
        spark.sql(f"ALTER TABLE delta.`{folder}/{table}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")


def ask(spark, folder, every):
    """Those who ask to be forgotten: every one of so many."""
    asking = spark.range(0, PEOPLE, every).toDF("person")
    asking.write.format("delta").mode("overwrite").save(f"{folder}/requests")


def delete(spark, folder):
    """Delete the rows of those who asked, from each table in one commit."""
    requests = spark.read.format("delta").load(f"{folder}/requests")
    for table in TABLES:
        target = DeltaTable.forPath(spark, f"{folder}/{table}").alias("t")
        target.merge(requests.alias("r"), "t.person = r.person").whenMatchedDelete().execute()


def erase(spark, folder):
    """Write the files that hold deleted rows anew, and remove the old ones with every older version."""
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    for table in TABLES:
        spark.sql(f"REORG TABLE delta.`{folder}/{table}` APPLY (PURGE)")
        DeltaTable.forPath(spark, f"{folder}/{table}").vacuum(0)
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the tables lie")
    parser.add_argument("--every", type=int, default=50, help="how few people ask (default: one of %(default)s)")
    chosen = parser.parse_args(arguments)

    spark = session("erasure")
    folder = Path(chosen.folder).resolve()
    make_tables(spark, folder)
    ask(spark, folder, chosen.every)
    delete(spark, folder)
    erase(spark, folder)
    for table in TABLES:
        print(table, spark.read.format("delta").load(f"{folder}/{table}").count())


if __name__ == "__main__":
    main()
