"""Names that a reader can guess: a function is a verb, or a noun for what it gives; never a past participle.

``found``, ``kept``, ``said`` tell neither what a function does nor what comes back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import tree_of

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "anabranch").rglob("*.py"))
IRREGULAR = frozenset(
    """
    begun broken brought built caught chosen done drawn fallen found frozen given gone grown heard held hidden
    kept known laid lost made meant met overwritten paid rewritten said seen sent shown sought spelt spent
    spoken stood taken thought told understood withdrawn won worn written
    """.split()  # noqa: SIM905
)
NOUNS = frozenset(
    """
    bed embed exceed feed need proceed red seed shed speed succeed
    """.split()  # noqa: SIM905
)
VERBS = frozenset(
    """
    advance are as build can cast check compute count describe do does ensure error find format has have holds
    if is make may must never note only put quote read record refuse remove rename require restage set split
    take translate try until was what who why with without write
    """.split()  # noqa: SIM905
)
"""A name with one of these asks or does something with what the participle calls: `refuse_shredded`, `are_gone`."""
LITTLE = frozenset(
    """
    anew as at before by for from here in of on otherwise to together up
    """.split()  # noqa: SIM905
)
ALLOWED = {
    "_honoured": "an entry of a table of settings, as is `_harmless`",
    "_refused": "the same",
    "allotted_time_exceeded": "Databricks' name of the condition",
    "blind_files_added": "a rule of the grid of conflicts, named by what it finds",
    "domain_changed": "the same",
    "metadata_changed": "the same",
    "protocol_changed": "the same",
    "followed_by": "facts, followed by later ones",
    "gone": "public: a store of the tests",
    "kept": "the same",
    "mounted": "public: a store under a scheme, for tests",
    "schemas_used": "the schemas that are used",
}
"""Names that say what something is where it is used."""


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and word not in NOUNS)


def is_one(name: str) -> bool:
    """Whether a name is a participle, or ends with one, little words behind it apart."""
    words = name.strip("_").split("_")
    while len(words) > 1 and words[-1] in LITTLE:
        words.pop()
    return name.islower() and is_participle(words[-1]) and not VERBS & set(words)


def functions(module: Path) -> Iterator[str]:
    return (node.name for node in ast.walk(tree_of(module)) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", ["found", "_spelled", "said_by", "versions_named", "_laid", "passed"])
def test_a_participle_is_noticed(name: str) -> None:
    assert is_one(name)


@pytest.mark.parametrize("name", ["feed", "find", "is_kept", "refuse_shredded", "read", "names_to_keep", "kept_names"])
def test_a_verb_or_a_noun_is_left_alone(name: str) -> None:
    assert not is_one(name)


def test_no_function_is_named_by_a_participle() -> None:
    found = {name: str(module.relative_to(ROOT)) for module in MODULES for name in functions(module) if is_one(name)}
    assert {name: where for name, where in found.items() if name not in ALLOWED} == {}


def test_each_exception_is_one() -> None:
    names = {name for module in MODULES for name in functions(module)}
    assert {name for name in ALLOWED if name not in names or not is_one(name)} == set()
