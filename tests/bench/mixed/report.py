"""Report of a mixed load."""

from __future__ import annotations

import os
import sys

import numpy as np

from tests.bench.measure import Row, Section
from tests.bench.mixed.users import (
    CONNECTIONS,
    PAN_EVERY_S,
    SAVE_EVERY_S,
    TILES_A_PAN,
    USERS,
    Load,
)
from tests.bench.processes import Usage, processor_seconds

GALLERY = 20_000
BUDGETS = {"tile": 50, "save": 300, "search": 300}
ROLES = ("web", "worker")
MOMENTS = 13
TITLE, ON_SERVERS = "Mixed load", "Mixed load on PostgreSQL and Redis"
MEMORY = "Memory under the mixed load"
MEMORY_ON_SERVERS = "Memory under the mixed load on PostgreSQL and Redis"


def section_of(load: Load, usage: list[Usage], minutes: float, *, on_servers: bool) -> Section:
    wall = usage[-1].at - usage[0].at
    spent = {
        role: usage[-1].seconds.get(role, 0.0) - usage[0].seconds.get(role, 0.0) for role in ROLES
    }
    busy = usage[-1].machine_busy - usage[0].machine_busy
    own_s = processor_seconds(usage)
    others = busy - own_s - sum(spent.values())
    section = Section(
        ON_SERVERS if on_servers else TITLE,
        f"{USERS} people at once for {minutes:g} min, {CONNECTIONS} connections each: "
        f"{TILES_A_PAN} tiles every {PAN_EVERY_S:g} s, an ROI saved and a search among "
        f"{GALLERY:,} ROIs every {SAVE_EVERY_S:g} s each, while the worker embeds what "
        "is saved; the portal as `make serve` starts it, on "
        f"{'PostgreSQL and Redis, default settings' if on_servers else 'SQLite'}. "
        f"Processor time of the {os.cpu_count()} processors: "
        f"{spent['web'] / wall:.2f} for the web "
        f"processes, {spent['worker'] / wall:.2f} for worker and reaper, {own_s / wall:.2f} for "
        f"the load generator, {others / wall:.2f} for everything else on the machine"
        f"{', the servers among it' if on_servers else ''}.",
    )
    for what, budget in BUDGETS.items():
        times_ms = np.array(load.seconds[what] or [np.nan]) * 1e3
        p50, p95, p99 = np.percentile(times_ms, (50, 95, 99))
        name = f"{what}: p95 of {len(times_ms):,} (median {p50:.1f}, p99 {p99:.0f} ms)"
        section.rows.append(Row(name, float(p95), "ms", budget=f"p95 at most {budget} ms"))
    tiles = len(load.seconds["tile"]) / wall
    section.rows.append(Row("tiles answered", tiles, "tiles/s"))
    section.rows.append(Row("errors", len(load.errors), "answers", budget="0"))
    for error in load.errors[:5]:
        sys.stderr.write(error + "\n")
    return section


def memory_of(usage: list[Usage], minutes: float, *, on_servers: bool) -> Section:
    """Memory of the processes; unlike times it does not depend on the machine's load."""
    section = Section(
        MEMORY_ON_SERVERS if on_servers else MEMORY,
        f"The same people for {minutes:g} min. The web processes grow until their caches are full "
        "and each of their threads has searched; then by the vectors newer than the index file, "
        "at most a twentieth of it, until the next file is built and the old one is closed. Each "
        "also caches the tiles it served, at most 64 MiB. A worker process is replaced at 3 GiB.",
    )
    for role in ROLES:
        early, late = (_memory(part, role) for part in (usage[: len(usage) // 4 + 1], usage[-2:]))
        name = f"memory of the {role} processes at the end ({early:.0f} MiB in the first quarter)"
        section.rows.append(Row(name, late, "MiB", budget="" if role == "worker" else "flat"))
    section.over_time = memory_over_time(usage)
    return section


def memory_over_time(usage: list[Usage]) -> list[list[str]]:
    """A line for each process that lives through: its own memory at some dozen moments."""
    moments = [usage[n] for n in sorted(set(np.linspace(0, len(usage) - 1, MOMENTS).astype(int)))]
    header = "private memory of each process in MiB after (min)"
    table = [[header, *(f"{(moment.at - usage[0].at) / 60:.1f}" for moment in moments)]]
    lasting = set.intersection(*(set(record.own_mib) for record in usage))
    for key in sorted(lasting, key=lambda key: (ROLES.index(key[1]), key[0])):
        table.append([key[1], *(f"{moment.own_mib[key]:.0f}" for moment in moments)])
    return table


def _memory(usage: list[Usage], role: str) -> float:
    return float(np.mean([record.mib.get(role, 0.0) for record in usage]))
