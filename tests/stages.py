"""Lets one run of pytest show the results of an earlier one as well, so that the last line counts both.

run-tests uses it (-p tests.stages): what is not sensitive to timing runs first, on all cores, with
--reports-to FILE; then the rest, one after the other, with --reports-from FILE.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stages")
    group.addoption("--reports-to", metavar="FILE", type=Path, help="also write every result there")
    group.addoption(
        "--reports-from", metavar="FILE", type=Path, help="show the results there as if they were of this run"
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # a worker of pytest-xdist: it does not report by itself
    if (to := config.getoption("reports_to")) is not None:
        config.pluginmanager.register(_Writer(config, to))
    if (earlier := config.getoption("reports_from")) is not None:
        config.pluginmanager.register(_Reader(config, earlier))


class _Writer:
    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._path = config, path
        path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._write(report)

    def _write(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        data.pop("node", None)  # the worker that ran it, an object of pytest-xdist
        with self._path.open("a") as stream:
            stream.write(json.dumps(data) + "\n")


class _Reader:
    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._reports = [self._read(line) for line in path.read_text().splitlines()]

    def _read(self, line: str) -> pytest.TestReport | pytest.CollectReport:
        report = self._config.hook.pytest_report_from_serializable(config=self._config, data=json.loads(line))
        if isinstance(report.longrepr, list):  # why and where a test was skipped; JSON has no tuples
            report.longrepr = tuple(report.longrepr)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Before the summary is written; an earlier failure is one of this run."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        for report in self._reports:
            category, *_ = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
            terminal.stats.setdefault(category, []).append(report)
            if report.failed:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
