"""From a file to JSON values with their line numbers, whatever the packing: JSON Lines, one document, gzip, Parquet,
UTF-8 with or without BOM, UTF-16.

Not here: lines that hold no single value (`assemble.py`), what a value means (`formats.py`). Anybody may import it.
Nothing larger than `MAX_LINE` is held; a file of one record a line streams, whatever its size.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import orjson

from ada_tui.dataset.assemble import MAX_LINE, Found, element_lines, is_turns, values
from ada_tui.dataset.problems import Problem

CHUNK = 1 << 20
SAMPLE = 1 << 14


def records(path: Path) -> Iterator[Found | Problem]:
    """Every JSON value of a file, in order, and every problem met on the way. Never raises for what the file holds."""
    name = str(path)
    try:
        if path.is_dir():
            yield Problem(name, 0, None, "directory", "this is a folder, not a chat file")
            return
        with path.open("rb") as file:
            head = file.read(SAMPLE)
            file.seek(0)
            if head.startswith(b"\x1f\x8b"):
                with gzip.open(file) as unpacked:
                    yield from _text(unpacked, name)  # type: ignore[arg-type]
            elif head.startswith(b"PAR1"):
                yield from _parquet(path, name)
            else:
                yield from _text(file, name)
    except FileNotFoundError:
        yield Problem(name, 0, None, "missing-file", "there is no such file")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield Problem(name, 0, None, "broken-file", f"the compressed file is damaged or cut off ({error})")
    except OSError as error:
        yield Problem(name, 0, None, "unreadable-file", f"the file cannot be read ({error.strerror or error})")
    except ValueError as error:  # a path with a NUL in it
        yield Problem(name, 0, None, "missing-file", f"there is no such file ({error})")


def _text(file: IO[bytes], name: str) -> Iterator[Found | Problem]:
    head = file.read(SAMPLE)
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe") and not file.read(1):
        yield Problem(name, 0, None, "empty-file", "the file is empty")
        return
    encoding, bom = _encoding(head)
    if encoding is None:
        yield Problem(name, 0, None, "binary-file", f"this is no text file ({_guess(head)})")
        return
    codec = None if encoding == "utf-8" else encoding
    if not _one_value(head[bom:].split(b"\n", 1)[0]):
        file.seek(bom)
        data = b"".join(_chunks(file, codec, MAX_LINE))
        if len(data) <= MAX_LINE:
            try:
                yield from list(_document(data))
                return
            except ValueError:
                pass  # several values, or a broken one: line by line
    file.seek(bom)
    yield from values(_lines(_chunks(file, codec)), name)


def _one_value(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except ValueError:
        return False
    return True


def _chunks(file: IO[bytes], codec: str | None, limit: int | None = None) -> Iterator[bytes]:
    """The file as UTF-8, from where it stands; a little more than `limit` bytes at most."""
    raw = iter(lambda: file.read(CHUNK), b"")
    texts = (
        (text.encode("utf-8", "replace") for text in codecs.iterdecode(raw, codec, errors="replace")) if codec else raw
    )
    read = 0
    for chunk in texts:
        yield chunk
        read += len(chunk)
        if limit is not None and read > limit:
            return


_BOMS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip


def _encoding(head: bytes) -> tuple[str | None, int]:
    """(encoding, bytes of the byte order mark); None = not text."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding, len(bom)
    half = max(1, len(head) // 2)
    if len(head) >= 4 and head[1::2].count(0) > 0.4 * half and head[::2].count(0) < 0.1 * half:
        return "utf-16-le", 0
    if len(head) >= 4 and head[::2].count(0) > 0.4 * half and head[1::2].count(0) < 0.1 * half:
        return "utf-16-be", 0
    if head.lstrip()[:1] in b'{["':
        return "utf-8", 0  # JSON with a stray control character in it is still JSON
    odd = sum(head.count(byte) for byte in (*range(9), *range(14, 32)))
    return (None, 0) if odd > len(head) // 100 or _guess(head) != "unknown bytes" else ("utf-8", 0)


_MAGIC = (
    (b"PK\x03\x04", "a zip archive: unpack it first"), (b"BZh", "bzip2: unpack it first"),
    (b"\xfd7zXZ", "xz: unpack it first"), (b"\x28\xb5\x2f\xfd", "zstandard: unpack it first"),
    (b"ARROW1", "an Arrow file: save it as Parquet"), (b"SQLite format 3", "an SQLite database"),
    (b"GGUF", "a GGUF model"), (b"%PDF", "a PDF"), (b"\x89PNG", "a picture"),
)  # fmt: skip


def _guess(head: bytes) -> str:
    return next((what for magic, what in _MAGIC if head.startswith(magic)), "unknown bytes")


def _lines(chunks: Iterator[bytes]) -> Iterator[tuple[int, bytes | int]]:
    """(number, bytes) of every line without its newline; of an over-long one (number, its size in bytes)."""
    number, rest, size = 1, b"", 0
    for chunk in chunks:
        if size:  # inside an over-long line: count, keep nothing
            end = chunk.find(b"\n")
            if end < 0:
                size += len(chunk)
                continue
            yield number, size + end
            number, size, chunk = number + 1, 0, chunk[end + 1 :]
        parts = chunk.split(b"\n")
        parts[0] = rest + parts[0]
        for part in parts[:-1]:
            yield number, part
            number += 1
        rest = parts[-1]
        if len(rest) > MAX_LINE:
            size, rest = len(rest), b""
    if size:
        yield number, size
    elif rest:
        yield number, rest


def _document(data: bytes) -> Iterator[Found]:
    """The records of a file that is one JSON value, with the lines they start on. Raises ValueError when it is none."""
    value = orjson.loads(data)
    if not isinstance(value, list) or is_turns(value):
        yield 1 + data[: len(data) - len(data.lstrip())].count(b"\n"), value, b"", ()
        return
    for line, item in zip(element_lines(data.decode("utf-8"), value), value, strict=True):
        yield line, item, b"", ()


def _parquet(path: Path, name: str) -> Iterator[Found | Problem]:
    """Every row of a Parquet file; the line is the number of the row. Columns that are null count as absent."""
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=2048):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {key: value for key, value in row.items() if value is not None}, b"", ()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        yield Problem(name, number, None, "broken-file", f"the Parquet file is damaged ({first:.120})")
    if not number:
        yield Problem(name, 0, None, "empty-file", "the Parquet file has no rows")
