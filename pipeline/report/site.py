"""Writing the site: pages and their data into a folder beside it, then put in place, so that no reader sees a half.

    index.html, engines.html, quality.html, queries/<query>.html
    assets/<digest>/   style and scripts; assets/plotly-<version>.min.js
    data/<build>/      what the scripts of one build's pages load
    quality/           Great Expectations' pages, which are not ours

A page from disk may not fetch, so that data are scripts. Pages name the data of their own build, and the data of the
build before stay for those who have an older page open.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.errors import SetupError

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = ("report.css", "report.js", "answers.js", "engines.js", "quarantine.js")
UNFINISHED = ".report-"
FRONT = "index.html"


class Site:
    """One build of the site, in a folder of its own until it is put in place."""

    def __init__(self, folder: Path, built_at: datetime) -> None:
        self.folder = folder
        self.build = f"{built_at:%Y%m%dT%H%M%S%f}"
        self.assets = f"assets/{_digest()}"
        self.plotly = f"assets/plotly-{_plotly_version()}.min.js"
        self.environment = Environment(
            loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self.environment.filters |= {"number": number, "minute": minute, "counted": counted}
        self.environment.globals |= {
            "built_at": minute(built_at), "assets": self.assets, "plotly": self.plotly
        }  # fmt: skip

    def page(self, path: str, template: str, **context: Any) -> None:
        """Write a page; `root` is where the site begins, as the page sees it."""
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        text = self.environment.get_template(template).render(root=root, path=path, **context)
        _write(self.folder / path, text)

    def data(self, name: str, value: Any) -> str:
        """Write a script that gives a value to the page's own scripts; its path below the site."""
        path = f"data/{self.build}/{name}.js"
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        _write(self.folder / path, f"trends.put({json.dumps(name)},{text});\n")
        return path

    def write_assets(self) -> None:
        """Style and scripts."""
        from plotly.offline import get_plotlyjs

        for name in ASSETS:
            _write(self.folder / self.assets / name, (TEMPLATES / name).read_text("utf-8"))
        _write(self.folder / self.plotly, get_plotlyjs())


@contextmanager
def building(out: Path, built_at: datetime) -> Iterator[Site]:
    """A site to fill, which takes the place of the one in `out` at the end; not if anything goes wrong."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".report.lock").open("w")
    except OSError as error:
        raise SetupError(
            f"{out}: the site cannot be written there ({error.strerror})\nhint: --out names another folder"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Nobody else builds now: what is there was left by a build that was killed.
        for left in out.glob(f"{UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else None
        folder = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=out))
        try:
            site = Site(folder, built_at)
            yield site
            site.write_assets()
            _put(site, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _put(site: Site, out: Path) -> None:
    """What pages need first, then the pages, the front page last; then what no page needs any more goes."""
    pages = sorted(path.relative_to(site.folder) for path in site.folder.glob("*.html"))
    pages = [path for path in pages if path.name != FRONT]
    pages += sorted(path.relative_to(site.folder) for path in site.folder.glob("queries/*.html"))
    needed = [path.relative_to(site.folder) for path in site.folder.glob("data/**/*.js")]
    needed += [path.relative_to(site.folder) for path in site.folder.glob("assets/**/*") if path.is_file()]
    for path in (*needed, *pages, Path(FRONT)):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (site.folder / path).replace(out / path)
    for page in (out / "queries").glob("*.html"):
        if page.relative_to(out) not in pages:
            page.unlink(missing_ok=True)
    builds = sorted(path for path in (out / "data").glob("*") if path.is_dir())
    styles = [path for path in (out / "assets").iterdir() if path.name not in (site.assets[7:], site.plotly[7:])]
    for old in (*builds[:-2], *styles):
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _digest() -> str:
    return hashlib.sha256(b"".join((TEMPLATES / name).read_bytes() for name in ASSETS)).hexdigest()[:10]


def _plotly_version() -> str:
    from plotly.offline import get_plotlyjs_version

    return str(get_plotlyjs_version())


# -------------------------------------------------------------------------------------------------------------- filters


def number(value: float | None) -> str:
    """A number for people.

    >>> number(1234567), number(0.12346), number(None)
    ('1,234,567', '0.1235', '')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def minute(value: datetime | date | None) -> str:
    """A time in UTC, to the minute.

    >>> minute(datetime(2030, 1, 7, 9, 30, tzinfo=UTC))
    '2030-01-07 09:30'
    """
    if value is None:
        return ""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}" if isinstance(value, datetime) else f"{value}"


def counted(value: int, name: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{value:,} {name}{'' if value == 1 else 's'}"
