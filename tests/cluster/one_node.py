"""A Slurm of one node, this machine, that leaves nothing behind: all of its state is in one folder.

`python tests/cluster/one_node.py COMMAND …` runs a command under such a cluster, for a look by hand.
"""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
REMEDY = "Debian and Ubuntu have them: apt-get install slurmctld slurmd slurm-client munge"
PARTITION = "one"

# No cgroups, no accounting, no mail. A job that is put back into the queue waits as long as a credential is
# valid (cred_expire), and a job that is cancelled is killed after KillWait.
SETTINGS = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=2
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName={partition} Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing() -> list[str]:
    """The programs of Slurm that this machine lacks; Debian keeps daemons where users do not look."""
    return [name for name in PROGRAMS if _program(name) is None]


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


class OneNode:
    """The three daemons, started by `with`; at the end all jobs are cancelled and the daemons stopped.

    Args:
        folder: an empty one, for keys, state and logs.
        cpus: how many the node says it has, each for one task at a time.
    """

    def __init__(self, folder: Path, cpus: int = 2) -> None:
        self.folder, self.name = folder, socket.gethostname().split(".")[0]
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        folder.chmod(0o755)  # munged wants a folder that only its owner may write
        facts = {"host": self.name, "user": getpass.getuser(), "cpus": cpus}
        settings = SETTINGS.format(**facts, ports=_free_ports(2), folder=folder, partition=PARTITION)
        (folder / "slurm.conf").write_text(settings, encoding="utf-8")
        self._daemons: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> "OneNode":
        try:
            self.start("munged")
            wait_until((self.folder / "munge.socket").exists, "munged opens its socket")
            self.start("slurmctld")
            self.start("slurmd")
            wait_until(lambda: "idle" in self.said("sinfo", "--noheader", "--format=%T"), "the node is idle")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, name: str) -> None:
        """Start a daemon in the foreground, as a child of this process."""
        f = self.folder
        own = {
            "socket": "socket",
            "key-file": "key",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        munged = ["--foreground", "--force", *(f"--{option}={f}/munge.{end}" for option, end in own.items())]
        options = {"munged": munged, "slurmctld": ["-D", "-f", f / "slurm.conf"]}
        options["slurmd"] = ["-D", "-f", f / "slurm.conf", "-N", self.name]
        with (f / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                [_program(name), *options[name]], stdout=out, stderr=out, env=os.environ | self.environment
            )

    def kill(self, name: str) -> None:
        """End a daemon as a crash would."""
        self._daemons[name].kill()
        self._daemons.pop(name).wait()

    def said(self, *command: str) -> str:
        """What a command of Slurm prints; empty where it fails."""
        done = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def queue(self) -> dict[str, str]:
        """The jobs in the queue and their states, such as `{"7_0": "RUNNING"}`."""
        listed = self.said("squeue", "--array", "--noheader", "--format=%i %T")
        return dict(line.split() for line in listed.splitlines())

    def resumed(self) -> bool:
        """True; a node that was taken out of service is put back into it, as its keeper would."""
        if "drain" in self.said("sinfo", "--noheader", "--format=%T"):
            self.said("scontrol", "update", f"NodeName={self.name}", "State=RESUME")
        return True

    def empty(self) -> None:
        """Cancel what is in the queue, and wait a while until it is out of it."""
        self.said("scancel", "--user", getpass.getuser())
        with suppress(AssertionError):
            wait_until(lambda: self.resumed() and not self.queue(), "the queue is empty", seconds=30)

    def stop(self) -> None:
        """Cancel what is in the queue, then end the daemons; one that does not leave is killed."""
        if "slurmctld" in self._daemons:
            self.empty()
        for name in ("slurmd", "slurmctld", "munged"):
            if daemon := self._daemons.pop(name, None):
                daemon.terminate()
                try:
                    daemon.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()


def wait_until(true: Callable[[], object], what: str, seconds: float = 180.0) -> None:
    """Look again and again until it is true; an AssertionError says what was waited for in vain."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:g} s in vain until {what}"
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main(command: Sequence[str]) -> int:
    if lacking := missing():
        print(f"not found: {', '.join(lacking)}. {REMEDY}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="one-node-") as folder, OneNode(Path(folder)) as cluster:
        return subprocess.run(command, env=os.environ | cluster.environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["bash"]))
