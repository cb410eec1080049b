"""The reward configuration on disk: weights.toml, fillers/*.txt, lexicons/*.txt. Plain text that people edit.

Nothing here scores. `RewardConfig.load` and `.save` are the way in. Errors are `file:line: what; what to do`.
A filler line is `WEIGHT POSITION CATEGORY PHRASE  # note`; `off ` in front mutes it, `re:` before the phrase makes it a
regular expression. A lexicon line is `[WEIGHT] PHRASE  # note`.
"""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rewards.config import CATEGORIES, ConfigError, FillerEntry, RewardConfig
from rewards.phrases import check_regex, parse_line

_NOTE = re.compile(r"\s+#\s(.*)$|\s+#$")
_LINE = re.compile(r"(?P<off>off\s+)?(?P<weight>\S+)\s+(?P<where>\S+)\s+(?P<category>\S+)\s+(?P<phrase>\S.*)$")


def data_directory() -> Path:
    """Where the packaged lists are: `data/rewards` of a checkout, else the copy inside the wheel."""
    root = Path(__file__).resolve().parent.parent
    for candidate in (root / "data" / "rewards", root / "ada_tui" / "_bundled" / "rewards"):
        if (candidate / "weights.toml").is_file():
            return candidate
    raise ConfigError(f"{root}: the packaged reward lists are missing; install the package again")


@lru_cache(maxsize=1)
def default_config() -> RewardConfig:
    return _load(data_directory(), RewardConfig())


def load(directory: Path) -> RewardConfig:
    """See `RewardConfig.load`."""
    if not directory.is_dir():
        raise ConfigError(f"{directory}: no such folder; give the folder that holds weights.toml")
    return _load(directory, default_config())


def load_toml(path: Path) -> RewardConfig:
    """The default configuration with the tables of one weights.toml over it. Raises ConfigError."""
    return _apply_toml(default_config(), path)


def _load(directory: Path, base: RewardConfig) -> RewardConfig:
    config = base
    if (path := directory / "weights.toml").is_file():
        config = _apply_toml(config, path)
    if (folder := directory / "fillers").is_dir():
        config = replace(config, fillers=load_fillers(folder))
    if (folder := directory / "lexicons").is_dir():
        lists = {path.stem: parse_lexicon(_read(path), str(path)) for path in sorted(folder.glob("*.txt"))}
        config = replace(config, lexicons={**config.lexicons, **lists})
    return config


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error


def _apply_toml(base: RewardConfig, path: Path) -> RewardConfig:
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        line = where.group(1) if where else text.count("\n") + 1
        raise ConfigError(f"{path}:{line}: is no valid TOML ({error}); correct that line") from error
    return config_from_toml(base, data, text, str(path))


def config_from_toml(base: RewardConfig, data: Mapping[str, Any], text: str, name: str) -> RewardConfig:
    """A configuration with the tables of a parsed weights.toml over it."""
    known = {"weights", "focus", "parameters", "bands", "aggregation", "scale_rewards", "fuzzy"}
    if unknown := sorted(set(data) - known):
        raise ConfigError(
            f"{name}:{_line_of(text, unknown[0])}: {unknown[0]!r} is unknown; known are {', '.join(sorted(known))}"
        )
    try:
        parameters = dict(base.parameters)
        for key, value in data.get("parameters", {}).items():
            parameters[key] = _number(value, key)
        for kind, band in data.get("bands", {}).items():
            if not isinstance(band, list) or len(band) != 2:
                raise ConfigError(f"{kind}: a band is written [lowest, highest]")
            parameters[f"band.{kind}.lo"], parameters[f"band.{kind}.hi"] = (
                _number(band[0], kind),
                _number(band[1], kind),
            )
            if not 0 <= parameters[f"band.{kind}.lo"] <= parameters[f"band.{kind}.hi"]:
                raise ConfigError(f"{kind}: the lowest number of words is above the highest; swap them")
        weights = {key: _number(value, key) for key, value in data.get("weights", {}).items()}
        focus = {kind: {n: _number(m, n) for n, m in table.items()} for kind, table in data.get("focus", {}).items()}
        return replace(
            base, weights={**base.weights, **weights}, focus={**base.focus, **focus}, parameters=parameters,
            aggregation=data.get("aggregation", base.aggregation), scale_rewards=data.get("scale_rewards",
            base.scale_rewards),
            fuzzy=bool(data.get("fuzzy", base.fuzzy)),
        )  # fmt: skip
    except ConfigError as error:
        quoted = re.search(r"'(\w+)'|^(\w+):", str(error))
        word = (quoted.group(1) or quoted.group(2)) if quoted else ""
        raise ConfigError(f"{name}:{_line_of(text, word)}: {error}") from error
    except AttributeError as error:
        raise ConfigError(
            f"{name}:1: weights, focus, parameters and bands are tables; write [weights] and so on"
        ) from error


