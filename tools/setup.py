"""Make a clone ready to run: a virtual environment, the packages it needs, a Java runtime, what else the tests need.

Knows: this repository's own files, venv and pip, where a Java runtime is found or had, npm and Maven. It may not know
the library: it runs before anything is installed, so it uses the standard library only.

Guarantee: run again with nothing changed, it starts no process and touches no file. What was done stands in
`.venv/.anabranch-stamp.json`; what the make targets need in their environment stands in `.venv/.anabranch-env`.

    python3 tools/setup.py [--java] [--azurite] [--browser] [--interop] [--connectors] [--servers]
        [--bare-python] [EXTRA ...]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import bare_python
import connectors
import interop
import servers

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".anabranch-stamp.json"
ENVIRONMENT = VENV / ".anabranch-env"
OWN_JDK = VENV / "jdk"
AZURITE = VENV / "azurite"

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
AZURITE_VERSION = "3.35.0"  # the last that runs on Node.js 20 and older ones
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class SetupError(Exception):
    """Set-up cannot go on; the text says what the person at the keyboard can do about it."""


# --- what has been done -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stamp:
    """What an earlier run left ready. `java_asked` is the JAVA_HOME that was set when `java_home` was chosen."""

    key: str = ""
    extras: tuple[str, ...] = ()
    java_home: str = ""
    java_asked: str = ""

    def has_packages(self, key: str, extras: Iterable[str]) -> bool:
        return self.key == key and set(extras) <= set(self.extras)

    def has_java(self, asked: str) -> bool:
        return bool(self.java_home) and self.java_asked == asked and (Path(self.java_home) / "bin" / "java").exists()


def read_stamp(path: Path) -> Stamp:
    """The stamp at `path`, or an empty one where there is none that can be read."""
    try:
        facts = json.loads(path.read_text())
        return Stamp(facts["key"], tuple(facts["extras"]), facts["java_home"], facts["java_asked"])
    except (OSError, ValueError, KeyError, TypeError):
        return Stamp()


def write_stamp(path: Path, stamp: Stamp) -> None:
    path.write_text(json.dumps(asdict(stamp), indent=2) + "\n")


def fingerprint(files: Sequence[Path], *facts: object) -> str:
    """A hash that changes whenever the environment would have to be made anew."""
    digest = hashlib.sha256(repr(facts).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def current_key() -> str:
    return fingerprint([ROOT / "pyproject.toml", Path(__file__)], str(ROOT), sys.version_info[:2])


# --- running things ---------------------------------------------------------------------------------------------


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(command: Sequence[str], **environment: str) -> bool:
    """Run `command` with its output shown and no standard input; whether it succeeded."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, env={**os.environ, **environment}, cwd=ROOT)
    except OSError as error:
        say(f"{command[0]}: {error}")
        return False
    return done.returncode == 0


def output_of(command: Sequence[str]) -> str:
    """Everything `command` prints, or nothing where it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


# --- the system's package manager -------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackageManager:
    """One way to install system packages. Each entry of `java`, `venv`, `maven`, `browser` is tried until one can
    be installed.
    """

    name: str
    install: tuple[str, ...]
    java: tuple[str, ...]
    venv: tuple[str, ...] = ()
    maven: tuple[str, ...] = ()
    browser: tuple[str, ...] = ()
    refresh: tuple[str, ...] = ()
    needs_root: bool = True


def package_managers(python: str) -> tuple[PackageManager, ...]:
    """The known ones; `python` is the running version, such as "3.12"."""
    return (
        PackageManager(
            name="apt-get",
            refresh=("update", "-qq"),
            install=("install", "-y", "-qq", "--no-install-recommends"),
            java=("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
            venv=(f"python{python}-venv", "python3-venv"),
            maven=("maven",),
            browser=("chromium", "chromium-browser"),
        ),
        PackageManager(
            name="dnf",
            install=("install", "-y"),
            java=("java-17-openjdk-headless", "java-21-openjdk-headless", "java-latest-openjdk-headless"),
            venv=("python3-pip",),
            maven=("maven",),
            browser=("chromium",),
        ),
        # Spark's launchers are bash scripts, and Alpine has no bash of its own.
        PackageManager(
            name="apk",
            install=("add", "--no-cache"),
            java=("openjdk17-jre-headless bash", "openjdk21-jre-headless bash"),
            venv=("py3-pip",),
            maven=("maven",),
            browser=("chromium",),
        ),
        PackageManager(
            name="brew", install=("install",), java=("openjdk@17", "openjdk@21"), maven=("maven",), needs_root=False
        ),
    )


def this_python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def present_manager() -> PackageManager | None:
    return next((manager for manager in package_managers(this_python()) if shutil.which(manager.name)), None)


def may_use(manager: PackageManager, user_id: int) -> bool:
    """Root installs with the system's own manager, everyone else with brew, which refuses root."""
    return manager.needs_root == (user_id == 0)


