"""Originals in a bucket of S3-compatible object storage, with local copies of those in use."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from portal.archive.storage.fetched import Fetched
from portal.archive.storage.store import DamagedError, StoreAwayError, Stored

logger = logging.getLogger(__name__)

ATTEMPTS = 4  # without progress, before a download fails
WAIT_S = 0.5  # after the first broken answer; twice as long each time
READ_BYTES = 2**20  # of an answer at a time
PARTS_WAIT = timedelta(days=1)  # longer than the largest file takes to be sent
_GONE = ("404", "NoSuchKey", "NotFound", "NoSuchUpload")
_NOT_OFFERED = ("NotImplemented", "501", "MethodNotAllowed")
_REFUSED = 403
_KEYS = "check TESSERA_S3_ACCESS_KEY and TESSERA_S3_SECRET_KEY, and what they may do"
_ADVICE = {
    "RequestTimeTooSkewed": "set the clock of this machine",
    "ExpiredToken": "renew the credentials of this machine",
}
REFUSED = (
    "The object storage of the portal refuses its request. Nothing was changed. Tell the IT people "
    "of your lab: the log says why."
)
AWAY = "The object storage of the portal does not answer. Nothing was changed; try again later."


@dataclass(frozen=True, slots=True)
class S3Settings:
    """Location of the bucket; without keys, boto3 uses those of the machine's role."""

    bucket: str
    endpoint: str = ""  # empty: Amazon's own
    region: str = ""
    access_key: str = ""
    secret_key: str = ""
    cache_bytes: int = 200 * 2**30
    wait_s: float = 30.0  # for an answer, and between two parts of one
    attempts: int = 3  # of one call, before the storage counts as unavailable


S3Answer = dict[str, Any]
"""Answer of boto3: plain values, and a body to read from."""


class S3Client(Protocol):
    """The part of boto3's client that is used; boto3 has no types."""

    def get_object(self, **params: Any) -> S3Answer: ...
    def put_object(self, **params: Any) -> S3Answer: ...
    def head_object(self, **params: Any) -> S3Answer: ...
    def delete_object(self, **params: Any) -> S3Answer: ...
    def abort_multipart_upload(self, **params: Any) -> S3Answer: ...
    def upload_file(self, filename: str, bucket: str, key: str) -> None: ...
    def copy(self, source: dict[str, str], bucket: str, key: str) -> None: ...
    def get_paginator(self, name: str) -> Any: ...


