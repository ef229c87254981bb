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
from ml.imaging.sandbox import confinement
from ml.types import JsonObject
from portal.archive.services.identity import identity_problem
from portal.archive.storage import s3_settings, the_store
from portal.config.doctor.findings import DoctorFinding, error, ok, warning

LOW_SHARE, LOW_BYTES = 0.10, 20 * 2**30  # several slides have to fit
MODELS_WAIT_S = 300  # a slow machine reads foundation models for minutes
_LIBRARIES = ("openslide-bin", "pyvips", "av", "numpy", "torch")
_INDEX = ("faiss-cpu", "faiss-gpu-cu12")
# In a process of its own: this one never loads torch.
_LOAD = """
import json, sys
from ml.networks.device import chosen_device
from ml.roi import load_encoder
found = {"device": str(chosen_device()), "encoders": {}}
for kind, name in json.loads(sys.argv[1]).items():
    try:
        encoder = load_encoder(name)
        found["encoders"][kind] = {"version": str(encoder.version)}
    except Exception as error:
        found["encoders"][kind] = {"error": f"{type(error).__name__}: {error}"[:300]}
print(json.dumps(found))
"""


def storage() -> list[DoctorFinding]:
    """Writable, with room, and belonging to this database."""
    root = settings.TESSERA_STORAGE
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"ok")
        usage = shutil.disk_usage(root)
    except OSError as failed:
        says = f"{root} cannot be written ({failed.strerror})."
        return [error("storage", says, "Make room, or give this user write access to the folder.")]
    says = f"{usage.free / 2**30:.0f} GiB of {usage.total / 2**30:.0f} GiB are free."
    if usage.free < min(LOW_SHARE * usage.total, LOW_BYTES):
        found = [warning("storage", says, "Make room, or move the storage to a larger volume.")]
    else:
        found = [ok("storage", says)]
    found += objects()
    if problem := identity_problem():
        do = "Point both to the same portal; after a restore: manage.py archive_sweep --adopt"
        found.append(error("storage", problem, do))
    return found


def objects() -> list[DoctorFinding]:
    """The bucket of originals, where there is one: a file is written, read and deleted."""
    bucket = s3_settings()
    if bucket is None:
        return []
    try:
        the_store().check()
    except OSError as failed:
        says = f"The bucket {bucket.bucket} cannot be used: {failed.__cause__ or failed}."
        do = "Correct TESSERA_S3_...; manage.py archive_bucket creates a missing bucket."
        return [error("object storage", says, do)]
    says = f"Files can be written, read and deleted in the bucket {bucket.bucket}."
    return [ok("object storage", says)]


def sandbox() -> list[DoctorFinding]:
    """How the kernel confines the child that opens users' files."""
    try:
        means = confinement()
    except (MlError, OSError, RuntimeError) as failed:
        says = f"The child process that opens files does not start ({type(failed).__name__})."
        return [error("sandbox", says, "Run python -m ml.imaging.sandbox and read its output.")]
    named = ", ".join(
        f"{what} by {by or 'nothing'}"
        for what, by in (
            ("files", means.files),
            ("network", means.network),
            ("programs", means.programs),
        )
    )
    if not means.is_complete:
        do = "Use a kernel with Landlock (5.13 or newer) and allow it in the container."
        return [warning("sandbox", f"Confined only in part: {named}.", do)]
    return [ok("sandbox", f"Confined: {named}.")]


def libraries() -> list[DoctorFinding]:
    """Versions of what reads pixels and finds neighbours."""
    found = {name: _version(name) for name in _LIBRARIES}
    index = next((f"{name} {known}" for name in _INDEX if (known := _version(name))), "")
    missing = [name for name, known in found.items() if not known]
    if missing or not index:
        names = ", ".join(missing + ([] if index else ["faiss"]))
        return [error("libraries", f"Not installed: {names}.", "pip install 'tessera[cpu]'")]
    says = ", ".join(f"{name} {known}" for name, known in found.items())
    return [ok("libraries", f"{says}, {index}.")]


def models() -> list[DoctorFinding]:
    """The device, and each encoder as a worker would load it."""
    try:
        found = _loaded()
    except (OSError, ValueError, subprocess.SubprocessError) as failed:
        says = f"The networks cannot be loaded: {_last_line(failed)}."
        return [error("device", says, "Correct TESSERA_DEVICE; see: python -m ml embed --help")]
    device = found["device"]
    wanted = os.environ.get("TESSERA_DEVICE", "auto")
    lines = [ok("device", f"{device} (TESSERA_DEVICE={wanted}).")]
    for kind, state in found["encoders"].items():
        name = settings.TESSERA_ENCODERS[kind]
        if "error" in state:
            do = f"Correct TESSERA_ENCODER_{kind.upper()}, or put its weights into TESSERA_MODELS."
            lines.append(error("encoders", f"{kind}: {name}: {state['error']}.", do))
        else:
            lines.append(ok("encoders", f"{kind}: {name}, version {state['version']}."))
    return lines


def _loaded() -> JsonObject:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, json.dumps(settings.TESSERA_ENCODERS)],
        capture_output=True,
        text=True,
        timeout=MODELS_WAIT_S,
        check=True,
    )
    found: JsonObject = json.loads(done.stdout.splitlines()[-1])
    return found


def _last_line(failed: Exception) -> str:
    """What the child said last, without the trace before it."""
    said = getattr(failed, "stderr", None) or str(failed)
    return str(said).strip().splitlines()[-1].rstrip(".")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
