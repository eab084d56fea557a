"""Benchmarks: what Anabranch costs beside delta-rs and plain Parquet, each pair measured in one run."""
