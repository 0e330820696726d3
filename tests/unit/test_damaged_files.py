"""A results file damaged in any of its objects gives every command one line of error, never a traceback."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest

from hpcmoe import cli
from hpcmoe.sweep import app

KEYS = [f"flash/t1/tp2ep16/ring_direct/{mode}" for mode in ("ib_cc0", "roce_dcqcn")]
OBJECTS = ("/runs", "/ranks", "/links", "/traces/index", "/traces/fct", "/traces/qlen", f"/config/{KEYS[0]}")
COMMANDS = {
    "report": ("report", "{file}", "-o", "{folder}/report"),
    "inspect": ("inspect", "{file}", KEYS[0], "--html", "{folder}/page.html"),
    "compare runs": ("compare", "{file}", *KEYS),
    "compare files": ("compare", "{sound}", "{file}"),
    "status": ("status", "{file}"),
    "verify": ("verify", "{file}"),
    "merge": ("merge", "{file}"),
    "pack": ("pack", "{file}", "-o", "{folder}/packed.h5"),
    "join": ("join", "{folder}/joined.h5", "{file}", "{sound}"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with their traces."""
    file = tmp_path_factory.mktemp("sound") / "study.h5"
    options = ("--tokens", "64", "--layers", "1", "--quiet")
    select = [option for key in KEYS for option in ("--select", key)]
    assert app.main([str(file), *options, *select]) == 0
    return file


def with_broken_header(sound: Path, folder: Path, name: str) -> Path:
    """A copy whose object `name` has a header of garbage."""
    with h5py.File(sound) as file:
        header = h5py.h5o.get_info(file[name].id).addr
    content = bytearray(sound.read_bytes())
    content[header : header + 48] = b"\xa5" * 48
    (folder / "damaged.h5").write_bytes(content)
    return folder / "damaged.h5"


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_of_error(
    command: str, name: str, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_broken_header(sound, tmp_path, name)
    places = {"file": file, "sound": sound, "folder": tmp_path}
    before = file.read_bytes()
    code = cli.main([part.format(**places) for part in COMMANDS[command]])
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    if code == 0:
        assert command not in ("verify", "join")  # others need not touch what is damaged
    elif command != "verify" or code == 2:
        assert said.err.startswith("hpcmoe: error: ")
        assert str(file) in said.err
        assert said.err.count("\n") == 1
    assert file.read_bytes() == before
