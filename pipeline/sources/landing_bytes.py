"""A landing file as streams of bytes: plain, gzip or the members of a zip, on any file system that Arrow knows."""

from __future__ import annotations

import hashlib
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs

BLOCK = 1 << 22
GZIP, ZIP, EMPTY_ZIP = b"\x1f\x8b", b"PK", b"PK\x05\x06"
# Of a zip member: the marks before it and after it, the bytes before its name, and flags.
MEMBER, DESCRIPTOR, HEAD, ENCRYPTED, SIZES_AFTER = b"PK\x03\x04", b"PK\x07\x08", 30, 1, 8

DAMAGED = "the file is damaged: its compressed data make no sense from here"
CUT_OFF = "the file ends early: its zip archive is cut off"


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
    elif start[:2] == ZIP and start != EMPTY_ZIP:
        yield from _unzipped(stream)
    elif start != EMPTY_ZIP:
        yield Member(None, _blocks(stream))


def _blocks(stream: Any, size: int = sys.maxsize) -> Iterator[bytes]:
    while block := stream.read(min(BLOCK, size)):
        size -= len(block)
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
    while True:
        before = inflate.copy()
        try:
            text = inflate.decompress(data, BLOCK)
        except zlib.error:
            yield from _until_error(before, data)
            raise Unreadable(DAMAGED) from None
        data = inflate.unconsumed_tail
        if not text and not data:
            return
        yield text


def _until_error(inflate: Any, data: bytes) -> Iterator[bytes]:
    """What comes out before the byte that makes no sense, which zlib keeps to itself when it meets that byte."""
    step = max(1, len(data) // 64)
    for start in range(0, len(data), step):
        before = inflate.copy()
        try:
            yield inflate.decompress(data[start : start + step])
        except zlib.error:
            if step > 1:
                yield from _until_error(before, data[start : start + step])
            return


def _unzipped(stream: Any) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, pa.ArrowInvalid):  # Arrow's, where the file is shorter than a directory
        stream.seek(0)
        yield from _salvaged(stream)
        return
    for info in archive.infolist():
        # Macs put a second member with a file's own properties beside it.
        if not info.is_dir() and not info.filename.startswith("__MACOSX/"):
            yield Member(info.filename, _unzipped_member(stream, info))


def _unzipped_member(stream: Any, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.flag_bits & ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable("the file cannot be read: encrypted, or compressed in a way that is not known")
    stream.seek(info.header_offset)
    _name_in(stream, stream.read(HEAD))
    compressed = _blocks(stream, info.compress_size)
    checksum = 0
    for block in _deflated(compressed) if info.compress_type == zipfile.ZIP_DEFLATED else compressed:
        checksum = zlib.crc32(block, checksum)
        yield block
    if checksum != info.CRC:
        raise Unreadable(DAMAGED)


def _deflated(compressed: Iterator[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=-15)
    for data in compressed:
        yield from _inflated(inflate, data)
    if not inflate.eof:
        raise Unreadable(CUT_OFF)


def _salvaged(stream: Any) -> Iterator[Member]:
    """The members of an archive whose directory, at its end, is missing; each says itself where it begins."""
    while len(head := stream.read(HEAD)) == HEAD and head[:4] == MEMBER:
        flags, method = struct.unpack_from("<HH", head, 6)
        name = _name_in(stream, head)
        if method != zipfile.ZIP_DEFLATED or flags & ENCRYPTED:
            break
        inflate = zlib.decompressobj(wbits=-15)
        yield Member(name, _salvaged_member(stream, inflate))
        if not inflate.eof:
            return
        stream.seek(-len(inflate.unused_data), 1)
        if flags & SIZES_AFTER:  # with or without a mark before them
            stream.seek(12 if stream.read(4) == DESCRIPTOR else 8, 1)
    yield Member(None, _cut_off())


def _name_in(stream: Any, head: bytes) -> str:
    """A member's name; leaves the stream where the member's data begin."""
    name_length, extra_length = struct.unpack_from("<HH", head, 26)
    name: bytes = stream.read(name_length)
    stream.seek(extra_length, 1)
    return name.decode("utf-8", "replace")


def _salvaged_member(stream: Any, inflate: Any) -> Iterator[bytes]:
    while not inflate.eof:
        if not (data := stream.read(BLOCK)):
            raise Unreadable(CUT_OFF)
        yield from _inflated(inflate, data)


def _cut_off() -> Iterator[bytes]:
    raise Unreadable(CUT_OFF)
    yield b""
