"""The landing folder: `landing/<dataset>/<date>/…`, and which files a dataset got on a day."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING

from pyarrow import fs

from pipeline.config import Config
from pipeline.errors import InputError
from pipeline.sources.landing_bytes import locate
from pipeline.sources.landing_rows import MEMBER, LandingFile, landing_file

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset

UNFINISHED = (".tmp", ".part", ".crdownload", ".crc")  # what copying programs call a file until it is whole
READERS = 4  # files that are hashed at once


def find_files(config: Config, dataset: Dataset, day: date) -> list[LandingFile]:
    """The files of a landing day in the order of their paths, with the hashes of their content."""
    with ThreadPoolExecutor(READERS) as pool:
        paths = _paths(config, f"{dataset.name}/{day.isoformat()}")
        return list(pool.map(lambda path: landing_file(config.landing, path, day), paths))


def file_sizes(config: Config, dataset: Dataset, day: date) -> dict[str, int]:
    """The files of a landing day by their paths, with their bytes; none is read."""
    system, root = locate(config.landing)
    paths = _paths(config, f"{dataset.name}/{day.isoformat()}")
    return {path: system.get_file_info(f"{root}/{path}").size for path in paths}


def landing_days(config: Config, dataset: Dataset) -> list[date]:
    """The days for which the dataset has a folder."""
    system, root = locate(f"{config.landing}/{dataset.name}")
    entries = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(day for entry in entries if (day := _as_day(entry.base_name)) is not None)


def same_content(files: Iterable[LandingFile], known: dict[str, str]) -> list[str]:
    """What to say of files whose content came under another path before; `known`: the path of a hash."""
    seen = dict(known)
    said = []
    for file in files:
        other = seen.setdefault(file.hash, file.path)
        if other != file.path:
            said.append(f"{file.path} has the same content as {other}")
    return said


def _paths(config: Config, folder: str) -> list[str]:
    system, root = locate(config.landing)
    found = system.get_file_info(fs.FileSelector(f"{root}/{folder}", recursive=True, allow_not_found=True))
    below = (info.path.removeprefix(root).lstrip("/") for info in found if info.is_file)
    paths = sorted(path for path in below if _is_finished(path.removeprefix(folder)))
    if wrong := next((path for path in paths if MEMBER in path), None):
        raise InputError(
            f"{wrong}: {MEMBER} stands between an archive and its member\nhint: give the file another name"
        )
    return paths


def _is_finished(path: str) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.split("/"))
    return not hidden and not path.endswith(UNFINISHED)


def _as_day(name: str) -> date | None:
    try:
        day = date.fromisoformat(name)
    except ValueError:
        return None
    return day if day.isoformat() == name else None  # 20131007 is one to Python, but no landing folder
