"""Hooks of mkdocs: pages that lie outside of `docs`, marks of examples, and the live page of the demonstration.

The pages are written for a reader of the repository, and stay as they are: they link to files beside `docs`, and mark
their examples for the tests. Here the site gets a page for each such file, links lead to it, and the marks go.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

OUTSIDE = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "LICENSE": "project/LICENSE.txt",
    "README.md": "index.md",
    **{
        f"examples/{each.name}": f"examples/{each.stem}.md" if each.suffix == ".py" else f"examples/{each.name}"
        for each in sorted((ROOT / "examples").iterdir())
        if each.is_file()
    },
}
"""The file or page of the site that stands for a file of the repository which does not lie in `docs`."""

TIMELINE = ROOT / "build" / "timeline.html"
"""Where a live page of the demonstration's timeline is looked for; the site has it if it is there."""
TIMELINE_MARK = "<!-- the timeline of the demonstration -->"

_FENCE = re.compile(r"^(```(?:python|sh)) .+$", re.MULTILINE)
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_CODE = re.compile(r"(<code>)([^<]*)(</code>)")
_LINK = re.compile(r"(\[[^\]\n]*\]\()([^)\s#]+)([^)\s]*\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of `docs`, those that stand for files beside it, and the timeline if it was made."""
    for origin, place in OUTSIDE.items():
        if files.get_file_from_path(place) is None and (ROOT / origin).exists():
            files.append(File.generated(config, place, content=_content(ROOT / origin)))
    if TIMELINE.exists():
        files.append(File.generated(config, "learn/timeline.html", content=TIMELINE.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links that stay on the site, and with examples as their language alone marks them."""
    place = page.file.src_uri
    if place == "index.md":
        page.meta["hide"] = ["navigation"]  # which would show nothing but this page
    origin = next((each for each, made in OUTSIDE.items() if made == place and place != "index.md"), f"docs/{place}")
    shown = "[The timeline of the demonstration](timeline.html), as a live page." if TIMELINE.exists() else ""
    return without_marks(relinked(markdown, origin, place)).replace(TIMELINE_MARK, shown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with long names in tables that may end a line between their words."""
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: code[1] + breakable(code[2]) + code[3], cell[0]), html)


def breakable(name: str) -> str:
    """A name, as HTML, with places where a line may end: behind points and strokes, and before capitals."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=\w[._/])(?=\w)", "<wbr>", name)


def without_marks(markdown: str) -> str:
    """Examples without what marks them for the tests, behind their language."""
    return _FENCE.sub(r"\1", markdown)


def relinked(markdown: str, origin: str, place: str) -> str:
    """The text of a file of the repository with links as they are right on the site.

    Args:
        origin: where the file lies in the repository.
        place: where its page lies on the site.
    """

    def follow(found: re.Match[str]) -> str:
        if "://" in found[2] or found[2].startswith("mailto:"):
            return found[0]
        meant = os.path.normpath(PurePosixPath(origin).parent / found[2])
        target = meant.removeprefix("docs/") if meant.startswith("docs/") else OUTSIDE.get(meant, meant)
        return found[1] + os.path.relpath(target, PurePosixPath(place).parent) + found[3]

    return _LINK.sub(follow, markdown)


def _content(file: Path) -> str:
    """The page, or file, that stands for a file: of a script its docstring as prose, and below it the rest."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return text
    tree = ast.parse(text)
    says = ast.get_docstring(tree)
    code = "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno if says else 0 :])
    return f"# {file.name}\n\n{says or ''}\n\n```python\n{code.lstrip()}```\n"