def _number(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e6:
        raise ConfigError(f"{key}: {value!r} is not a number; write one")
    return float(value)


def _line_of(text: str, word: str) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if word and re.match(rf"\s*\[?(?:[\w.\"]+\.)?\"?{re.escape(word)}\b", line):
            return number
    return 1


def load_fillers(folder: Path) -> tuple[FillerEntry, ...]:
    """All entries of all `*.txt` files of a folder."""
    entries: dict[str, tuple[FillerEntry, str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for number, line in enumerate(_read(path).splitlines(), 1):
            entry = parse_filler(line, f"{path}:{number}")
            if entry is None:
                continue
            if entry.id in entries:
                raise ConfigError(
                    f"{path}:{number}: the phrase is already in {entries[entry.id][1]}; remove one of both"
                )
            entries[entry.id] = entry, f"{path}:{number}"
    return tuple(entry for entry, _ in entries.values())


def parse_filler(line: str, where: str = "line") -> FillerEntry | None:
    """One line of a filler file; None for a comment or an empty line.

    >>> entry = parse_filler("0.50 close closing re:hope (?:this|that) helps  # very common")
    >>> entry.pattern, entry.regex, entry.note
    ('hope (?:this|that) helps', True, 'very common')
    """
    line = line.strip()
    if not line or line.startswith("#"):
        return None
    note = _NOTE.search(line)
    match = _LINE.match(line[: note.start()] if note else line)
    if not match:
        raise ConfigError(
            f"{where}: has too few columns; write WEIGHT POSITION CATEGORY PHRASE, "
            "e.g. 1.00 open flattery great question"
        )
    try:
        weight = float(match["weight"])
    except ValueError as error:
        raise ConfigError(f"{where}: {match['weight']!r} is no weight; use one of 1.00, 0.75, 0.50, 0.25") from error
    phrase = match["phrase"]
    regex = phrase.startswith("re:")
    try:
        return FillerEntry.make(
            phrase[3:] if regex else phrase, weight, match["where"], match["category"],
            regex=regex, enabled=not match["off"], note=(note.group(1) or "") if note else "",
        )  # fmt: skip
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def parse_lexicon(text: str, name: str = "lexicon") -> tuple[str, ...]:
    """The entries of a lexicon file, comments removed."""
    out: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        note = _NOTE.search(line)
        line = line[: note.start()].strip() if note else line
        _, pattern, regex = parse_line(line)
        if not pattern:
            raise ConfigError(f"{name}:{number}: has no phrase; write one or remove the line")
        if regex and (refusal := check_regex(pattern, lexicon=True)):
            raise ConfigError(f"{name}:{number}: the regex {refusal}; simplify it or write it as a plain phrase")
        out.append(line)
    return tuple(dict.fromkeys(out))


def format_filler(entry: FillerEntry) -> str:
    """The line of an entry; `parse_filler` reads it back."""
    phrase = f"re:{entry.pattern}" if entry.regex else entry.pattern
    line = f"{'' if entry.enabled else 'off '}{entry.weight:.2f} {entry.where:<5} {entry.category:<15} {phrase}"
    return f"{line}  # {entry.note}" if entry.note else line


def save(config: RewardConfig, directory: Path) -> None:
    """See `RewardConfig.save`."""
    write_atomically(directory / "weights.toml", format_toml(config))
    _save_fillers(config.fillers, directory / "fillers")
    for name, lines in config.lexicons.items():
        path = directory / "lexicons" / f"{name}.txt"
        old = path.read_text(encoding="utf-8-sig") if path.is_file() else f"# {name}: one phrase a line\n"
        if parse_lexicon(old, str(path)) != lines:
            write_atomically(path, _merge(old, {line: line for line in lines}, lambda line: _lexicon_key(line)))


def _lexicon_key(line: str) -> str | None:
    entries = parse_lexicon(line)
    return entries[0] if entries else None


def _filler_key(line: str) -> str | None:
    entry = parse_filler(line)
    return entry.id if entry else None


def _merge(old: str, wanted: dict[str, str], key_of: Any) -> str:
    """The old file with its comments: lines that are still wanted rewritten, the others removed, new ones appended."""
    left, lines = dict(wanted), []
    for line in old.splitlines():
        key = key_of(line)
        if key is None:
            lines.append(line)
        elif key in left:
            new = left.pop(key)
            lines.append(line if key_of(new) == key and _same(line, new) else new)
    return "\n".join([*lines, *left.values()]) + "\n"


def _same(line: str, new: str) -> bool:
    return line.split() == new.split()


def _save_fillers(fillers: tuple[FillerEntry, ...], folder: Path) -> None:
    homes: dict[str, Path] = {}
    for path in sorted(folder.glob("*.txt")):
        for line in _read(path).splitlines():
            if (key := _filler_key(line)) is not None:
                homes[key] = path
    wanted: dict[Path, dict[str, str]] = {path: {} for path in homes.values()}
    for category in CATEGORIES:
        wanted.setdefault(folder / f"{category}.txt", {})
    for entry in fillers:
        home = homes.get(entry.id, folder / f"{entry.category}.txt")
        wanted[home][entry.id] = format_filler(entry)
    for path, lines in wanted.items():
        old = _read(path) if path.is_file() else f"# {path.stem}: WEIGHT POSITION CATEGORY PHRASE  # note\n"
        if new := _merge(old, lines, _filler_key):
            write_atomically(path, new)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step; the previous version stays beside it as `.bak`. Equal content is left alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode("utf-8")
    if path.is_file():
        old = path.read_bytes()
        if old == data:
            return
        _replace(path.with_name(path.name + ".bak"), old)
    _replace(path, data)


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def format_toml(config: RewardConfig) -> str:
    """weights.toml for a configuration."""
    lines = [
        "# Weights, focus and numbers of the rewards. Edited here, in the app or by code.", "",
        "# How rewards become advantages: sum_then_normalize (default) or normalize_then_sum (GDPO);",
        "# scaled over the batch, the group, or not at all (none).",
        f'aggregation = "{config.aggregation}"', f'scale_rewards = "{config.scale_rewards}"', "",
        "# Match misspelt filler phrases too.", f"fuzzy = {'true' if config.fuzzy else 'false'}", "",
        "# Only the ratios of the rewards' weights matter; the guard's is absolute. 0 = scored and charted, no pull.",
        "[weights]", *(f"{_key(name)} = {value:g}" for name, value in config.weights.items()), "",
        "# The point of a kind of prompt: multipliers on the weights there. gold = rows with accepted answers.",
    ]  # fmt: skip
    for kind, table in config.focus.items():
        lines += [f"[focus.{_key(kind)}]", *(f"{_key(name)} = {value:g}" for name, value in table.items()), ""]
    lines += ["# Words per kind of prompt when the row names no band and has no reference.", "[bands]"]
    for name, value in config.parameters.items():
        if name.startswith("band.") and name.endswith(".lo"):
            kind = name[5:-3]
            lines.append(f"{_key(kind)} = [{value:g}, {config.parameters[f'band.{kind}.hi']:g}]")
    lines += ["", "# Numbers of the rules.", "[parameters]"]
    lines += [f"{_key(n)} = {v:g}" for n, v in config.parameters.items() if not n.startswith("band.")]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
