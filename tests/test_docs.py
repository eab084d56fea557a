"""The documentation is true: its examples run, its links lead somewhere, its tables agree with the code.

A page is one script: its blocks run in their order, in one namespace that begins with ``path`` (where there is no table
yet), ``folder`` (empty) and, on a page with a block marked ``python spark``, ``spark``. A ``sh`` block runs its lines
that begin with ``anabranch``, with ``$name`` standing for a variable of the page; a ``text`` block after it is its
output, where ``…`` stands for anything. ``exit=1`` in the mark of a ``sh`` block is the exit code of its last line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import _expressions as expressions
from anabranch import errors
from anabranch._cli import app
from anabranch._protocol import inactive_properties, options, properties, settings
from anabranch._protocol.features import table_features
from anabranch._protocol.features.refused import REFUSED
from anabranch._transaction import conflicts, phases, retry
from anabranch.commands.maintenance import check
from anabranch.commands.queries import describe
from tests.test_tidy import repository_paths, stands_here

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
PAGES = sorted(DOCS.rglob("*.md"))
PROSE = [*sorted(ROOT.glob("*.md")), *PAGES]

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_LANGUAGES = {"python", "sh", "text", "json"}
_RUN_BY_BASH = re.compile(r'"[^"]*(?<!\\)`[^"]*"')
_MACHINE_PATH = re.compile(r"(?<![\w.])/(work|home|root|tmp|Users)/")


@dataclass(frozen=True)
class Block:
    """One example: its language, the marks behind that, where it begins, and its text."""

    language: str
    marks: tuple[str, ...]
    line: int
    text: str

    @property
    def exit_code(self) -> int:
        """What its last command is to exit with."""
        return next((int(mark.removeprefix("exit=")) for mark in self.marks if mark.startswith("exit=")), 0)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], tuple(found[2].split()), text[: found.start(3)].count("\n"), found[3])
        for found in _BLOCK.finditer(text)
    ]


def needs_spark(page: Path) -> bool:
    return any("spark" in block.marks for block in blocks(page))


def has_examples(page: Path) -> bool:
    return any(block.language == "python" for block in blocks(page))


def run_page(page: Path, **names: Any) -> None:
    """Run the page's blocks; a failure shows the line of the page."""
    output = ""
    for block in blocks(page):
        if block.language == "python":
            code = "\n" * block.line + block.text
            exec(compile(code, str(page), "exec", dont_inherit=True), names)
        elif block.language == "sh":
            output = run_shell(block, names)
        elif block.language == "text" and output:
            assert matches(output, block.text), f"{name_of(page)}:{block.line}: the output is\n{output}"
            output = ""


def run_shell(block: Block, names: dict[str, Any]) -> str:
    """Run the block's ``anabranch`` lines; gives all that they print."""
    commands = [line for line in block.text.splitlines() if line.startswith("anabranch ") and " demo" not in line]
    output, code = "", 0
    for command in commands:
        words = as_bash_splits(Template(command).safe_substitute(names))
        result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "300"})
        output, code = output + result.output, result.exit_code
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert code == block.exit_code, output
    return output


def as_bash_splits(command: str) -> list[str]:
    r"""The words of a command as bash gives them; ``\`` before a backtick is taken away, which `shlex` does not do."""
    assert not _RUN_BY_BASH.search(command), f"bash runs what stands between backticks: {command}"
    return shlex.split(command.replace("\\`", "`"), comments=True)


def matches(output: str, expected: str) -> bool:
    """Whether the output is the expected one, where ``…`` stands for anything; blanks at the ends of lines are none."""
    given, wanted = ("\n".join(map(str.strip, text.strip().splitlines())) for text in (output, expected))
    pattern = ".*".join(map(re.escape, wanted.split("…")))
    return re.fullmatch(pattern, given, re.DOTALL) is not None


def rows_of_table(page: Path, first_cell: str) -> list[list[str]]:
    """The rows, cell by cell without backticks, of each table of a page whose head begins with ``first_cell``."""
    found, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[0] == first_cell:
            inside = True
        elif inside and not set(cells[0]) <= set("-: "):
            found.append(cells)
    return found


