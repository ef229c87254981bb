"""A real Milvus for tests marked ``services``: the PyPI package's server.

The package's pins would constrain the product, so it has an environment of its own, in
``build/milvus-server``. ``python -m tests.milvus_server`` makes it, and so does the first test that
needs it where the services are required.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import venv
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from ml.index.milvus.server import MilvusServer
from tests.processes import wait_until_served

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "milvus-server"
SERVER = HOME / "server" / "bin"
PACKAGE = "milvus==2.3.5"
_STARTED_S = 120.0
_PREPARE = """
import json, sys
import milvus
server = milvus.MilvusServer(milvus.MilvusServerConfig(data_dir=sys.argv[1]))
server.config.RANDOM_PORT_START = int(sys.argv[2])
for name in server.config.configurable_items:
    if name.endswith("_port"):
        server.config.configurable_items[name][1] = 0
server.config.resolve()
port, sock = server.config.resolve_port(int(sys.argv[2]) + 100)
sock.close()
etcd = server.config.get("etcd_port")
print(json.dumps({"port": server.listen_port, "health": port, "etcd": etcd}))
"""
_QUICK = {  # what Milvus looks at every second in production
    "timeTickInterval": 20,
    "checkInterval": 100,
    "distPullInterval": 50,
    "checkHandoffInterval": 200,
}


class RunningMilvus:
    """A server of its own data folder. It can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        first = 20_000 + os.getpid() % 200 * 200
        arguments = [str(folder), str(first)]
        output = subprocess.run(
            [HOME / "bin" / "python", "-c", _PREPARE, *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        ports = json.loads(output)
        self.url, self._health = f"http://127.0.0.1:{ports['port']}", ports["health"]
        config = folder / "configs" / "milvus.yaml"
        text = config.read_text()
        for name, value in _QUICK.items():
            text = re.sub(rf"\b{name}: \d+", f"{name}: {value}", text)
        config.write_text(re.sub(r"(?m)^  level: info", "  level: warn", text))
        clients, peers = (f"http://127.0.0.1:{ports['etcd'] + more}" for more in (0, 101))
        self._etcd = folder / "configs" / "etcd.yaml"  # or it would take etcd's own ports
        self._etcd.write_text(
            f"name: default\ndata-dir: {folder / 'data' / 'etcd.data'}\n"
            f"listen-client-urls: {clients}\nadvertise-client-urls: {clients}\n"
            f"listen-peer-urls: {peers}\ninitial-advertise-peer-urls: {peers}\n"
            f"initial-cluster: default={peers}\nlogger: zap\nlog-level: error\n"
        )
        self.start()

    @property
    def server(self) -> MilvusServer:
        """Client of the server, as the product uses it."""
        return MilvusServer(self.url)

    def start(self) -> None:
        """Start it, and wait until it serves."""
        about = {
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(self._health),
            "MILVUS_RUN_DIR": str(self._folder / "run"),
            "ETCD_CONFIG_PATH": str(self._etcd),
            "LD_LIBRARY_PATH": str(SERVER),
        }
        with (self._folder / "logs" / "output.log").open("ab") as log:
            self.process = subprocess.Popen(
                [SERVER / "milvus", "run", "standalone"],
                cwd=self._folder,
                env=os.environ | about,
                stdout=log,
                stderr=log,
            )
        address = f"http://127.0.0.1:{self._health}/healthz"
        try:
            wait_until_served(self.process, address, within_s=_STARTED_S)
        except RuntimeError as error:
            log_text = (self._folder / "logs" / "output.log").read_text()[-2000:]
            raise RuntimeError(f"Milvus did not start: {log_text}") from error

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def started(folder: Path) -> RunningMilvus:
    """A server in ``folder``. Skips where it cannot be had, or fails where CI insists."""
    try:
        _installed()
        return RunningMilvus(folder)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        if os.environ.get("TESSERA_REQUIRE_SERVICES") == "1":
            pytest.fail(f"Milvus must be here: {error}")
        pytest.skip(f"Milvus cannot be started here: {error}")


def _installed() -> None:
    """Install the server once; processes that begin together wait for the first."""
    HOME.parent.mkdir(exist_ok=True)
    with (HOME.parent / "milvus-server.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (HOME / "installed").exists():
            if os.environ.get("TESSERA_REQUIRE_SERVICES") != "1":
                raise RuntimeError(f"{HOME} is missing; python -m tests.milvus_server installs it")
            install()


def install() -> None:
    """Make the environment of the server."""
    venv.create(HOME, with_pip=True, clear=True)
    pip = [str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, PACKAGE, "setuptools<81"], check=True)
    unpack = f"import milvus; milvus._initialize_data_files({str(SERVER.parent)!r})"
    subprocess.run([HOME / "bin" / "python", "-c", unpack], check=True)
    (HOME / "installed").touch()


if __name__ == "__main__":
    install()
    sys.exit(0)
