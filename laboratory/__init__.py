"""The laboratory: hundreds of thousands of histories, run and judged; see docs/laboratory.md.

`python -m laboratory` runs it whole. What a user can use too lies in `anabranch.testing`; here stand the campaigns, the
mutants that prove that the laboratory can fail, and the report.
"""
