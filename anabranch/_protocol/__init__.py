"""Delta's protocol: actions, schemas, features, deletion vectors, statistics, predicates. Pure; knows no store and no
transaction.
"""
