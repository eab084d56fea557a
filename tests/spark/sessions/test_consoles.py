"""What a session of ours writes on the console: nothing that an exception says, unless somebody wants it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.sessions import consoles
from anabranch._spark.sessions.consoles import LOGGING, find_site_settings, outlives_sessions, quiet, quiet_python
from anabranch.errors import ExecutionFailed

JAVA = "spark.driver.defaultJavaOptions"


def test_the_configuration_is_part_of_the_package() -> None:
    assert LOGGING.is_file()
    assert quiet({}, ()) == {JAVA: f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"}


def test_options_of_the_users_own_for_java_do_not_matter() -> None:
    assert quiet({"spark.driver.extraJavaOptions": "-Xms1g"}, ["spark.driver.extraJavaOptions"]) == quiet({}, ())


@pytest.mark.parametrize("name", ["spark.log.level", JAVA])
def test_who_says_something_of_logging_gets_no_configuration(name: str) -> None:
    assert quiet({name: "INFO"}, ()) == {}
    assert quiet({}, [name]) == {}


def test_what_the_files_of_a_site_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# spark.no 1\n\nspark.a   1\n spark.b=2\nspark.c:3\nother 4\n")
    assert find_site_settings({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.a", "spark.b", "spark.c"}
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.d 1\n")
    assert find_site_settings({"SPARK_HOME": str(tmp_path)}) == {"spark.d"}


def test_what_is_submitted_is_read(tmp_path: Path) -> None:
    said = {"SPARK_CONF_DIR": str(tmp_path)}
    arguments = "--conf spark.ui.enabled=true --conf 'spark.x=a b' --driver-memory 2g pyspark-shell"
    assert find_site_settings({**said, "PYSPARK_SUBMIT_ARGS": arguments}) == {"spark.ui.enabled", "spark.x"}
    assert find_site_settings({**said, "PYSPARK_SUBMIT_ARGS": "'"}) == frozenset()


@pytest.mark.parametrize("file", ["log4j2.properties", "log4j2.xml"])
def test_a_site_with_a_configuration_of_its_own_keeps_it(tmp_path: Path, file: str) -> None:
    (tmp_path / file).touch()
    assert quiet({}, find_site_settings({"SPARK_CONF_DIR": str(tmp_path)})) == {}


@pytest.mark.parametrize("variable", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_an_environment_that_configures_log4j_keeps_it(tmp_path: Path, variable: str) -> None:
    said = {"SPARK_CONF_DIR": str(tmp_path), variable: "-Dlog4j2.configurationFile=/etc/log4j2.xml"}
    assert quiet({}, find_site_settings(said)) == {}


@pytest.mark.parametrize(
    ("names", "lasts"),
    [
        ((), False),
        (("spark.ui.enabled",), False),
        (("spark.sql.catalogImplementation",), True),
        (("spark.remote",), True),
    ],
)
def test_names_last_where_a_catalog_or_a_server_is_configured(names: tuple[str, ...], lasts: bool) -> None:
    assert outlives_sessions(names) is lasts


def test_a_server_that_the_environment_names_is_asked(tmp_path: Path) -> None:
    assert outlives_sessions(find_site_settings({"SPARK_CONF_DIR": str(tmp_path), "SPARK_REMOTE": "sc://host"}))


def test_pysparks_loggers_are_silent_unless_somebody_has_set_them(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("AnabranchTestOne", "AnabranchTestTwo")
    monkeypatch.setattr(consoles, "CONTEXT_LOGGERS", names)
    PySparkLogger.getLogger(names[1]).setLevel(logging.INFO)
    quiet_python()
    assert [logging.getLogger(name).level for name in names] == [logging.CRITICAL, logging.INFO]


def test_a_column_in_an_error_shows_no_object_of_java() -> None:
    printed = (
        "id = Column<'<lambda>(columnnodeexpression(UnresolvedAttribute(List(id),None,false,Origin(None,None,None,None,"
        "None,None,None,Some([Ljava.lang.StackTraceElement;@349d14e6),None,None))))'>"
    )
    with pytest.raises(ExecutionFailed) as told, translate_errors(printed, "/data/flights"):
        raise PySparkException("a task failed")
    assert told.value.facts["what"] == "id = Column<'<lambda>(id)'>"