def install_one_of(manager: PackageManager, choices: Sequence[str]) -> bool:
    """Install the first of `choices` that this system has; whether one was."""
    if manager.refresh and choices:
        run([manager.name, *manager.refresh])  # a stale list may still do, so its failure decides nothing
    for choice in choices:
        say(f"Installing {choice} with {manager.name} ...")
        if run([manager.name, *manager.install, *choice.split()], DEBIAN_FRONTEND="noninteractive"):
            return True
    return False


def install_from_system(what: str) -> bool:
    """Install `what`, a field of `PackageManager`, by the system's one where this user may; whether it was."""
    manager = present_manager()
    if manager is None or not may_use(manager, os.getuid()):
        return False
    return install_one_of(manager, getattr(manager, what))


def advice(what: str, otherwise: str) -> str:
    """The one command that gets `what`, a field of `PackageManager`, on this system, or else the text `otherwise`."""
    manager = present_manager()
    choices: tuple[str, ...] = getattr(manager, what) if manager else ()
    if manager is None or not choices:
        return otherwise
    return " ".join((["sudo"] if manager.needs_root else []) + [manager.name, manager.install[0], choices[0]])


# --- Python -----------------------------------------------------------------------------------------------------


def check_python() -> None:
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return
    newer = next((name for minor in range(20, 10, -1) if shutil.which(name := f"python3.{minor}")), "python3.12")
    raise SetupError(f"Anabranch needs Python 3.11 or later and this is {this_python()}. Try: PYTHON={newer} make test")


def venv_python() -> Path:
    return VENV / "bin" / "python"


def venv_version(config: str) -> str:
    """The version, such as "3.12", that a pyvenv.cfg with this text names; empty where it names none."""
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", config, re.MULTILINE)
    return found.group(1) if found else ""


def venv_serves() -> bool:
    """Whether the environment is there, is of the running Python's version, and has pip."""
    config = VENV / "pyvenv.cfg"
    if not config.exists() or venv_version(config.read_text()) != this_python():
        return False
    return bool(output_of([str(venv_python()), "-m", "pip", "--version"]))


def has_ensurepip() -> bool:
    importlib.invalidate_caches()
    return importlib.util.find_spec("ensurepip") is not None


def create_venv() -> None:
    if not has_ensurepip() and not (install_from_system("venv") and has_ensurepip()):
        how = advice("venv", f"install the modules venv and ensurepip of Python {this_python()}")
        raise SetupError(f"{sys.executable} cannot make a virtual environment, for it has no ensurepip. Try: {how}")
    say(f"Making .venv with Python {this_python()} ...")
    base = getattr(sys, "_base_executable", sys.executable)
    if not run([base, "-m", "venv", "--clear", str(VENV)]):
        raise SetupError(f"{base} -m venv failed; its message is above.")


