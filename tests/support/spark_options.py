"""How the tests' JVMs run."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Each test runs a few small queries once: what a second compiler would win later is lost on compiling."""