def words_in_code(page: Path) -> set[str]:
    """Every name that stands in backticks or in an example of a page."""
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`([^`\n]+)`", text) + [block.text for block in blocks(page)]
    return {word for span in spans for word in re.findall(r"[A-Za-z_]\w*", span)}


# -- examples ----------------------------------------------------------------------------------------------------------

RUNS_A_MATRIX = pytest.mark.exhaustive(
    "tests/testing/test_matrix.py::test_the_command_shows_a_tick_for_each_cell_and_says_which_go_beyond"
)
WITH_EXAMPLES = [page for page in [ROOT / "README.md", *PAGES] if has_examples(page)]


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[RUNS_A_MATRIX] * (page.stem == "matrix"))
        for page in WITH_EXAMPLES
        if not needs_spark(page)
    ],
    ids=name_of,
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, path=str(tmp_path / "table"), folder=tmp_path)


@pytest.mark.slow  # more than any other file takes: it is not the last one, for which another process would wait
@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("page", [page for page in WITH_EXAMPLES if needs_spark(page)], ids=name_of)
def test_the_examples_of_a_page_run_on_spark(page: Path, tmp_path: Path, spark: Any) -> None:
    run_page(page, path=str(tmp_path / "table"), folder=tmp_path, spark=anabranch.install(spark))


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_block_is_of_a_kind_that_is_known_here(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= _LANGUAGES
    fences = len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert fences == 2 * len(blocks(page)), "a block without a language would never run"


def test_a_wrong_example_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nx = 1\n```\n\nMore.\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as failed:
        run_page(page)
    assert failed.traceback[-1].lineno == 9


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_no_example_for_the_shell_has_a_backtick_that_bash_would_run(page: Path) -> None:
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    assert not [line for line in lines if _RUN_BY_BASH.search(line)]


def test_a_line_is_split_as_bash_splits_it() -> None:
    line = 'anabranch sql "SELECT 1 FROM delta.\\`/t\\`" --csv  # a comment'
    assert as_bash_splits(line) == ["anabranch", "sql", "SELECT 1 FROM delta.`/t`", "--csv"]
    assert as_bash_splits("anabranch sql 'FROM delta.`/t`'")[2] == "FROM delta.`/t`"
    with pytest.raises(AssertionError, match="bash runs"):
        as_bash_splits('anabranch sql "FROM delta.`/t`"')


@pytest.mark.parametrize(
    ("output", "expected", "same"),
    [("a b c\n", "a … c", True), (" a \nb\nc", "a\n…\nc", True), ("a b", "a …c", False), ("a.c", "a?c", False)],
)
def test_dots_in_an_output_stand_for_anything(output: str, expected: str, same: bool) -> None:
    assert matches(output, expected) is same


# -- links and prose ---------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+?) *$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[str]:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return (target for target in _LINK.findall(text) if "://" not in target and not target.startswith("mailto:"))


