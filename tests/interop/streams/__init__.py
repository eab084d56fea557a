"""The streams of delta-spark's own test suites that a user of Python can play, each as a scenario.

They run unchanged on two engines, ours and delta-spark's own, so they know PySpark and the standard library only.
`tests/interop/streams/differences.py` says where the engines give different answers, and which cases are not played.
"""

_WHERE = "tests.interop.streams."
MODULES = tuple(_WHERE + name for name in ("reading", "starting", "limits", "changes"))
NOT_COMPARED = tuple(_WHERE + name for name in ("statements", "schemas", "losses", "feed", "writing", "casts"))
"""Their scenarios ran on delta-spark alone so far: no difference of ours is listed yet."""