class S3Store:
    """See ``Store``. Bytes are checked against the SHA-256 that is their name when they come."""

    def __init__(self, settings: S3Settings, copies: Path) -> None:
        self._bucket = settings.bucket
        self._client = _client(settings)
        self._copies = Fetched(copies, settings.cache_bytes)

    def send(self, received: Path, name: str) -> None:
        """Send a file in parts, several at once, each with a checksum."""
        size_bytes = received.stat().st_size
        stored = self.stat(name)
        if stored is None or stored.size_bytes != size_bytes:
            with self._asking(name):
                self._client.upload_file(str(received), self._bucket, name)

    def put(self, received: Path, name: str) -> None:
        """Sent now, unless it was sent ahead; the file becomes the local copy."""
        self.send(received, name)
        self._copies.keep(received, name)

    def write(self, name: str, data: bytes) -> None:
        """An object is replaced as a whole."""
        with self._asking(name):
            self._client.put_object(Bucket=self._bucket, Key=name, Body=data)

    def read(self, name: str) -> bytes:
        """Read from the bucket without a local copy."""
        with self._asking(name):
            answer = self._client.get_object(Bucket=self._bucket, Key=name)
            return bytes(answer["Body"].read())

    def local(self, name: str) -> Path:
        """The local copy, fetched where there is none."""
        if cached := self._copies.find(name):
            return cached
        stored = self.stat(name)
        if stored is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._copies.fetch(name, stored.size_bytes, partial(self._download, stored))

    def stat(self, name: str) -> Stored | None:
        """State of the object in the bucket, whether there is a copy or not."""
        try:
            with self._asking(name):
                head = self._client.head_object(Bucket=self._bucket, Key=name)
        except FileNotFoundError:
            return None
        return _stored_object(name, head["ContentLength"], head["LastModified"])

    def files(self, folder: str) -> Iterator[Stored]:
        """Yield the objects of a folder, listed in pages of 1,000."""
        for page in self._pages(Prefix=f"{folder}/"):
            for item in page.get("Contents", ()):
                yield _stored_object(item["Key"], item["Size"], item["LastModified"])

    def folders(self, folder: str) -> list[str]:
        """List the common prefixes of the objects."""
        pages = self._pages(Prefix=f"{folder}/", Delimiter="/")
        prefixes = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", ())]
        return sorted(prefix.rstrip("/").rsplit("/", 1)[-1] for prefix in prefixes)

    def move(self, name: str, target: str) -> None:
        """The storage copies by itself; a failure in between leaves both."""
        with self._asking(name):
            source = {"Bucket": self._bucket, "Key": name}
            self._client.copy(source, self._bucket, target)
        self.delete(name)

    def delete(self, name: str) -> bool:
        """The copy first: what is gone from the bucket is not shown from here.

        Parts of it that a killed process left half sent go as well.
        """
        was_there = self._copies.drop(name)
        was_there |= self.stat(name) is not None
        with self._asking(name):
            self._client.delete_object(Bucket=self._bucket, Key=name)
        self._forget_parts(name)
        return was_there

    def delete_folder(self, folder: str) -> None:
        """One by one: some servers take no lists."""
        for stored in list(self.files(folder)):
            self.delete(stored.name)

    def is_intact(self, name: str) -> bool:
        """Download the object, even if it is cached, and compare its hash."""
        stored = self.stat(name)
        if stored is None:
            return False
        with Path(os.devnull).open("wb") as sink:
            try:
                self._download(stored, sink)
            except DamagedError:
                return False
        return True

    def tidy(self) -> int:
        """Other machines delete as well, and cannot reach the copies of this one.

        Parts of files that were begun more than ``PARTS_WAIT`` ago and never completed go too: they
        are in no list of files, and would cost room for ever.
        """
        self._forget_parts("", begun_before=datetime.now(UTC) - PARTS_WAIT)
        return sum(
            self._copies.drop(name) for name in self._copies.names() if self.stat(name) is None
        )

    def check(self) -> None:
        """Check by writing a file to a separate folder."""
        name = f"check/{uuid.uuid4()}"
        self.write(name, b"ok")
        try:
            if self.read(name) != b"ok":
                raise StoreAwayError("The object storage returns other bytes than were stored.")
        finally:
            self.delete(name)

    def _download(self, stored: Stored, file: BinaryIO) -> None:
        """Go on where an answer broke off; refuse bytes that are not those of the name."""
        hashed, at, failure_count = hashlib.sha256(), 0, 0
        while at < stored.size_bytes:
            before, reason = at, "it is shorter than announced"
            try:
                for chunk in self._chunks(stored, at):
                    file.write(chunk)
                    hashed.update(chunk)
                    at += len(chunk)
            except StoreAwayError as error:
                reason = str(error.__cause__ or error)
            failure_count = 0 if at > before else failure_count + 1
            if failure_count == ATTEMPTS:
                raise StoreAwayError(AWAY)
            if at < stored.size_bytes:
                logger.warning("%s broke off at byte %d (%s); continuing", stored.name, at, reason)
                time.sleep(WAIT_S * 2**failure_count)
        if at != stored.size_bytes or hashed.hexdigest() != stored.name.rsplit("/", 1)[-1]:
            logger.error("%s was damaged when read from the object storage", stored.name)
            raise DamagedError(
                "The file was damaged when it was read from the object storage of the portal."
            )

    def _chunks(self, stored: Stored, at: int) -> Iterator[bytes]:
        with self._asking(stored.name):
            answer = self._client.get_object(
                Bucket=self._bucket, Key=stored.name, Range=f"bytes={at}-"
            )
            body = answer["Body"]
            while chunk := body.read(READ_BYTES):
                yield chunk

    def _pages(self, **params: str) -> Iterator[S3Answer]:
        with self._asking(params["Prefix"]):
            pages = self._client.get_paginator("list_objects_v2")
            yield from pages.paginate(Bucket=self._bucket, **params)

    def _forget_parts(self, prefix: str, *, begun_before: datetime | None = None) -> None:
        """Drop parts of unfinished files; nothing where the storage keeps no list of them."""
        from botocore.exceptions import ClientError

        pages = self._client.get_paginator("list_multipart_uploads")
        with self._asking(prefix):
            try:
                uploads = [
                    upload
                    for page in pages.paginate(Bucket=self._bucket, Prefix=prefix)
                    for upload in page.get("Uploads", ())
                ]
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _NOT_OFFERED:
                    return
                raise
            for entry in uploads:
                if begun_before is None or entry["Initiated"] < begun_before:
                    with (
                        suppress(FileNotFoundError),
                        self._asking(entry["Key"]),
                    ):  # it ended in the meantime
                        self._client.abort_multipart_upload(
                            Bucket=self._bucket, Key=entry["Key"], UploadId=entry["UploadId"]
                        )

    @contextmanager
    def _asking(self, name: str) -> Iterator[None]:
        """Translate errors of boto3: missing object or unreachable server."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _GONE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from error
            raise _unreachable(name, error) from error
        except (BotoCoreError, Boto3Error) as error:
            raise _unreachable(name, error) from error


def bucket_make(settings: S3Settings) -> bool:
    """Make the bucket if it is missing; returns whether it was."""
    from botocore.exceptions import ClientError

    client = cast(Any, _client(settings))
    try:
        client.head_bucket(Bucket=settings.bucket)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") not in _GONE:
            raise _unreachable(settings.bucket, error) from error
        client.create_bucket(Bucket=settings.bucket)
        return True
    return False


def _unreachable(name: str, error: Exception) -> StoreAwayError:
    """The error as people see it; details go to the log."""
    answer = getattr(error, "response", None) or {}
    if answer.get("ResponseMetadata", {}).get("HTTPStatusCode") == _REFUSED:
        code = str(answer.get("Error", {}).get("Code", ""))
        logger.error("object storage: %s: refused (%s): %s", name, code, _ADVICE.get(code, _KEYS))
        return StoreAwayError(REFUSED)
    logger.error("object storage: %s: %s", name, error)
    return StoreAwayError(AWAY)


def _stored_object(name: str, size_bytes: int, changed: datetime) -> Stored:
    return Stored(name, size_bytes, changed.timestamp())


def _client(settings: S3Settings) -> S3Client:
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=5,
        read_timeout=settings.wait_s,
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        s3={"addressing_style": "path"} if settings.endpoint else {},
    )
    client = boto3.client(
        "s3",
        endpoint_url=settings.endpoint or None,
        region_name=settings.region or None,
        aws_access_key_id=settings.access_key or None,
        aws_secret_access_key=settings.secret_key or None,
        config=config,
    )
    return cast(S3Client, client)
