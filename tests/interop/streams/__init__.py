"""The streams of delta-spark's own test suites that a user of Python can play, each as a scenario.

They run unchanged on two engines, ours and delta-spark's own, so they know PySpark and the standard library only.
`tests/interop/streams/differences.py` says where the engines give different answers, and
`tests/interop/streams/not_played.py` which cases are not played.
"""

_NAMES = (
    *("reading", "starting", "limits", "changes", "statements"),
    *("schemas", "losses", "feed", "writing", "casts"),
)
MODULES = tuple(f"tests.interop.streams.{name}" for name in _NAMES)
