"""A real Slurm on this machine for a test session: munge, a controller, and several virtual nodes.

Everything it needs is in one folder, it listens on the loopback alone, and only processes that it started
are ended, by their ids.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SERVERS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("srun", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
UP_WITHIN_S = 60.0
HOPELESS = ("value not properly terminated in client request", "failed to unpack address")


def missing() -> list[str]:
    """What a cluster needs and this machine lacks."""
    lacking = [name for name in (*SERVERS, *CLIENTS) if shutil.which(name, path=SEARCH_PATH) is None]
    return lacking + ([] if os.geteuid() == 0 else ["root"])


@dataclass
class Cluster:
    """Start with `start`, use with `run`, end with `stop`. `folder` must not be readable only by us."""

    folder: Path
    nodes: int = 4
    cpus: int = 64

    def __post_init__(self) -> None:
        self._first_port = random.randrange(20000, 28000)
        self.environment = {**os.environ, "PATH": SEARCH_PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    @property
    def names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    def start(self) -> None:
        for name in (
            "state",
            "log",
            "munge",
            *(f"{what}/{node}" for what in ("spool", "tmp") for node in self.names),
        ):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._start_munge()
        (self.folder / "slurm.conf").write_text(self._configuration())
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self._server("slurmctld", "-f", self.folder / "slurm.conf")
        for node in self.names:
            self._server("slurmd", "-f", self.folder / "slurm.conf", "-N", node)
        self.wait(lambda: self._idle() == self.nodes, "all nodes to be idle", UP_WITHIN_S)

    def stop(self) -> None:
        """End jobs, then servers, each waited for."""
        with contextlib.suppress(subprocess.SubprocessError, TimeoutError, RuntimeError):
            self.run("scancel", "--user=root", check=False)
            self.wait(lambda: not self.run("squeue", "--noheader"), "jobs to end", 30)
        pids = [
            self._pid(node_file)
            for node_file in (*self.folder.glob("slurmd.*.pid"), self.folder / "slurmctld.pid")
        ]
        pids.append(self._pid(self.folder / "munge" / "munged.pid"))
        for pid in filter(None, pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in filter(None, pids):
            _wait_or_kill(pid)

    def run(self, *arguments: str | Path, check: bool = True, timeout_s: float = 60.0) -> str:
        """Output of a Slurm command."""
        done = subprocess.run(
            list(map(str, arguments)),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(
                f"{arguments[0]} gives {done.returncode}: {done.stdout}{done.stderr}{self.logs()}"
            )
        return done.stdout.strip()

    def srun(
        self, arguments: Sequence[str | Path], environment: dict[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """srun to its end; both outputs together. It ends early, with its code, once a line shows that ranks
        cannot find each other: they would wait for ever."""
        line = ["srun", *map(str, arguments)]
        variables = {**environment, "PATH": SEARCH_PATH, "SLURM_CONF": self.environment["SLURM_CONF"]}
        said: list[str] = []
        with subprocess.Popen(
            line, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            killer = threading.Timer(timeout_s, _interrupt, [process])
            killer.start()
            assert process.stdout is not None
            for text in process.stdout:
                said.append(text)
                if any(sign in text for sign in HOPELESS):
                    _interrupt(process)
            killer.cancel()
        return subprocess.CompletedProcess(line, process.returncode, "".join(said), "")

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        end_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end_s:
                raise TimeoutError(f"waited {timeout_s} s for {what}\n{self.logs()}")
            time.sleep(0.2)

    def logs(self) -> str:
        """The end of each server's log."""
        return "".join(
            f"--- {log.name}\n{log.read_text()[-1500:]}" for log in sorted((self.folder / "log").iterdir())
        )

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self._server(
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/socket",
            f"--pid-file={folder}/munged.pid",
            f"--seed-file={folder}/seed",
            f"--log-file={self.folder}/log/munged.log",
        )

    def _server(self, *arguments: str | Path) -> None:
        """Servers go to the background by themselves."""
        self.run(*arguments)

    def _idle(self) -> int:
        lines = self.run("sinfo", "--noheader", "--format=%T %D", check=False).splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("idle"))

    @staticmethod
    def _pid(file: Path) -> int:
        try:
            return int(file.read_text())
        except (OSError, ValueError):
            return 0

    def _configuration(self) -> str:
        root, host = self.folder, socket.gethostname().partition(".")[0]
        last_port = self._first_port + self.nodes - 1
        values = {
            "ClusterName": "test",
            # Step names must not meet those of an earlier cluster: MPI names shared memory after them.
            "FirstJobId": str(int(time.time()) % 50_000_000 + 1),
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": str(self._first_port - 1),
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/munge",
            "CredType": "cred/munge",
            # A requeued job waits for its credential to expire.
            "AuthInfo": f"socket={root}/munge/socket,cred_expire=5",
            "StateSaveLocation": f"{root}/state",
            "SlurmdSpoolDir": f"{root}/spool/%n",
            "TmpFS": f"{root}/tmp/%n",
            "SlurmctldPidFile": f"{root}/slurmctld.pid",
            "SlurmdPidFile": f"{root}/slurmd.%n.pid",
            "SlurmctldLogFile": f"{root}/log/slurmctld.log",
            "SlurmdLogFile": f"{root}/log/slurmd.%n.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "JobCompType": "jobcomp/none",
            "SwitchType": "switch/none",
            "MpiDefault": "none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU",
            "SlurmdParameters": "config_overrides",
            "SchedulerParameters": "bf_interval=2,sched_interval=2,batch_sched_delay=0",
            "ReturnToService": "2",
            "JobRequeue": "1",
            "KillOnBadExit": "0",
            "KillWait": "5",
        }
        lines = [f"{name}={value}" for name, value in values.items()]
        lines.append(
            f"NodeName=n[1-{self.nodes}] NodeHostname={host} NodeAddr=127.0.0.1 "
            f"Port=[{self._first_port}-{last_port}] CPUs={self.cpus} State=UNKNOWN"
        )
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        return "\n".join(lines) + "\n"


def _interrupt(process: subprocess.Popen[str]) -> None:
    """End a step and its srun; the tasks get SIGTERM, then SIGKILL."""
    process.send_signal(signal.SIGTERM)


def _wait_or_kill(pid: int) -> None:
    """Wait until a server that was asked to end is gone."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):
            time.sleep(0.1)
            os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)
