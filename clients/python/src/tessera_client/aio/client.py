"""The client of a portal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tessera_client import request_rules
from tessera_client.aio.events import Events
from tessera_client.aio.rois import Rois
from tessera_client.aio.uploads import Uploads
from tessera_client.concurrency import a_call, a_sleep
from tessera_client.errors import ConflictError, InvalidError, JobError
from tessera_client.files import LocalFile, Progress, transfer_key
from tessera_client.models import (
    Canvas,
    Case,
    Job,
    Label,
    Membership,
    Mosaic,
    Roi,
    Slide,
    Upload,
    Video,
    id_of,
)
from tessera_client.parsing import parse
from tessera_client.results import Learning, RegionMap, Report, Similar

OnJob = Callable[[Job], None]


class AsyncClient(Uploads, Rois, Events):
    """Client of a portal with one API token.

    Args:
        url: of the portal, ``https://tessera.example.org``. token: from the page *API tokens*.
        timeout_s: of each step of a request: connecting, sending, waiting for an answer.
        transfers: file with the unfinished uploads; by default in the cache folder.
        transport: an httpx transport, for tests and special networks.
    Raises:
        TesseraError: by every method, as one of the classes in ``errors``.
    """

    # Labs, cases, labels

    async def memberships(self) -> tuple[Membership, ...]:
        """The labs that the token gives access to, and your role in each."""
        return tuple(parse(Membership, one) for one in (await self.get("me/"))["memberships"])

    def cases(self, **filters: Any) -> AsyncIterator[Case]:
        """Cases, newest first; filters are ``organ``, ``diagnosis``, ``q`` and so on."""
        return self._all(Case, "cases/", filters)

    async def case(self, case: Case | str) -> Case:
        """One case by its id."""
        return await self._one(Case, f"cases/{id_of(case)}/")

    async def create_case(self, accession: str, **fields: Any) -> Case:
        """Create a case; fields are ``lab`` (if you are in several), ``patient_key`` and so on."""
        data = {"accession": accession, **fields}
        return parse(Case, (await self.request("POST", "cases/", json=data)).json())

    async def export_case(
        self, case: Case | str, path: str | Path, *, on_job: OnJob | None = None
    ) -> Path:
        """Write a case of your lab to a zip, as an RO-Crate; managers only."""
        address = f"cases/{id_of(case)}/export/"
        await self.wait((await self.request("POST", address)).json()["id"], on_job)
        return await self._download(address, path, {})

    async def import_case(
        self,
        path: str | Path,
        *,
        lab: str | None = None,
        progress: Progress | bool = False,
        on_job: OnJob | None = None,
    ) -> Case:
        """Import an exported case with its ids; managers only.

        The file is sent in pieces, as by ``upload``. If this process ends before it is done, or
        the import is refused, the same call continues where it stopped. The images of the case are
        prepared after this returns.

        Args:
            path: of the zip.
            lab: id of the lab to import into, if you are in several.
            progress: as of ``upload``.
            on_job: as of ``wait``, for the job that imports.
        Raises:
            InvalidError: ``lab`` is needed.
            JobError: the case was refused; ``code`` says why.
        """
        file = await a_call(LocalFile.of, path)
        if lab is None:
            memberships = await self.memberships()
            if len(memberships) != 1:
                raise InvalidError("Name the lab by its id: the token is for several.", code="lab")
            lab = memberships[0].lab.id
        key = transfer_key(self.url, lab, file)
        address = await self._send_file(key, file, {"lab": lab}, progress)
        if (await self._one(Upload, address)).case is None:
            await self.wait((await self.request("POST", f"{address}import/")).json()["id"], on_job)
        case = (await self._one(Upload, address)).case
        self._transfers.put(key, None)
        return await self.case(str(case))

    def labels(self, **filters: Any) -> AsyncIterator[Label]:
        """Labels of your labs."""
        return self._all(Label, "labels/", filters)

    async def create_label(self, name: str, **fields: Any) -> Label:
        """Create a label; managers only."""
        return parse(
            Label, (await self.request("POST", "labels/", json={"name": name, **fields})).json()
        )

    # Slides, videos, canvases

    def slides(self, **filters: Any) -> AsyncIterator[Slide]:
        """Slides and still images; filters are ``case``, ``lab``, ``state`` and ``stain``."""
        return self._all(Slide, "slides/", filters)

    def videos(self, **filters: Any) -> AsyncIterator[Video]:
        """Videos; filters are ``case``, ``lab`` and ``state``."""
        return self._all(Video, "videos/", filters)

    async def slide(self, slide: Slide | str) -> Slide:
        """One slide by its id."""
        return await self._one(Slide, f"slides/{id_of(slide)}/")

    async def video(self, video: Video | str) -> Video:
        """One video by its id."""
        return await self._one(Video, f"videos/{id_of(video)}/")

    async def canvas(self, canvas: Canvas | str) -> Canvas:
        """One canvas by its id."""
        return await self._one(Canvas, f"canvases/{id_of(canvas)}/")

    async def tile(self, canvas: Canvas | str, z: int, x: int, y: int) -> bytes:
        """A JPEG tile; z 0 is the coarsest level."""
        return (
            await self.request("GET", f"canvases/{id_of(canvas)}/tiles/{z}/{x}/{y}.jpg")
        ).content

    async def thumbnail(self, canvas: Canvas | str) -> bytes:
        """A small JPEG of a canvas."""
        return (await self.request("GET", f"canvases/{id_of(canvas)}/thumbnail.jpg")).content

    # Jobs

    async def job(self, job: Job | str) -> Job:
        """One job by its id, in its current state."""
        return await self._one(Job, f"jobs/{id_of(job)}/")

    async def wait(self, job: Job | str, on_job: OnJob | None = None) -> Job:
        """Wait until a job ends; ``on_job`` is called with the job each time it is read.

        Raises:
            JobError: it failed or was cancelled.
        """
        pause = request_rules.POLL_S
        while not (found := await self.job(job)).is_over:
            if on_job:
                on_job(found)
            await a_sleep(pause)
            pause = min(pause * request_rules.POLL_GROWTH, request_rules.SLOWEST_POLL_S)
        if on_job:
            on_job(found)
        if found.state != "succeeded":
            failure = found.error or {}
            raise JobError(
                failure.get("message") or f"{found.title}: {found.state}",
                code=failure.get("code", found.state),
            )
        return found

    # Similar regions

    async def search(
        self,
        roi: Roi | str,
        k: int = 20,
        *,
        liked: Sequence[Roi | str] = (),
        unliked: Sequence[Roi | str] = (),
        filters: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Similar:
        """The ``k`` most similar regions; waits until the ROI is embedded.

        Args:
            liked, unliked: ROIs that the results should, and should not, resemble.
            filters: ``organ``, ``label``, ``review_state`` and so on.
            options: ``by_case``, ``facets``, ``exclude_same_patient``, ``diffuse`` and so on.
        """
        data: dict[str, Any] = {"roi": id_of(roi), "k": k, **options}
        if filters:
            data["filters"] = dict(filters)
        for name, examples in (("liked", liked), ("unliked", unliked)):
            if examples:
                data[name] = [id_of(one) for one in examples]
        for _ in range(request_rules.MAX_ATTEMPTS):
            answer = await self.request("POST", "search/", json=data)
            if answer.status_code != httpx.codes.ACCEPTED:
                return parse(Similar, answer.json())
            await self.wait(answer.json()["job"]["id"])
        raise ConflictError("The ROI changes faster than it can be embedded.")

    async def explain(self, roi: Roi | str, other: Roi | str) -> Any:
        """Explain why a search with ``roi`` finds ``other``; waits for the API's answer."""
        path = f"rois/{id_of(roi)}/similar/{id_of(other)}/"
        for _ in range(request_rules.MAX_ATTEMPTS):
            answer = await self.request("GET", path)
            if answer.status_code != httpx.codes.ACCEPTED:
                return answer.json()
            await self.wait(answer.json()["job"]["id"])
        raise ConflictError("The ROI changes faster than the match can be explained.")

    # Reports

    def reports(self, **filters: Any) -> AsyncIterator[Report]:
        """Reports of searches, newest first."""
        return self._all(Report, "reports/", filters)

    async def create_report(self, roi: Roi | str, **options: Any) -> Report:
        """Search with an ROI and save the answer; waits until the ROI is embedded.

        Args:
            options: those of ``search``, ``filters`` among them.
        """
        data = {"roi": id_of(roi), **options}
        for _ in range(request_rules.MAX_ATTEMPTS):
            answer = await self.request("POST", "reports/", json=data)
            if answer.status_code != httpx.codes.ACCEPTED:
                return parse(Report, answer.json())
            await self.wait(answer.json()["job"]["id"])
        raise ConflictError("The ROI changes faster than it can be embedded.")

    async def download_report(self, report: Report | str, path: str | Path) -> Path:
        """Write a report to a file, as PDF."""
        return await self._download(f"reports/{id_of(report)}/pdf/", path, {})

    async def delete_report(self, report: Report | str) -> None:
        """Delete a report."""
        await self.request("DELETE", f"reports/{id_of(report)}/")

    # Maps of all regions

    async def draw_map(
        self, lab: str | None = None, kind: str = "histology", on_job: OnJob | None = None
    ) -> RegionMap:
        """Compute a map of all regions of a lab by similarity, and wait for it."""
        data = {"kind": kind} | ({"lab": lab} if lab else {})
        job = (await self.request("POST", "maps/", json=data)).json()
        await self.wait(job["id"], on_job)
        done = await self.get(f"jobs/{job['id']}/")
        return await self._one(RegionMap, f"maps/{done['result']['map']}/")

    async def map_part(self, region_map: RegionMap | str, part: str, **params: Any) -> Any:
        """``points``, ``near-duplicates`` or ``unlike`` of a map, as the API answers."""
        return await self.get(f"maps/{id_of(region_map)}/{part}/", **params)

    # Learning from a lab's archive, for managers

    def learnings(self) -> AsyncIterator[Learning]:
        """Metrics and encoders learned from the archives of your labs, newest first."""
        return self._all(Learning, "learnings/", {})

    async def learn(self, *, on_job: OnJob | None = None, **fields: Any) -> Learning:
        """Learn from a lab's labels, judgements and pixels, and wait for the comparison.

        Args:
            fields: ``lab`` (an id, if you manage several), ``kind``, ``method`` (``metric`` or
                ``encoder``), and for an encoder the largest ``steps`` and ``hours``.
        """
        accepted = (await self.request("POST", "learnings/", json=fields)).json()
        if accepted["job"]:
            await self.wait(accepted["job"], on_job)
        return await self._one(Learning, f"learnings/{accepted['id']}/")

    async def promote(self, learning: Learning | str, *, on_job: OnJob | None = None) -> Learning:
        """Use the learned metric or encoder for the lab's searches, and wait until it is in use."""
        path = f"learnings/{id_of(learning)}/"
        await self.wait((await self.request("POST", f"{path}promote/")).json()["id"], on_job)
        return await self._one(Learning, path)

    async def roll_back(self, learning: Learning | str) -> Learning:
        """Return the lab's searches to the metric and encoder used before."""
        answer = await self.request("POST", f"learnings/{id_of(learning)}/roll-back/")
        return parse(Learning, answer.json())

    # Mosaics

    def mosaics(self, **filters: Any) -> AsyncIterator[Mosaic]:
        """Mosaics; filters are ``case``, ``video``, ``canvas`` and ``state``."""
        return self._all(Mosaic, "mosaics/", filters)

    async def mosaic(self, mosaic: Mosaic | str) -> Mosaic:
        """One mosaic by its id."""
        return await self._one(Mosaic, f"mosaics/{id_of(mosaic)}/")

    async def create_mosaic(
        self, video: Video | str, *, on_job: OnJob | None = None, **config: Any
    ) -> Mosaic:
        """Stitch a video, or a span of it, and wait for the mosaic.

        Args:
            config: ``start_s``, ``end_s``, ``step``, ``motion_model``; each may be left out.
        """
        data = {"video": id_of(video), "config": config}
        accepted = (await self.request("POST", "mosaics/", json=data)).json()
        if accepted["job"]:
            await self.wait(accepted["job"]["id"], on_job)
        return await self.mosaic(accepted["id"])

    async def download_mosaic(
        self, mosaic: Mosaic | str, path: str | Path, *, file_name: str = "image.png", **params: Any
    ) -> Path:
        """Write ``image.png`` (``size``), ``pyramid.tif`` or ``manifest.json`` to a file."""
        return await self._download(f"mosaics/{id_of(mosaic)}/{file_name}", path, params)
