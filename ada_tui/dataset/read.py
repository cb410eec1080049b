"""From a file to JSON values with their line numbers, whatever the packing: JSON Lines, one document, gzip, Parquet,
UTF-8 with or without BOM, UTF-16.

Not here: lines that hold no single value (`assemble.py`), what a value means (`formats.py`). Anybody may import it.
Nothing larger than `MAX_LINE` is held; a file of one record a line streams, whatever its size.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import orjson

from ada_tui.dataset.assemble import MAX_LINE, Found, element_lines, is_turns, values
from ada_tui.dataset.problems import Problem

CHUNK = 1 << 20
SAMPLE = 1 << 14


Opener = Callable[[], Iterator[bytes]]
"""Starts reading a file from its beginning, in chunks."""


def records(path: Path) -> Iterator[Found | Problem]:
    """Every JSON value of a file, in order, and every problem met on the way. Never raises for what the file holds."""
    name = str(path)
    if refusal := _refusal(path):
        yield Problem(name, 0, None, *refusal)
        return
    damage: list[str] = []
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic == b"PAR1":
            yield from _parquet(path, name)
        elif magic.startswith(b"\x1f\x8b"):
            yield from _text(lambda: _unzipped(path, damage), name)
        else:
            yield from _text(lambda: _plain(path), name)
    except OSError as error:
        yield Problem(name, 0, None, "unreadable-file", f"the file cannot be read ({error.strerror or error})")
    if damage:
        yield Problem(name, 0, None, "broken-file", f"the compressed file is {damage[0]}")


def _refusal(path: Path) -> tuple[str, str] | None:
    if "\0" in str(path) or not path.exists():
        return "missing-file", "there is no such file"
    if path.is_dir():
        return "directory", "this is a folder, not a chat file"
    return None if path.is_file() else ("unreadable-file", "this is a device or pipe, not a file")


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK), b"")


def _unzipped(path: Path, damage: list[str]) -> Iterator[bytes]:
    """What a gzip file holds, as far as it can be read; `damage` gets a word about why it could not be read further."""
    unpacker = zlib.decompressobj(wbits=31)
    for chunk in _plain(path):
        while chunk:
            try:
                data = unpacker.decompress(chunk, CHUNK)
            except zlib.error:
                damage[:] = ["damaged"]
                return
            if data:
                yield data
            chunk = unpacker.unconsumed_tail
            if unpacker.eof:
                chunk = unpacker.unused_data.lstrip(b"\0")
                unpacker = zlib.decompressobj(wbits=31) if chunk else unpacker
    if not unpacker.eof:
        damage[:] = ["cut off"]


def _text(start: Opener, name: str) -> Iterator[Found | Problem]:
    head = next(start(), b"")[:SAMPLE]
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf\xff\xfe") and all(not chunk.strip() for chunk in start()):
        yield Problem(name, 0, None, "empty-file", "the file is empty")
        return
    encoding, bom = _encoding(head)
    if encoding is None:
        yield Problem(name, 0, None, "binary-file", f"this is no text file ({_guess(head)})")
        return

    def chunks() -> Iterator[bytes]:
        return _utf8(start(), encoding, bom)

    if not _one_value(head[bom:].split(b"\n", 1)[0]):
        data = b"".join(_up_to(MAX_LINE, chunks()))
        if len(data) <= MAX_LINE:
            if data.lstrip().startswith(TEMPLATED):
                yield from _rendered(data)
                return
            try:
                yield from list(_document(data))
                return
            except ValueError:
                pass  # several values, or a broken one: line by line
        del data
    yield from values(_lines(chunks()), name)


TEMPLATED = b"<|im_start|>"


def _rendered(data: bytes) -> Iterator[Found]:
    """The chats of a text file of rendered chats: from each system turn to the next, or between blank lines."""
    text = data.decode("utf-8", "replace")
    border = r"(?=<\|im_start\|>\s*system)" if "<|im_start|>system" in text else r"\n\s*\n(?=<\|im_start\|>)"
    line = 1
    for piece in re.split(f"({border})", text):
        if piece.strip():
            yield line + piece[: len(piece) - len(piece.lstrip())].count("\n"), piece, b"", ()
        line += piece.count("\n")


def _one_value(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except ValueError:
        return False
    return True


def _utf8(chunks: Iterator[bytes], encoding: str, bom: int) -> Iterator[bytes]:
    """The chunks without their byte order mark, as UTF-8 (what claims to be UTF-8 is passed on as it is)."""
    raw = chain((chunk[bom:] for chunk in islice(chunks, 1)), chunks)
    if encoding == "utf-8":
        return raw
    return (text.encode("utf-8", "replace") for text in codecs.iterdecode(raw, encoding, errors="replace"))


def _up_to(limit: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """A little more than `limit` bytes at most."""
    read = 0
    for chunk in chunks:
        yield chunk
        read += len(chunk)
        if read > limit:
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
    half = len(head) // 2
    if 0 in head[:2] and head[:2] != b"\0\0":  # JSON starts with an ASCII character: two bytes, one of them NUL
        if head[1::2].count(0) > 0.4 * half and head[::2].count(0) < 0.1 * half:
            return "utf-16-le", 0
        if head[::2].count(0) > 0.4 * half and head[1::2].count(0) < 0.1 * half:
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
        yield Problem(name, 0, None, "broken-file", f"the Parquet file is damaged after row {number} ({first:.120})")
        return
    if not number:
        yield Problem(name, 0, None, "empty-file", "the Parquet file has no rows")
