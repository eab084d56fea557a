"""Python's doors: what users call with a session or without one.

Each door collects what is asked, makes one command of it and shows the result as PySpark and ``delta.tables`` do. Doors
decide nothing about transactions.

Whoever comes by a door sees how far its long commands are: they are watched as soon as this room is entered.
"""

from anabranch._api import progress as progress