def pip_install(*arguments: str) -> bool:
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    pip = [str(venv_python()), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return run([*pip, *quiet, *arguments])


def install_packages(extras: Sequence[str]) -> None:
    """Install the project, editable, with `extras` into the environment, which is made where it does not serve."""
    if not venv_serves():
        create_venv()
    say("Installing Anabranch and what it needs into .venv (minutes the first time: PySpark is large) ...")
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    if not (pip_install("--upgrade", "pip") and pip_install("--editable", target)):
        raise SetupError("pip could not install what is needed; its message is above. Fix that, then run it again.")


# --- Java -------------------------------------------------------------------------------------------------------


DOWNLOAD_JAVA = """
import jdk, sys
try:
    jdk.install(sys.argv[1], jre=True, path=sys.argv[2])
except jdk.JdkError as error:
    sys.exit(f"install-jdk: {error}")
"""


@dataclass(frozen=True)
class Java:
    home: str
    major: int


def parse_java(settings: str) -> Java | None:
    """What `java -XshowSettings:properties -version` says of itself."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", settings, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", settings, re.MULTILINE)
    return Java(home.group(1), int(version.group(1))) if home and version else None


def probe_java(executable: str) -> Java | None:
    return parse_java(output_of([executable, "-XshowSettings:properties", "-version"]))


def asked_java(environment: Mapping[str, str]) -> str:
    return environment.get("JAVA_HOME", "")


def java_executables(environment: Mapping[str, str]) -> Iterator[str]:
    """Where Java may be, best first: what the user set, what the shell finds, then where installers put it."""
    if asked_java(environment):
        yield str(Path(asked_java(environment)) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH")):
        yield on_path
    for folder, pattern in (
        (OWN_JDK, "*/bin/java"),
        (OWN_JDK, "*/Contents/Home/bin/java"),
        (Path("/usr/lib/jvm"), "*/bin/java"),
        (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home/bin/java"),
        (Path("/opt/homebrew/opt"), "openjdk*/bin/java"),
        (Path("/usr/local/opt"), "openjdk*/bin/java"),
    ):
        yield from map(str, sorted(folder.glob(pattern)))


def find_java(environment: Mapping[str, str]) -> Java | None:
    """The first runtime that Spark accepts; a JAVA_HOME that it would not accept is named and passed over."""
    for executable in java_executables(environment):
        java = probe_java(executable)
        if java and java.major >= OLDEST_JAVA:
            return java
        if asked_java(environment) and executable.startswith(asked_java(environment)):
            found = f"Java {java.major}" if java else "no Java that runs"
            say(f"JAVA_HOME={asked_java(environment)} holds {found}; Spark needs {OLDEST_JAVA} or later. Looking on.")
    return None


def download_java() -> None:
    """Put a runtime into .venv/jdk by the library install-jdk; `find_java` tells whether that went well."""
    say(f"Downloading a Java {OLDEST_JAVA} runtime into .venv/jdk ...")
    if pip_install("install-jdk"):
        run([str(venv_python()), "-c", DOWNLOAD_JAVA, str(OLDEST_JAVA), str(OWN_JDK)])


def obtain_java(environment: Mapping[str, str]) -> Java:
    """A Java that Spark accepts: found, or installed by the system's package manager, or downloaded."""
    if java := find_java(environment):
        return java
    say(f"No Java {OLDEST_JAVA} or later in JAVA_HOME or on PATH.")
    if install_from_system("java") and (java := find_java(environment)):
        return java
    download_java()
    if java := find_java(environment):
        return java
    how = advice("java", f"install a Java runtime, version {OLDEST_JAVA} or later")
    raise SetupError(f"Spark needs Java {OLDEST_JAVA} or later. Try: {how}\nOr set JAVA_HOME to one.")


def environment_file(python: Path, java_home: str) -> str:
    """Shell text that the make targets read before they start anything that starts Spark."""
    settings = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    if java_home:
        settings["JAVA_HOME"] = java_home
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())


# --- Azurite ----------------------------------------------------------------------------------------------------


