"""What the user meant: one file per verb; a command is a frozen value that runs.

Commands introduce rows to transactions: they choose files, ask an engine which rows match and to write new ones, and
hand the transaction what it must know. They know engines only by the protocol in ``engine.py``, and import no
PySpark.
"""
