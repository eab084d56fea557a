"""Set-up installs Chromium where it may, and goes on where it cannot."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `tools/setup.py`, which finds its neighbours by their plain names."""
    monkeypatch.syspath_prepend(str(TOOLS))
    found = importlib.util.spec_from_file_location("tools_setup", TOOLS / "setup.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "tools_setup", module)
    found.loader.exec_module(module)
    return module


def command(folder: Path, name: str, text: str) -> None:
    """A program of the name, as a script of the shell."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with nothing on its path but apt-get, which writes down what it is asked for; its user is root."""
    place = tmp_path / "bin"
    command(place, "apt-get", f'echo "$@" >> {tmp_path}/asked')
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(os, "getuid", lambda: 0)
    return place


def asked(system: Path) -> list[str]:
    file = system.parent / "asked"
    return file.read_text().splitlines() if file.exists() else []


def test_chromium_is_installed_by_the_system(setup: ModuleType, system: Path) -> None:
    setup.obtain_browser()
    assert asked(system) == ["update -qq", "install -y -qq --no-install-recommends chromium"]


def test_a_browser_that_is_there_is_taken(setup: ModuleType, system: Path) -> None:
    command(system, "google-chrome", "")
    setup.obtain_browser()
    assert asked(system) == []


def test_who_is_not_root_is_asked_for_nothing(setup: ModuleType, system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    setup.obtain_browser()
    assert asked(system) == []


def test_set_up_goes_on_where_chromium_cannot_be_had(
    setup: ModuleType, system: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command(system, "apt-get", f'echo "$@" >> {system.parent}/asked\nexit 100')
    setup.obtain_browser()
    assert [each.split()[-1] for each in asked(system)] == ["-qq", "chromium", "chromium-browser"]
    assert "Going on" in capfd.readouterr().err


def test_a_system_without_a_known_package_manager_is_left_alone(setup: ModuleType, system: Path) -> None:
    (system / "apt-get").unlink()
    setup.obtain_browser()


def test_the_tests_look_for_the_browsers_that_set_up_takes(setup: ModuleType) -> None:
    text = (TOOLS.parent / "tests" / "browser" / "conftest.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in text for name in setup.BROWSERS)
