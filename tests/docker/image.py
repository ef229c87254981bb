"""The image's root as containers see it: a role is a process tree of its own in there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def compose() -> dict[str, dict]:
    """``docker/compose.yaml``."""
    services: dict[str, dict] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    return services


def rendered(text: str, values: dict[str, str]) -> str:
    """``${NAME:-default}`` and ``${NAME:?message}`` as compose fills them in."""

    def one(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        assert name in values or match["kind"] != ":?", f"{name} is not set"
        return values.get(name) or default

    return re.sub(r"\$\{(?P<name>\w+)(?:(?P<kind>:[-?])(?P<default>[^}]*))?\}", one, text)


@dataclass
class Image:
    """A built image and the containers that run from it.

    Attributes:
        root: its root folder; config: its environment, user and command.
        data: shown as ``/data`` to all.
        values: content of an ``.env`` file next to the compose file.
        lent: variables replaced after that, for servers that run outside the containers.
    """

    root: Path
    config: dict[str, list[str]]
    data: Path
    values: dict[str, str]
    lent: dict[str, str]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def built(cls, folder: Path, data: Path, **more: dict[str, str]) -> Image:
        """Build it (``buildah.sh``)."""
        script = subprocess.run(
            [HERE / "buildah.sh", folder], stdout=subprocess.PIPE, text=True, check=True
        )
        config = json.loads((folder / "config.json").read_text())["OCIv1"]["config"]
        os.chown(data, 10001, 10001)
        return cls(Path(script.stdout.strip()), config, data, more["values"], more["lent"])

    def environment(self, service: str) -> dict[str, str]:
        """The image's, then that of compose, and nothing of this process."""
        values = dict(line.split("=", 1) for line in self.config["Env"])
        named = compose()["services"][service].get("environment", {})
        values |= {name: rendered(str(value), self.values) for name, value in named.items()}
        return values | self.lent

    def command(self, service: str, *arguments: str) -> list[str]:
        """In a namespace of its own, as that service."""
        enter = [HERE / "enter.sh", self.root, self.data, service]
        return [str(word) for word in (*enter, *arguments)]

    def run(self, service: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A container of its own that ends."""
        return subprocess.run(
            self.command(service, *self.config["Entrypoint"], *arguments),
            env=self.environment(service),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )

    def start(self, service: str, log: Path, *more: str) -> None:
        """A role that stays."""
        command = compose()["services"][service]["command"]
        with log.open("wb") as output:
            self.running[service] = subprocess.Popen(
                self.command(service, *self.config["Entrypoint"], *command, *more),
                env=self.environment(service),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def exec(self, service: str, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Within the running container, as a health check is."""
        inner = self.first(service)
        return subprocess.run(
            [
                *("nsenter", "--target", str(inner.pid), "--mount", "--pid", "--uts", "--ipc"),
                *("chroot", str(self.root), "setpriv", "--reuid", "10001", "--regid", "10001"),
                *("--clear-groups", "--no-new-privs", "--bounding-set=-all", "sh", "-c"),
                *('cd /app && exec "$@"', "exec", *command),
            ],
            env=self.environment(service),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def first(self, service: str) -> psutil.Process:
        """Its process 1, as this machine numbers it."""
        return psutil.Process(self.running[service].pid).children()[0]

    def stop(self, service: str) -> int:
        """SIGTERM to process 1, as engines do; returns its exit code, -9 after a minute."""
        process = self.running.pop(service)
        with suppress(IndexError, psutil.NoSuchProcess):
            psutil.Process(process.pid).children()[0].send_signal(signal.SIGTERM)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return -9

    def drop(self) -> None:
        """Stop what runs."""
        for service in list(self.running):
            self.stop(service)
