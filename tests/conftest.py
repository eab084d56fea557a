"""What happens behind each test's back: one plugin for each thing, which says why."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.tiers",  # which tests and cases a run takes
    "tests.support.drawing",  # drawn examples are the same in each run
    "tests.support.quick_collection",  # nothing looks for garbage among collected tests
    "tests.support.sessions",  # one Spark for each process
    "tests.support.quick_gateway",  # PySpark asks once what a name of Java is
    "tests.support.quick_disk",  # nothing waits for the disk
    "tests.support.plain_terminal",  # output is as wide as on any terminal
    "tests.support.secret_watch",  # no test shows the planted secret
    "tests.support.costs",  # what each test takes, where it is asked
]