def has_azurite() -> bool:
    """Whether the wanted version of Azurite is in .venv/azurite."""
    try:
        package = json.loads((AZURITE / "node_modules" / "azurite" / "package.json").read_text())
        return bool(package["version"] == AZURITE_VERSION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def obtain_azurite() -> None:
    """Put Azurite into .venv/azurite where there is npm; without it the tests on Azure say so and are skipped."""
    npm = shutil.which("npm")
    if npm is None or has_azurite():
        return
    say("Installing Azurite, a local Azure for tests, into .venv/azurite ...")
    quiet = ["--no-audit", "--no-fund", "--no-progress", "--ignore-scripts", "--loglevel=error"]
    AZURITE.mkdir(exist_ok=True)
    if not run([npm, "install", "--prefix", str(AZURITE), *quiet, f"azurite@{AZURITE_VERSION}"]):
        say("npm could not install Azurite; its message is above. Going on: the tests on Azure will be skipped.")


# --- a browser --------------------------------------------------------------------------------------------------


def has_browser() -> bool:
    """Whether there is a Chromium, or a browser made of it, for Playwright to drive."""
    return any(map(shutil.which, BROWSERS))


def obtain_browser() -> None:
    """Install Chromium by the system's package manager where this user may; without it the tests in a browser say so
    and are skipped.
    """
    manager = present_manager()
    if has_browser() or manager is None or not may_use(manager, os.getuid()) or not manager.browser:
        return
    if not (install_from_system("browser") and has_browser()):
        say(f"{manager.name} could not install Chromium. Going on: the tests in a browser will be skipped.")


# --- delta-spark ------------------------------------------------------------------------------------------------


def obtain_interop() -> None:
    """Make the environment with real delta-spark that `tools/interop` describes, in the user's cache folder."""
    if interop.is_ready():
        return
    say(f"Making an environment with delta-spark in {interop.folder()} (minutes the first time) ...")
    base = getattr(sys, "_base_executable", sys.executable)
    pip = [str(interop.python()), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    made = run([base, "-m", "venv", "--clear", str(interop.python().parent.parent)])
    if not (made and run([*pip, *interop.PACKAGES]) and copy_jars()):
        raise SetupError("The environment with delta-spark could not be made; the message is above.")
    (interop.folder() / "ready").touch()


def obtain_bare_python() -> None:
    """Make the environment that `tools/bare_python` describes, in the user's cache folder."""
    if bare_python.is_ready():
        return
    say(f"Making a Python for servers of Spark in {bare_python.folder()} ...")
    base = getattr(sys, "_base_executable", sys.executable)
    pip = [str(bare_python.python()), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    if not (run([base, "-m", "venv", "--clear", str(bare_python.folder())]) and run([*pip, *bare_python.PACKAGES])):
        raise SetupError("The Python for servers of Spark could not be made; the message is above.")
    (bare_python.folder() / "ready").touch()


def copy_jars() -> bool:
    """Have Maven copy delta-spark's JARs, without those that PySpark brings; whether it did."""
    return copied_by_maven(interop.POM, interop.jars(), f"-DincludeGroupIds={','.join(interop.GROUPS)}")


def copied_by_maven(pom: Path, folder: Path, *which: str) -> bool:
    """Whether Maven could copy the JARs of a project into a folder."""
    if not (shutil.which("mvn") or install_from_system("maven")):
        raise SetupError(f"JARs come by Maven, and there is none. Try: {advice('maven', 'install Maven')}")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", *which, f"-DoutputDirectory={folder}"]
    return run(["mvn", "-q", "-B", "-f", str(pom), *goal])


def obtain_connectors() -> None:
    """Bring the JARs that `tools/connectors` describes into the user's cache folder."""
    folder = connectors.folder()
    if connectors.jars():
        return
    say(f"Bringing Spark's connectors into {folder} (800 MB) ...")
    if not copied_by_maven(connectors.POM, folder / "jars"):
        raise SetupError("The connectors could not be brought; the message is above.")
    (folder / "ready").touch()


def obtain_servers() -> None:
    """Have Go build the servers that `tools/servers` names; without Go the tests on them say so and are skipped."""
    go = shutil.which("go")
    for name, module in servers.MODULES.items():
        if go is None or not servers.why_absent(name):
            continue
        say(f"Building {name} in {servers.folder()} (minutes) ...")
        if not run([go, "install", module], GOBIN=str(servers.folder())):
            say(f"Go could not build {name}; its message is above. Going on: the tests on it will be skipped.")


# --- all of it --------------------------------------------------------------------------------------------------


def make_ready(
    extras: Sequence[str],
    *,
    java: bool,
    azurite: bool,
    browser: bool,
    interop: bool,
    connectors: bool,
    servers: bool,
    bare_python: bool,
) -> None:
    """Bring the clone to the state asked for, doing only what an earlier run has not done."""
    check_python()
    before = read_stamp(STAMP)
    stamp = with_packages(before, tuple(sorted(extras)))
    if java:
        stamp = with_java(stamp)
    if stamp != before or not ENVIRONMENT.exists():
        ENVIRONMENT.write_text(environment_file(venv_python(), stamp.java_home))
    if azurite:
        obtain_azurite()
    if browser:
        obtain_browser()
    if interop:
        obtain_interop()
    if connectors:
        obtain_connectors()
    if servers:
        obtain_servers()
    if bare_python:
        obtain_bare_python()


def with_packages(stamp: Stamp, extras: tuple[str, ...]) -> Stamp:
    key = current_key()
    if venv_python().exists() and stamp.has_packages(key, extras):
        return stamp
    wanted = tuple(sorted({*extras, *stamp.extras})) if stamp.key == key else extras
    install_packages(wanted)
    stamp = replace(stamp, key=key, extras=wanted)
    write_stamp(STAMP, stamp)  # at once: a failure to find Java must not cost the installation again
    return stamp


def with_java(stamp: Stamp) -> Stamp:
    asked = asked_java(os.environ)
    if stamp.has_java(asked):
        return stamp
    java = obtain_java(os.environ)
    say(f"Using Java {java.major} at {java.home}")
    stamp = replace(stamp, java_home=java.home, java_asked=asked)
    write_stamp(STAMP, stamp)
    return stamp


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--java", action="store_true", help="find or install a Java runtime too")
    parser.add_argument("--azurite", action="store_true", help="install Azurite too, where there is npm")
    parser.add_argument("--browser", action="store_true", help="install Chromium too, where this user may")
    parser.add_argument("--interop", action="store_true", help="make the environment with delta-spark too")
    parser.add_argument("--connectors", action="store_true", help="bring what Spark needs for buckets too")
    parser.add_argument("--servers", action="store_true", help="build the servers of buckets too, where there is Go")
    parser.add_argument("--bare-python", action="store_true", help="make a Python for servers of Spark too")
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="extras of pyproject.toml to install")
    options = vars(parser.parse_args(arguments))
    try:
        make_ready(options.pop("extras"), **options)
    except SetupError as error:
        say(f"\n{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
