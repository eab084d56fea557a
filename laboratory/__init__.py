"""The laboratory: hundreds of thousands of histories of concurrent writers, run on the product and judged.

`docs/laboratory.md` says what is tried and why; ``make lab`` runs everything. No wheel contains it. Read in this order:

1. What is run. `statements` with `conditions`: each statement as data, and as a function from rows to rows, written
   apart from the product. `plans`: a table, statements, a schedule and failures; everything that decides a history.
   `plan_generator` with `stream_plans`: a plan from one integer. `blocks` with `block_plans`: transactions of several
   statements.
2. How it is run. `scheduler`: threads of which one moves at a time. `verbs` with `sql_texts`: each statement as a
   command of the product. `stream_readers`: a stream that reads beside the writers. `places`: where the table lies and
   which engine works on it. `runs` with `feeds`: a plan becomes a history.
3. Other engines. `foreign_engine` and `stranger_commits` write commits by the protocol alone, in the manners of
   `manners`. `log_reader` reads every version, strictly, and shares no code with the product.
4. How it is judged. `oracle`: is there a serial order? `verdicts` with `feed_verdicts` and `block_verdicts`: every
   violation of a history. `stories`: a history as text, or as a test. `shrinking`: the smallest plan that still fails.
   `sweeping`: every call fails once.
5. What is started. `campaign` and `report`: many histories, and the page that says what came out (``python -m
   laboratory``). `mutants`: the product with one rule broken, each of which must be caught. `several_statements` with
   `block_mutants`: the same with blocks. `strangers`: other engines' commits in every order. `mutations` with `shapes`
   and `damage`: tables of which one file was damaged. `kills` with `writers` and `journals`: processes that are killed.
   `in_arrow`: histories without Spark; `on_spark`: on real Spark.
6. One command in all ways in which it can be run. `drawn_tables` with `drawn_commands`: tables with columns of many
   types, and commands on them. `sites` with `spark_site`: the ways. `sights` with `typed_reader`: what came of each.
   `differential`: what differs.
7. What is not built: `several_tables`, a model of ways to commit several tables at once, searched for anomalies.
   `table_groups` with `group_steps`: the ways, step by step. `group_oracle`: is there a serial order?
"""
