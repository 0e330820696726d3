"""The lock on a results file: one holder, no dead ones, also where the file system has no locks."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from hpcmoe.errors import InputError
from hpcmoe.store.paths import ResultPaths
from hpcmoe.sweep import lock
from hpcmoe.sweep.live import FRESH_S, LiveFile, read_live
from hpcmoe.sweep.lock import exclusive, holder


@pytest.fixture
def paths(tmp_path: Path) -> ResultPaths:
    return ResultPaths(tmp_path / "study.h5")


@pytest.fixture
def other_process(paths: ResultPaths) -> Iterator[int]:
    """A process that holds the lock until the test ends."""
    ready, told = os.pipe()
    if (child := os.fork()) == 0:
        with exclusive(paths):
            os.write(told, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(ready, 1)
    yield child
    os.kill(child, 9)
    os.waitpid(child, 0)


def in_child(work: Callable[[], object]) -> int:
    """Exit code of a process that does `work`: 0, or 42 for an InputError."""
    if (child := os.fork()) == 0:
        try:
            work()
        except InputError:
            os._exit(42)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_second_holder_is_told_who_is_first(paths: ResultPaths, other_process: int) -> None:
    with (
        pytest.raises(
            InputError, match=rf"another sweep is writing .*process {other_process} on {socket.gethostname()}"
        ),
        exclusive(paths),
    ):
        pass
    who = holder(paths)
    assert who is not None
    assert who["process"] == other_process


def test_lock_of_a_killed_process_is_free_and_it_is_said(paths: ResultPaths) -> None:
    def die_holding() -> NoReturn:
        with exclusive(paths):
            os.kill(os.getpid(), 9)
        raise AssertionError

    assert in_child(die_holding) == -9
    assert holder(paths) is None
    with exclusive(paths) as remark:
        assert "died without a word" in remark
    assert not paths.spool.exists()
    with exclusive(paths) as remark:
        assert remark == ""


def test_holder_changes_nothing(paths: ResultPaths) -> None:
    assert holder(paths) is None
    assert not paths.spool.exists()
    with exclusive(paths):
        before = paths.lock.stat()
        assert in_child(lambda: holder(paths)) == 0
        assert paths.lock.stat() == before


def test_lock_on_a_removed_file_does_not_count(paths: ResultPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = lock._lock, []

    def lose_the_race(descriptor: int, where: ResultPaths) -> None:
        """The holder before removes its file after we opened it and before we lock it."""
        if not calls:
            where.lock.unlink()
        calls.append(descriptor)
        real(descriptor, where)

    monkeypatch.setattr(lock, "_lock", lose_the_race)
    with exclusive(paths):
        assert len(calls) == 2
        assert in_child(lambda: exclusive(paths).__enter__()) == 42


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "lockf", refuse)


def leave(paths: ResultPaths, host: str, process: int) -> None:
    paths.spool.mkdir()
    paths.lock.write_text(json.dumps({"host": host, "process": process, "started": "then"}))


@pytest.mark.usefixtures("no_locks")
class TestWithoutLocks:
    def test_running_process_of_this_host(self, paths: ResultPaths) -> None:
        leave(paths, socket.gethostname(), os.getppid())
        with pytest.raises(InputError, match="another sweep is writing"), exclusive(paths):
            pass

    def test_dead_process_of_this_host(self, paths: ResultPaths) -> None:
        leave(paths, socket.gethostname(), 2**22 + 1)
        with exclusive(paths) as remark:
            assert "died" in remark

    @pytest.mark.parametrize(("age_s", "busy"), [(0, True), (FRESH_S + 1, False)])
    def test_other_host_by_its_sign_of_life(self, age_s: float, busy: bool, paths: ResultPaths) -> None:
        leave(paths, "elsewhere", 1)
        LiveFile(paths).write({})
        content = read_live(paths)
        assert content is not None
        paths.live.write_text(json.dumps({"written_unix_s": time.time() - age_s}))
        if busy:
            with pytest.raises(InputError, match="process 1 on elsewhere"), exclusive(paths):
                pass
        else:
            with exclusive(paths):
                pass


def test_damaged_lock_and_live_files_are_no_obstacle(paths: ResultPaths) -> None:
    paths.spool.mkdir()
    paths.lock.write_text("{")
    paths.live.write_text("[1")
    assert read_live(paths) is None
    with exclusive(paths) as remark:
        assert remark == ""
