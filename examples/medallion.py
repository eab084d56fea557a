"""A daily job in three layers, as one writes it for delta-spark; the line that imports `DeltaTable` alone differs.

A shop lands each day's changes of orders as JSON. Bronze keeps them as they came; silver has each order once, as it is
now; gold has figures by the day. Every table lies in the folder and has a name.

    python examples/medallion.py shop --days 3
    python examples/medallion.py shop --days 4 --done 3
"""

import argparse
import datetime as dt
import json
import random
from pathlib import Path

from pyspark.sql import Window
from pyspark.sql import functions as F

from anabranch import DeltaTable, session  # on delta-spark: from delta_spark import DeltaTable, session

ORDERS_A_DAY = 200
CHANGE = (
    "order_id BIGINT, customer STRING, country STRING, amount DECIMAL(10,2), status STRING, ordered_on DATE, seq BIGINT"
)


# -- the shop ----------------------------------------------------------------------------------------------------------


def land(folder, first, number):
    """What the shop delivers on its day of this number: new orders, and changes of older ones; some come twice."""
    runtime, changes = random.Random(number), []
    for i in range(ORDERS_A_DAY):
        order = ORDERS_A_DAY * number + i
        changes.append(change_of(order, first, runtime.choice(["open", "open", "paid"]), number))
    for _ in range(ORDERS_A_DAY // 2 if number else 0):
        order = runtime.randrange(ORDERS_A_DAY * number)
        for status in runtime.choice([["paid"], ["sent"], ["paid", "sent"], ["cancelled"]]):
            changes.append(change_of(order, first, status, number, len(changes)))
    file = Path(folder, "landing", f"{first + dt.timedelta(number)}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, changes)) + "\n")
    return str(file)


def change_of(order, first, status, number, later=0):
    """One line of a delivery: the whole order as it is after the change."""
    return {
        "order_id": order,
        "customer": f"c{order % 37}",
        "country": ["CL", "NO", "NZ"][order % 3],
        "amount": f"{order % 90 + 10}.{order % 100:02d}",
        "status": status,
        "ordered_on": str(first + dt.timedelta(order // ORDERS_A_DAY)),
        "seq": 1_000_000 * number + later,
    }


# -- the job -----------------------------------------------------------------------------------------------------------


def make_tables(spark, folder):
    """Give the tables their names, and make those that are not there yet."""
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {layer}")
    spark.sql(f"""
        CREATE TABLE IF NOT EXISTS bronze.changes ({CHANGE}, day DATE)
        USING delta PARTITIONED BY (day) LOCATION '{folder}/bronze/changes'
        COMMENT 'what the shop delivered, as it came'
    """)
    spark.sql(f"""
        CREATE TABLE IF NOT EXISTS silver.orders (
            order_id BIGINT NOT NULL, customer STRING, country STRING, amount DECIMAL(10,2), status STRING,
            ordered_on DATE, seq BIGINT COMMENT 'of the last change')
        USING delta LOCATION '{folder}/silver/orders'
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')
    """)


def bronze(spark, file, day, number):
    """Add a day's delivery; the same day again adds nothing."""
    changes = spark.read.schema(CHANGE).json(file).withColumn("day", F.lit(day).cast("date"))
    writer = changes.write.format("delta").mode("append").partitionBy("day")
    writer.option("txnAppId", "bronze").option("txnVersion", number).saveAsTable("bronze.changes")


def silver(spark, day):
    """Bring each order to what its last change says."""
    newest = Window.partitionBy("order_id").orderBy(F.desc("seq"))
    changes = spark.table("bronze.changes").where(F.col("day") == day).drop("day")
    last = changes.withColumn("n", F.row_number().over(newest)).where("n = 1").drop("n")
    (
        DeltaTable.forName(spark, "silver.orders")
        .alias("t")
        .merge(last.alias("s"), "t.order_id = s.order_id")
        .whenMatchedDelete("s.status = 'cancelled' AND s.seq > t.seq")
        .whenMatchedUpdate("s.seq > t.seq", {"status": "s.status", "amount": "s.amount", "seq": "s.seq"})
        .whenNotMatchedInsertAll("s.status <> 'cancelled'")
        .execute()
    )


def gold(spark, folder, day):
    """Figures of the days whose orders have changed, and of how the shop stood this evening."""
    touched = spark.table("bronze.changes").where(F.col("day") == day).select("ordered_on").distinct()
    revenue = (
        spark.table("silver.orders")
        .join(touched, "ordered_on", "left_semi")
        .groupBy("ordered_on", "country")
        .agg(F.count("*").alias("orders"), F.sum("amount").alias("revenue"))
    )
    writer = revenue.write.format("delta").mode("overwrite").partitionBy("ordered_on")
    writer = writer.option("partitionOverwriteMode", "dynamic").option("path", f"{folder}/gold/revenue")
    writer.saveAsTable("gold.revenue")

    evening = spark.sql(
        f"""
        SELECT DATE'{day}' AS day, status, count(*) AS orders, count(DISTINCT customer) AS customers
        FROM silver.orders WHERE ordered_on <= DATE'{day}' GROUP BY status
        """
    )
    writer = evening.write.format("delta").mode("overwrite").option("replaceWhere", f"day = '{day}'")
    writer.option("path", f"{folder}/gold/evenings").saveAsTable("gold.evenings")


def upkeep(spark, day):
    """What is done every night: few files, and none that nobody needs."""
    spark.sql(f"OPTIMIZE bronze.changes WHERE day = '{day}'")
    DeltaTable.forName(spark, "silver.orders").optimize().executeZOrderBy("order_id")
    spark.sql("OPTIMIZE gold.revenue")
    for table in ("bronze.changes", "silver.orders", "gold.revenue", "gold.evenings"):
        spark.sql(f"VACUUM {table}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where deliveries and tables lie")
    parser.add_argument("--days", type=int, default=3, help="how many days to do (default: %(default)s)")
    parser.add_argument("--done", type=int, default=0, help="how many of them were done before (default: %(default)s)")
    parser.add_argument("--first", type=dt.date.fromisoformat, default=dt.date(2024, 1, 1), help="the first of them")
    chosen = parser.parse_args(arguments)

    spark = session("medallion")
    folder = Path(chosen.folder).resolve()
    make_tables(spark, folder)
    for number in range(chosen.done, chosen.days):
        day = str(chosen.first + dt.timedelta(number))
        bronze(spark, land(folder, chosen.first, number), day, number)
        silver(spark, day)
        gold(spark, folder, day)
        upkeep(spark, day)
    spark.table("gold.evenings").orderBy("day", "status").show()


if __name__ == "__main__":
    main()
