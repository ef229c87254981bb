"""Storage, sandbox, libraries, device and encoders of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings

from ml.errors import MlError
from ml.imaging.sandbox.parent import confinement
from ml.types import JsonObject
from portal.archive.services.identity import identity_problem
from portal.archive.storage.files import s3_settings, the_store
from portal.operations.doctor.findings import DoctorFinding, error, ok, warning

LOW_SHARE, LOW_BYTES = 0.10, 20 * 2**30  # several slides have to fit
MODELS_WAIT_S = 300  # slow machines need minutes to read foundation models
_LIBRARIES = ("openslide-bin", "pyvips", "av", "numpy", "torch")
_INDEX = ("faiss-cpu", "faiss-gpu-cu12")
# In another process, as this one never loads torch.
_LOAD = """
import json, sys
from ml.networks.device import select_device
from ml.roi import load_encoder
found = {"device": str(select_device()), "encoders": {}}
for kind, name in json.loads(sys.argv[1]).items():
    try:
        encoder = load_encoder(name)
        found["encoders"][kind] = {"version": str(encoder.version)}
    except Exception as error:
        found["encoders"][kind] = {"error": f"{type(error).__name__}: {error}"[:300]}
print(json.dumps(found))
"""


def storage() -> list[DoctorFinding]:
    """Check that the storage is writable, has space, and belongs to this database."""
    root = settings.TESSERA_STORAGE
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"ok")
        usage = shutil.disk_usage(root)
    except OSError as exc:
        message = f"{root} cannot be written ({exc.strerror})."
        return [
            error("storage", message, "Make room, or give this user write access to the folder.")
        ]
    message = f"{usage.free / 2**30:.0f} GiB of {usage.total / 2**30:.0f} GiB are free."
    if usage.free < min(LOW_SHARE * usage.total, LOW_BYTES):
        findings = [
            warning("storage", message, "Make room, or move the storage to a larger volume.")
        ]
    else:
        findings = [ok("storage", message)]
    findings += objects()
    if problem := identity_problem():
        remedy = "Point both to the same portal; after a restore: manage.py archive_sweep --adopt"
        findings.append(error("storage", problem, remedy))
    return findings


def objects() -> list[DoctorFinding]:
    """Check the bucket of originals, if any, by writing, reading and deleting a file."""
    bucket = s3_settings()
    if bucket is None:
        return []
    try:
        the_store().check()
    except OSError as exc:
        message = f"The bucket {bucket.bucket} cannot be used: {exc.__cause__ or exc}."
        remedy = "Correct TESSERA_S3_...; manage.py archive_bucket creates a missing bucket."
        return [error("object storage", message, remedy)]
    message = f"Files can be written, read and deleted in the bucket {bucket.bucket}."
    return [ok("object storage", message)]


def sandbox() -> list[DoctorFinding]:
    """Check that the kernel confines the process that opens users' files."""
    try:
        means = confinement()
    except (MlError, OSError, RuntimeError) as exc:
        message = f"The child process that opens files does not start ({type(exc).__name__})."
        return [error("sandbox", message, "Run python -m ml.imaging.sandbox and read its output.")]
    limits = ", ".join(
        f"{resource} by {by or 'nothing'}"
        for resource, by in (
            ("files", means.files),
            ("network", means.network),
            ("programs", means.programs),
        )
    )
    if not means.is_complete:
        remedy = "Use a kernel with Landlock (5.13 or newer) and allow it in the container."
        return [warning("sandbox", f"Confined only in part: {limits}.", remedy)]
    return [ok("sandbox", f"Confined: {limits}.")]


def libraries() -> list[DoctorFinding]:
    """Report versions of the libraries for images and vectors."""
    versions = {name: _version(name) for name in _LIBRARIES}
    index = next((f"{name} {version}" for name in _INDEX if (version := _version(name))), "")
    missing = [name for name, version in versions.items() if not version]
    if missing == ["torch"] and index:
        message = "torch is not installed: this installation serves pages; no worker can run on it."
        return [warning("libraries", message, "Workers need pip install 'tessera[worker]'.")]
    if missing or not index:
        names = ", ".join(missing + ([] if index else ["faiss"]))
        return [error("libraries", f"Not installed: {names}.", "pip install 'tessera[cpu,worker]'")]
    message = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [ok("libraries", f"{message}, {index}.")]


def models() -> list[DoctorFinding]:
    """Check the device, and load each encoder as a worker does."""
    try:
        loaded = _load_models()
    except (OSError, ValueError, subprocess.SubprocessError) as exc:
        message = f"The networks cannot be loaded: {_last_line(exc)}."
        return [error("device", message, "Correct TESSERA_DEVICE; see: python -m ml embed --help")]
    device = loaded["device"]
    setting = os.environ.get("TESSERA_DEVICE", "auto")
    lines = [ok("device", f"{device} (TESSERA_DEVICE={setting}).")]
    for kind, state in loaded["encoders"].items():
        name = settings.TESSERA_ENCODERS[kind]
        if "error" in state:
            remedy = (
                f"Correct TESSERA_ENCODER_{kind.upper()}, or put its weights into TESSERA_MODELS."
            )
            lines.append(error("encoders", f"{kind}: {name}: {state['error']}.", remedy))
        else:
            lines.append(ok("encoders", f"{kind}: {name}, version {state['version']}."))
    return lines


def _load_models() -> JsonObject:
    process = subprocess.run(
        [sys.executable, "-c", _LOAD, json.dumps(settings.TESSERA_ENCODERS)],
        capture_output=True,
        text=True,
        timeout=MODELS_WAIT_S,
        check=True,
    )
    document: JsonObject = json.loads(process.stdout.splitlines()[-1])
    return document


def _last_line(exc: Exception) -> str:
    """Last line of the child's error output, without the traceback."""
    output = getattr(exc, "stderr", None) or str(exc)
    return str(output).strip().splitlines()[-1].rstrip(".")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
