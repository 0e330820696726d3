"""Every file name a results file brings with it. No other module joins these paths."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"
_SPOOL_NAME = re.compile(r"^(?P<key>[^/]+)\.(?P<digest>[0-9a-f]{16})\.npz$")
_SESSION_NAME = re.compile(r"^session-(\d{4})\.json$")


@dataclass(frozen=True)
class ResultPaths:
    """Names derived from the results file `file`."""

    file: Path

    @property
    def layout_temporary(self) -> Path:
        """Where a new file is laid out before it gets its name."""
        return self.file.with_name(f"{TEMPORARY_PREFIX}layout-{self.file.name}")

    @property
    def commit_temporary(self) -> Path:
        """Where the file with committed traces is written before it replaces the old one."""
        return self.file.with_name(f"{TEMPORARY_PREFIX}commit-{self.file.name}")

    @property
    def import_temporary(self) -> Path:
        """Where a file with one more imported run is put together before it replaces the old one."""
        return self.file.with_name(f"{TEMPORARY_PREFIX}import-{self.file.name}")

    @property
    def temporaries(self) -> tuple[Path, Path]:
        return (self.layout_temporary, self.commit_temporary)

    @property
    def spool(self) -> Path:
        """Folder of what finished runs leave until they are committed."""
        return self.file.with_name(self.file.name + ".spool")

    @property
    def lock(self) -> Path:
        """Held by rank 0 of the sweep that writes the file."""
        return self.spool / "lock"

    @property
    def live(self) -> Path:
        """What the running sweep is doing, for those who ask."""
        return self.spool / "live.json"

    @property
    def live_temporary(self) -> Path:
        return self.spool / f"{TEMPORARY_PREFIX}live.json"

    def spool_file(self, key: str, digest: str) -> Path:
        """Spool file of one run; the digest in the name tells results of other inputs apart."""
        return self.spool / f"{key.replace('/', '+')}.{digest[:16]}.npz"

    def spool_temporary(self, key: str, writer: int) -> Path:
        """Unfinished spool file, named so that no two ranks share one."""
        return self.spool / f"{TEMPORARY_PREFIX}{writer}-{os.getpid()}-{key.replace('/', '+')}.npz"

    def session_file(self, number: int) -> Path:
        return self.spool / f"session-{number:04d}.json"

    def session_numbers(self) -> list[int]:
        """Sessions recorded in the spool, ascending."""
        found = (_SESSION_NAME.match(name) for name in self._listing())
        return sorted(int(match.group(1)) for match in found if match)

    def spooled(self) -> set[Path]:
        """Complete spool files."""
        return {
            self.spool / name
            for name in self._listing()
            if _SPOOL_NAME.match(name) and not name.startswith(TEMPORARY_PREFIX)
        }

    def spool_leftovers(self) -> list[Path]:
        """Spool files that a killed rank did not finish."""
        return [self.spool / name for name in self._listing() if name.startswith(TEMPORARY_PREFIX)]

    def _listing(self) -> list[str]:
        try:
            return os.listdir(self.spool)
        except FileNotFoundError:
            return []


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(temporary: Path, final: Path) -> None:
    """Give a complete, synced file its name: readers see the old file or the new one, never a part."""
    sync_file(temporary)
    os.replace(temporary, final)
    sync_folder(final.parent)
