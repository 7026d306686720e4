"""A landing file as streams of bytes: plain, gzip or the members of a zip, on any file system that Arrow knows."""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

BLOCK = 1 << 22
GZIP, ZIP = b"\x1f\x8b", b"PK"
MEMBER, DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"


class Unreadable(Exception):
    """From here on a file cannot be read; the message is the `problem` of its last row."""


@dataclass(frozen=True)
class Member:
    """A stream of bytes in a landing file: all of it, or a member of the archive that it is."""

    name: str | None  # in the archive
    blocks: Iterator[bytes]  # which may end in Unreadable


def locate(uri: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path there."""
    if "://" not in uri:
        return fs.LocalFileSystem(), uri
    # Spark's name for S3 is not Arrow's.
    system, path = fs.FileSystem.from_uri("s3" + uri.removeprefix("s3a") if uri.startswith("s3a://") else uri)
    return system, path


def file_hash(uri: str) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    system, path = locate(uri)
    digest = hashlib.sha256()
    with system.open_input_stream(path, compression=None) as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """The file's raw bytes, seekable."""
    system, path = locate(uri)
    with system.open_input_file(path) as stream:
        yield stream


def members(stream: Any) -> Iterator[Member]:
    """The streams in a file, told by its first bytes, not by its name."""
    start = stream.read(4)
    stream.seek(0)
    if start[:2] == GZIP:
        yield Member(None, _gunzipped(_blocks(stream)))
    elif start[:2] == ZIP:
        yield from _unzipped(stream)
    else:
        yield Member(None, _blocks(stream))


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(BLOCK):
        yield block


def _gunzipped(compressed: Iterator[bytes]) -> Iterator[bytes]:
    inflate = None
    for data in compressed:
        while data:
            if inflate is None:
                data = data.lstrip(b"\0")  # padding after a member
                if not data:
                    break
                inflate = zlib.decompressobj(wbits=31)
            yield from _inflated(inflate, data)
            data = inflate.unused_data
            if inflate.eof:
                inflate = None
    if inflate is not None:
        raise Unreadable("the file ends early: its gzip stream is cut off")


def _inflated(inflate: Any, data: bytes) -> Iterator[bytes]:
    """What comes out, in blocks of bounded size: a small file can hold a very large one."""
    try:
        while (text := inflate.decompress(data, BLOCK)) or inflate.unconsumed_tail:
            yield text
            data = inflate.unconsumed_tail
    except zlib.error:
        raise Unreadable("the file is damaged: its compressed data make no sense from here") from None


def _unzipped(stream: Any) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(stream)
    except zipfile.BadZipFile:
        stream.seek(0)
        yield from _salvaged(stream)
        return
    with archive:
        for info in archive.infolist():
            # Macs put a second member with a file's own properties beside it.
            if not info.is_dir() and not info.filename.startswith("__MACOSX/"):
                yield Member(info.filename, _unzipped_member(archive, info))


def _unzipped_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(info) as member:
            yield from _blocks(member)
    except (zipfile.BadZipFile, zlib.error):
        raise Unreadable("the file is damaged: its compressed data make no sense from here") from None
    except EOFError:
        raise Unreadable("the file ends early: its zip archive is cut off") from None
    except RuntimeError:  # NotImplementedError among them
        raise Unreadable("the file is damaged: encrypted, or compressed in a way that is not known") from None


def _salvaged(stream: Any) -> Iterator[Member]:
    """The members of an archive whose directory, at its end, is missing; each says itself where it begins."""
    cut_off = Unreadable("the file ends early: its zip archive is cut off")
    while len(head := stream.read(30)) == 30 and head[:4] == MEMBER:
        flags, method = struct.unpack_from("<HH", head, 6)
        name_length, extra_length = struct.unpack_from("<HH", head, 26)
        name = stream.read(name_length).decode("utf-8", "replace")
        stream.seek(extra_length, 1)
        if method != zipfile.ZIP_DEFLATED or flags & 1:
            break
        inflate = zlib.decompressobj(wbits=-15)
        yield Member(name, _salvaged_member(stream, inflate, cut_off))
        if not inflate.eof:
            return
        stream.seek(-len(inflate.unused_data), 1)
        if flags & 8:  # the sizes come after the data, with or without a mark before them
            stream.seek(12 if stream.read(4) == DESCRIPTOR else 8, 1)
    yield Member(None, _raise(cut_off))


def _salvaged_member(stream: Any, inflate: Any, cut_off: Unreadable) -> Iterator[bytes]:
    while not inflate.eof:
        if not (data := stream.read(BLOCK)):
            raise cut_off
        yield from _inflated(inflate, data)


def _raise(error: Unreadable) -> Iterator[bytes]:
    raise error
    yield b""
