"""Real delta-spark behind a pipe: reads requests as JSON lines from its standard input, answers each with one line.

Runs under another environment's Python, which has neither this project nor its packages: the standard library and
PySpark only. Started by ``tests/support/delta_spark.py``.

A request is ``{"sql": text, "rows": path or null, "args": values of parameters or null}``: the statement is run, and
what it returns is written there as an Arrow file; with ``"noop": true`` its rows are computed and not kept. The answer
is ``{}``, or ``{"error": class, "condition": name, "text": message}``.

``{"together": lists of texts}`` runs each list in a thread of its own, all at once, and tries a statement again that
was refused by a conflict; the answer is ``{"calls": [{"began", "ended", "refused"}, ...]}``.

``{"contest": lists of numbers and texts, "path": the table, "seconds": how long, "root": folder}`` does the same for so
many seconds, by the loop in ``benchmarks/conflict_loop.py``, which says what the calls are.

Of ``delta.tables``, delta-spark's Python API: ``{"public": true}`` is answered by its public names, and
``{"scenario": name, "modules": names, "root": folder, "folder": path}`` by what that scenario of ``tests/documented``
sees.
"""

import importlib
import inspect
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def build(jars: str, folder: str, more: dict):
    """A local session as delta-spark's documentation sets it up, with what it leaves behind in ``folder``."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(sorted(map(str, Path(jars).glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": "1g",
        # Many small jobs, never a long one: half the time of the JVM's own choice.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",  # else a VACUUM lists by 10,000 tasks
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder = SparkSession.builder.master("local[1]").appName("delta-spark")
    for key, value in {**settings, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def answer(spark, request):
    import pyarrow as pa

    try:
        frame = spark.sql(request["sql"], args=request.get("args"))
        if request["rows"]:
            table = frame.toArrow()
            with pa.OSFile(request["rows"], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        if request.get("noop"):
            # The sink of this name would do, but delta-spark fails to write to it from a table with marked rows.
            frame._jdf.queryExecution().toRdd().count()
    except Exception as error:  # whatever it is, the test decides
        return told(error)
    return {}


def told(error):
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    return {"error": type(error).__name__, "condition": condition or "", "text": str(error)[:4000]}


def together(spark, request):
    lists = request["together"]
    barrier = threading.Barrier(len(lists))
    try:
        with ThreadPoolExecutor(len(lists)) as pool:
            done = pool.map(lambda texts: each_until_done(spark, texts, barrier), lists)
            return {"calls": [call for calls in done for call in calls]}
    except Exception as error:  # whatever it is, the caller decides
        return told(error)


def each_until_done(spark, texts, barrier):
    barrier.wait()
    return [until_done(spark, text) for text in texts]


def until_done(spark, text):
    """Conflicts are told by the names of delta-spark's exceptions, which are those that it documents."""
    began, refused = time.monotonic(), 0
    while True:
        try:
            spark.sql(text)
            return {"began": began, "ended": time.monotonic(), "refused": refused}
        except Exception as error:
            if not is_conflict(error):
                raise
            refused += 1


def is_conflict(error):
    return "Concurrent" in type(error).__name__ + str(error)[:1000]


def contest(spark, request):
    find(request["root"])
    loop = importlib.import_module("benchmarks.conflict_loop")
    barrier = threading.Barrier(len(request["contest"]))

    def each(texts):
        works = [(number, lambda text=text: spark.sql(text)) for number, text in texts]
        barrier.wait()
        return loop.write(
            request["path"],
            works,
            request["seconds"],
            lambda work, seconds: loop.until_done(work, seconds, is_conflict),
            is_conflict,
        )

    spark.sparkContext.setLogLevel("OFF")  # else each conflict of a MERGE is logged with its stack
    try:
        with ThreadPoolExecutor(len(request["contest"])) as pool:
            return {"calls": [call for calls in pool.map(each, request["contest"]) for call in calls]}
    finally:
        spark.sparkContext.setLogLevel("ERROR")


def find(root):
    """Let modules of the repository be imported that know nothing of ours."""
    if root not in sys.path:
        sys.path.insert(0, root)


def seen(spark, request):
    """Run a scenario that knows nothing of ours, from the repository in which it stands."""
    find(request["root"])
    import delta.tables

    given = importlib.import_module("tests.documented.given")
    scenarios = given.scenarios_of(importlib.import_module(name) for name in request["modules"])
    module, _, name = request["scenario"].partition(".")
    place = given.Given(spark, delta.tables, Path(request["folder"]), f"{module}_{name}")
    return given.observed(scenarios[request["scenario"]], place)


def public():
    """The public classes of ``delta.tables``, each with its methods and their parameters, and its fields."""
    import delta.tables

    kinds = [each for each in vars(delta.tables).values() if getattr(each, "__module__", "") == "delta.tables"]
    return {kind.__name__: members(kind) for kind in kinds if not kind.__name__.startswith("_")}


def members(kind):
    names = [name for name in [*vars(kind), *getattr(kind, "__annotations__", ())] if not name.startswith("_")]
    return {name: parameters(getattr(kind, name, None)) for name in names}


def parameters(method):
    return [name for name in inspect.signature(method).parameters if name != "self"] if callable(method) else []


def replied(spark, request):
    if "together" in request:
        return together(spark, request)
    if "contest" in request:
        return contest(spark, request)
    if "scenario" in request:
        return seen(spark, request)
    return public() if "public" in request else answer(spark, request)


def main(jars: str, folder: str, more: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark and its JVM print must not stand between the answers
    spark = build(jars, folder, json.loads(more))
    for line in sys.stdin:
        print(json.dumps(replied(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
