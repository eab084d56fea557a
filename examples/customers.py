"""A dimension that keeps its history (type 2), as one writes it for delta-spark; the import of `DeltaTable` differs.

A shop lands each day's customers with their address. The table has a row for each address that a customer ever had,
with the days from and to which it was theirs: one MERGE a day ends the row that is no longer so, and adds the new one.

    python examples/customers.py crm --days 4
    python examples/customers.py crm --days 5 --done 4
"""

import argparse
import datetime as dt
import random
from pathlib import Path

from pyspark.sql import functions as F

from anabranch import DeltaTable, session  # on delta-spark: from delta_spark import DeltaTable, session

CUSTOMERS = 60
CITIES = ("Oslo", "Lima", "Pune", "Graz", "Cork")


# -- the shop ----------------------------------------------------------------------------------------------------------


def delivered(number):
    """The customers of the day of this number, with their cities: new ones, some who have moved, many who have not."""
    known = {}
    for day in range(number + 1):
        dice = random.Random(day)
        moved = dice.sample(sorted(known), k=min(len(known), 8))
        new = range(len(known), len(known) + CUSTOMERS // 3)
        known |= {customer: dice.choice(CITIES) for customer in [*moved, *new]}
    dice = random.Random(-number)
    return sorted((customer, city) for customer, city in known.items() if dice.random() < 0.7)


# -- the job -----------------------------------------------------------------------------------------------------------


def make_table(spark, folder):
    """The dimension: of each customer one row is current, and says no end."""
    (
        DeltaTable.createIfNotExists(spark)
        .location(f"{folder}/customers")
        .addColumn("customer", "BIGINT", nullable=False)
        .addColumn("city", "STRING")
        .addColumn("valid_from", "DATE", nullable=False)
        .addColumn("valid_to", "DATE", comment="the first day on which it was not so")
        .addColumn("is_current", "BOOLEAN", nullable=False)
        .property("delta.enableChangeDataFeed", "true")
        .execute()
    )
    return DeltaTable.forPath(spark, f"{folder}/customers")


def take_in(spark, dimension, rows, day):
    """Take in a day's customers; the same day again changes nothing."""
    updates = spark.createDataFrame(rows, "customer BIGINT, city STRING")
    current = dimension.toDF().where("is_current").select("customer", F.col("city").alias("known"))
    moved = updates.join(current, "customer").where("NOT city <=> known").drop("known")
    # A customer who has moved comes twice: by the key to end the row that is there, and without one to add another.
    staged = moved.withColumn("key", F.lit(None).cast("BIGINT")).unionByName(
        updates.withColumn("key", F.col("customer"))
    )
    (
        dimension.alias("d")
        .merge(staged.alias("s"), "d.customer = s.key AND d.is_current")
        .whenMatchedUpdate("NOT d.city <=> s.city", {"is_current": "false", "valid_to": f"DATE'{day}'"})
        .whenNotMatchedInsert(
            values={
                "customer": "s.customer",
                "city": "s.city",
                "valid_from": f"DATE'{day}'",
                "valid_to": "NULL",
                "is_current": "true",
            }
        )
        .execute()
    )


def changes_of(spark, folder, version):
    """What one day has changed, for those who keep a copy."""
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    return feed.option("startingVersion", version).option("endingVersion", version).load(f"{folder}/customers")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the table lies")
    parser.add_argument("--days", type=int, default=4, help="how many days to do (default: %(default)s)")
    parser.add_argument("--done", type=int, default=0, help="how many of them were done before (default: %(default)s)")
    parser.add_argument("--first", type=dt.date.fromisoformat, default=dt.date(2024, 1, 1), help="the first of them")
    chosen = parser.parse_args(arguments)

    spark = session("customers")
    folder = Path(chosen.folder).resolve()
    dimension = make_table(spark, folder)
    for number in range(chosen.done, chosen.days):
        for _ in range(2):  # a job that is started once more does no harm
            take_in(spark, dimension, delivered(number), chosen.first + dt.timedelta(number))
    newest = dimension.history(1).first()["version"]
    changes_of(spark, folder, newest).groupBy("_change_type").count().orderBy("_change_type").show()
    dimension.toDF().groupBy("is_current").count().orderBy("is_current").show()


if __name__ == "__main__":
    main()
