"""The public surface of ``delta.tables`` in delta-spark 4.4.0: each class, its methods, and their parameters in order.

`tests/interop/test_documented_api.py` holds that the real one has just these.
"""

from __future__ import annotations

_CLONED = ["target", "isShallow", "replace", "properties"]

PUBLIC: dict[str, dict[str, list[str]]] = {
    "DeltaTable": {
        "toDF": [],
        "alias": ["aliasName"],
        "generate": ["mode"],
        "delete": ["condition"],
        "update": ["condition", "set"],
        "merge": ["source", "condition"],
        "vacuum": ["retentionHours"],
        "history": ["limit"],
        "detail": [],
        "convertToDelta": ["sparkSession", "identifier", "partitionSchema"],
        "forPath": ["sparkSession", "path", "hadoopConf"],
        "forName": ["sparkSession", "tableOrViewName"],
        "create": ["sparkSession"],
        "createIfNotExists": ["sparkSession"],
        "replace": ["sparkSession"],
        "createOrReplace": ["sparkSession"],
        "isDeltaTable": ["sparkSession", "identifier"],
        "upgradeTableProtocol": ["readerVersion", "writerVersion"],
        "addFeatureSupport": ["featureName"],
        "dropFeatureSupport": ["featureName", "truncateHistory"],
        "restoreToVersion": ["version"],
        "restoreToTimestamp": ["timestamp"],
        "optimize": [],
        "clone": _CLONED,
        "cloneAtVersion": ["version", *_CLONED],
        "cloneAtTimestamp": ["timestamp", *_CLONED],
    },
    "DeltaMergeBuilder": {
        "whenMatchedUpdate": ["condition", "set"],
        "whenMatchedUpdateAll": ["condition"],
        "whenMatchedDelete": ["condition"],
        "whenNotMatchedInsert": ["condition", "values"],
        "whenNotMatchedInsertAll": ["condition"],
        "whenNotMatchedBySourceUpdate": ["condition", "set"],
        "whenNotMatchedBySourceDelete": ["condition"],
        "withSchemaEvolution": [],
        "execute": [],
    },
    "IdentityGenerator": {"start": [], "step": []},
    "DeltaTableBuilder": {
        "tableName": ["identifier"],
        "location": ["location"],
        "comment": ["comment"],
        "addColumn": ["colName", "dataType", "nullable", "generatedAlwaysAs", "generatedByDefaultAs", "comment"],
        "addColumns": ["cols"],
        "partitionedBy": ["cols"],
        "clusterBy": ["cols"],
        "property": ["key", "value"],
        "execute": [],
    },
    "DeltaOptimizeBuilder": {"where": ["partitionFilter"], "executeCompaction": [], "executeZOrderBy": ["cols"]},
}