def is_broken(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


@pytest.mark.slow
@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not [link for link in links(page) if is_broken(page, link)]


def test_a_broken_link_is_noticed() -> None:
    assert is_broken(DOCS / "index.md", "verbs/gone.md")
    assert is_broken(DOCS / "index.md", "limits.md#gone")


def test_every_page_is_on_the_map() -> None:
    maps = (DOCS / "index.md", DECISIONS / "index.md")
    linked = {(each.parent / link.partition("#")[0]).resolve() for each in maps for link in links(each)}
    assert not [name_of(page) for page in PAGES if page != DOCS / "index.md" and page not in linked]


def test_decisions_are_found_by_what_they_are_about() -> None:
    rows = rows_of_table(DECISIONS / "index.md", "file or folder")
    assert [path for path, _ in rows] == sorted({path for path, _ in rows})
    listed = {(path, name) for path, cell in rows for name in re.findall(r"\]\(([^)]+)\)", cell)}
    about = re.compile(r"^About: (.+?)\.\n\n", re.MULTILINE | re.DOTALL)
    pages = {page: about.search(page.read_text(encoding="utf-8")) for page in DECISIONS.glob("*.md")}
    told = {(path, page.name) for page, found in pages.items() if found for path in re.findall(r"`([^`]+)`", found[1])}
    assert listed == told
    assert {page.name for page, found in pages.items() if not found} == {"index.md"}


def test_the_glossary_has_at_most_25_terms_in_alphabetical_order() -> None:
    terms = [cells[0] for cells in rows_of_table(DOCS / "glossary.md", "term")]
    assert 0 < len(terms) <= 25
    assert terms == sorted(terms, key=str.casefold)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_named_in_the_documentation_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not [path for path in repository_paths(text) if not stands_here(path)]
    assert not _MACHINE_PATH.search(text), "a path of somebody's machine"


# -- every public word has its page ------------------------------------------------------------------------------------


def public_methods(owner: type) -> set[str]:
    return {name for name in vars(owner) if not name.startswith("_") and callable(getattr(owner, name))}


def on_pages(*folders: str) -> set[str]:
    pages = [page for name in folders for page in (sorted((DOCS / name).rglob("*.md")) or [DOCS / name])]
    return set().union(*map(words_in_code, pages))


@pytest.mark.parametrize("verb", ["append", "check", "files", "history", "read", "sql", "vacuum"])
def test_every_function_has_its_page(verb: str) -> None:
    assert verb in anabranch.__all__
    assert verb in words_in_code(DOCS / "verbs" / f"{verb}.md")


def test_every_public_name_is_documented() -> None:
    assert set(anabranch.__all__) <= on_pages("verbs", "settings.md", "errors.md", "index.md")


def test_every_method_of_a_table_is_documented_or_listed_as_a_limit() -> None:
    from anabranch import tables
    from anabranch._api import (
        merge_builder,
        optimize_builder,  # here, so that the other tests of this file need no PySpark
    )

    documented, limits = on_pages("verbs"), on_pages("limits.md")
    for owner in (
        tables.DeltaTable,
        tables.DeltaTableBuilder,
        merge_builder.DeltaMergeBuilder,
        optimize_builder.DeltaOptimizeBuilder,
    ):
        missing = public_methods(owner) - documented - limits
        assert not missing, owner
    assert "hadoopConf" in limits


def test_every_command_of_the_command_line_is_documented() -> None:
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert commands <= on_pages("verbs", "index.md")


def test_every_phase_is_documented() -> None:
    assert [cells[0] for cells in rows_of_table(DOCS / "testing.md", "phase")] == list(phases.PHASES)


# -- tables that agree with the code -----------------------------------------------------------------------------------


def test_the_page_of_check_names_every_rule() -> None:
    folder = Path(check.__file__).parents[1]
    source = "".join(each.read_text(encoding="utf-8") for each in sorted(folder.rglob("check*.py")))
    used = set(re.findall(r'(?:Finding\(\s*|rule = )"([^"]+)"', source))
    assert {cells[0] for cells in rows_of_table(DOCS / "verbs" / "check.md", "rule")} == used


def test_history_and_detail_name_their_columns() -> None:
    assert set(describe.HISTORY.names) <= words_in_code(DOCS / "verbs" / "history.md")
    assert set(describe.DETAIL.names) <= words_in_code(DOCS / "verbs" / "detail.md")


def test_the_settings_name_every_property_with_its_default_and_no_other() -> None:
    known = {name: default or "empty" for name, (_, default) in properties.HONOURED.items()}
    new_tables = {"delta.enableDeletionVectors": "true"}
    stated = {cells[0]: cells[2] for cells in rows_of_table(DOCS / "settings.md", "property")}
    assert stated == {**known, **new_tables}


def test_the_settings_say_of_every_other_property_how_it_stands_and_why() -> None:
    words = {
        inactive_properties.Treatment.KEPT: "kept",
        inactive_properties.Treatment.REFUSED: "refused",
        inactive_properties.Treatment.OWNED: "of engines",
    }
    known = {
        each.key: [words[each.treatment], each.default or "empty", each.why] for each in inactive_properties.INACTIVE
    }
    stated = {cells[0]: cells[1:] for cells in rows_of_table(DOCS / "settings.md", "other property")}
    assert stated == known


def test_the_settings_say_what_becomes_of_each_setting_of_a_session() -> None:
    known = {each.name: [each.treatment.value, each.why.replace("`", "")] for each in settings.SETTINGS}
    stated = {cells[0]: cells[1:] for cells in rows_of_table(DOCS / "settings.md", "session setting")}
    assert {name: [fate, why.replace("`", "")] for name, (fate, why) in stated.items()} == known


def test_the_settings_say_which_value_of_a_refused_setting_is_taken() -> None:
    refused = [each for each in settings.SETTINGS if each.treatment is settings.Treatment.REFUSED]
    known = {each.name: [each.default, ", ".join(sorted(each.verbs)) or "every write"] for each in refused}
    stated = {cells[0]: cells[1:] for cells in rows_of_table(DOCS / "settings.md", "refused setting")}
    assert stated == known


def test_the_settings_say_what_becomes_of_each_option() -> None:
    known = {(each.name, ", ".join(each.doors)): (each.treatment.value, each.why) for each in options.OPTIONS}
    stated = {
        (cells[0], cells[1]): (cells[2].partition(",")[0], cells[3])
        for cells in rows_of_table(DOCS / "settings.md", "option")
    }
    assert stated == known


def test_the_settings_name_the_bounds_of_a_commit() -> None:
    stated = {cells[0]: cells[1].replace(",", "") for cells in rows_of_table(DOCS / "settings.md", "bound")}
    assert stated == {
        "attempts of a blind append": str(retry.APPEND_ATTEMPTS),
        "attempts of a blind append before time counts": str(retry.APPEND_ATTEMPTS_AT_LEAST),
        "attempts of any other command": str(retry.CHANGE_ATTEMPTS),
        "time in all": f"{retry.SECONDS:.0f} s",
        "time on one put without an answer": f"{retry.UNKNOWN_SECONDS:.0f} s",
        "longest wait between two attempts": f"{retry.RetryPolicy(1).longest_pause * 1000:.0f} ms or "
        f"{retry.LONGEST_PAUSE_IN_PUTS:.0f} times what a lost put takes",
    }


def test_the_row_level_names_every_function_that_keeps_a_condition_row_local() -> None:
    section = (DOCS / "concepts" / "row-level.md").read_text(encoding="utf-8").rpartition("## Functions that")[2]
    assert set(re.findall(r"`(\w+)`", section)) == expressions.DETERMINISTIC


def test_the_limits_name_every_feature_that_is_known() -> None:
    stated = {cells[0]: cells[1:3] for cells in rows_of_table(DOCS / "limits.md", "feature")}
    assert stated.keys() >= table_features.READABLE | table_features.WRITABLE
    for name, (reads, writes) in stated.items():
        assert (reads != "refused") == (name in table_features.READABLE or name in table_features.WRITABLE), name
        assert (writes != "refused") == (name in table_features.WRITABLE), name


def test_the_limits_name_every_feature_that_is_refused_for_a_reason() -> None:
    stated = {cells[0]: cells[1:] for cells in rows_of_table(DOCS / "limits.md", "refused feature")}
    known = {name: ["refused" if each.binds_readers else "yes", each.reason] for name, each in REFUSED.items()}
    assert stated == known


def test_the_limits_count_the_features_of_delta_spark_that_are_written() -> None:
    stated = {cells[0]: cells[1] for cells in rows_of_table(DOCS / "limits.md", "feature of delta-spark 4.4")}
    assert {name for name, written in stated.items() if written == "yes"} == stated.keys() & table_features.WRITABLE
    assert {name for name, written in stated.items() if written == "no"} <= REFUSED.keys()
    written = list(stated.values()).count("yes")
    left = len(stated) - written
    verb = "is" if left == 1 else "are"
    said = f"knows {len(stated)} features by name. Of these, {written} are written here and {left} {verb} not"
    assert said in (DOCS / "limits.md").read_text()


def every_error() -> list[type[errors.AnabranchError]]:
    """All of them, in the order of the tree at the top of their module."""
    found = (value for value in vars(errors).values() if isinstance(value, type))
    kinds = [each for each in found if issubclass(each, errors.AnabranchError) and not each.__name__.startswith("_")]
    drawn = re.findall(r"\w+", str(errors.__doc__))
    return sorted(kinds, key=lambda kind: drawn.index(kind.__name__))


def as_rows(found: list[type[errors.AnabranchError]]) -> list[list[str]]:
    return [[e.__name__, e.condition, e.sql_state, "yes" if e.retryable else "no", meaning(e)] for e in found]


def meaning(error: type[errors.AnabranchError]) -> str:
    return (error.__doc__ or "").split("\n")[0].replace("``", "")


def test_the_page_of_errors_names_every_class_as_it_is() -> None:
    stated = rows_of_table(DOCS / "errors.md", "class")
    assert sorted(cells[:5] for cells in stated) == sorted(as_rows(every_error()))
    assert not [cells[0] for cells in stated if len(cells[5]) < 10], "each needs what to do"


def test_the_page_of_errors_names_every_sub_condition() -> None:
    folder = Path(conflicts.__file__).parent
    source = "".join(
        (folder / f"{name}.py").read_text(encoding="utf-8") for name in ("conflicts", "commit", "conflict_errors")
    )
    used = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', source))
    assert {cells[0] for cells in rows_of_table(DOCS / "errors.md", "sub-condition")} == used
