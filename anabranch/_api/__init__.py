"""The Python API, with a session or without one.

Each module collects arguments, runs one command and shows the result as PySpark and ``delta.tables`` do. It decides
nothing about transactions.

Importing this package turns on the display of progress for long commands.
"""

from anabranch._api import progress as progress
