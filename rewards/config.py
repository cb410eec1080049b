"""RewardConfig: everything a person can turn about the rewards, as one immutable value.

It holds no rule. Loading and saving files is in `rewards.files`; this module does no I/O of its own. Everybody may
import it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rewards.phrases import Lexicon, PhraseIndex, check_regex, lexicon
from rewards.types import KINDS

CATEGORIES = ("flattery", "throat-clearing", "disclaimer", "closing", "signpost", "hype", "structure")
"""Categories of filler."""

POSITIONS = ("open", "close", "any")
"""Where a filler phrase counts."""

WEIGHTS = (1.0, 0.75, 0.5, 0.25)
"""Weights of a filler phrase; 0.5 and 0.25 are soft (a long text may hold a few)."""

AGGREGATIONS = ("sum_then_normalize", "normalize_then_sum")
SCALES = ("batch", "group", "none")


class ConfigError(ValueError):
    """A configuration that cannot be used. The message says where, what, and what to do."""


@dataclass(frozen=True, slots=True)
class FillerEntry:
    """One phrase that costs the `filler` reward.

    >>> FillerEntry.make("great question", 1.0, "open", "flattery").id
    'flattery/great-question'
    """

    id: str
    pattern: str
    regex: bool = False
    weight: float = 1.0
    where: str = "any"
    category: str = "hype"
    enabled: bool = True
    note: str = ""

    @classmethod
    def make(
        cls, pattern: str, weight: float = 1.0, where: str = "any", category: str = "hype", *,
        regex: bool = False, enabled: bool = True, note: str = "",
    ) -> FillerEntry:  # fmt: skip
        """A checked entry whose id is made of its category and pattern.

        Raises:
            ConfigError: something is not allowed; the message says what and what to do.
        """
        pattern = " ".join(pattern.split()) if not regex else pattern.strip()
        if not pattern:
            raise ConfigError("the phrase is empty; write it after the category")
        if weight not in WEIGHTS:
            raise ConfigError(f"weight {weight:g} is unknown; use one of 1.00, 0.75, 0.50, 0.25")
        if where not in POSITIONS:
            raise ConfigError(f"position {where!r} is unknown; use one of {', '.join(POSITIONS)}")
        if category not in CATEGORIES:
            raise ConfigError(f"category {category!r} is unknown; use one of {', '.join(CATEGORIES)}")
        if regex and (refusal := check_regex(pattern)):
            raise ConfigError(f"the regex {refusal}; simplify it or write it as a plain phrase")
        slug = "-".join("".join(c if c.isalnum() else " " for c in pattern.lower()).split()) or f"u{ord(pattern[0]):x}"
        return cls(f"{category}/{slug}", pattern, regex, weight, where, category, enabled, note)


class Compiled:
    """The phrase lists of a configuration, ready to match. Shared by all configurations that have the same lists."""

    def __init__(
        self, fillers: tuple[FillerEntry, ...], lexicons: tuple[tuple[str, tuple[str, ...]], ...], fuzzy: bool
    ) -> None:
        self.fillers = tuple(entry for entry in fillers if entry.enabled)
        self.filler_index = PhraseIndex([(entry.pattern, entry.regex) for entry in self.fillers])
        self.fuzzy = fuzzy
        self.lexicon_lines = dict(lexicons)
        self._lexicons: dict[str, Lexicon] = {}

    def lexicon(self, name: str) -> Lexicon:
        """The compiled lexicon of that name; an absent one is empty."""
        found = self._lexicons.get(name)
        if found is None:
            found = self._lexicons[name] = lexicon(self.lexicon_lines.get(name, ()))
        return found


@lru_cache(maxsize=16)
def _compile(
    fillers: tuple[FillerEntry, ...], lexicons: tuple[tuple[str, tuple[str, ...]], ...], fuzzy: bool
) -> Compiled:
    return Compiled(fillers, lexicons, fuzzy)


@dataclass(frozen=True, eq=True)
class RewardConfig:
    """Weights, focus, parameters and phrase lists. Change it with `with_weight`, `with_fillers` or
    `dataclasses.replace`.

    >>> RewardConfig(weights={"length": 1.0}).with_weight("length", 2).weights["length"]
    2.0
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight per reward (ratios matter) and of "guard" (absolute). 0 = scored and charted, no pull."""
    focus: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Per kind: multiplier of a reward's weight there. "gold" applies to every row with accepted answers."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the rules, named like `filler.rate` or `band.ack.hi`."""
    fillers: tuple[FillerEntry, ...] = ()
    lexicons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Word lists of the detectors, each entry as written in its file."""
    aggregation: str = "sum_then_normalize"
    scale_rewards: str = "batch"
    fuzzy: bool = False
    """Match misspelt filler phrases too (needs rapidfuzz)."""

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise ConfigError(f"aggregation {self.aggregation!r} is unknown; use one of {', '.join(AGGREGATIONS)}")
        if self.scale_rewards not in SCALES:
            raise ConfigError(f"scale_rewards {self.scale_rewards!r} is unknown; use one of {', '.join(SCALES)}")
        for name, value in self.weights.items():
            _check_number(f"weight of {name!r}", value)
        for kind, table in self.focus.items():
            if kind != "gold" and kind not in KINDS:
                raise ConfigError(f"focus has the unknown kind {kind!r}; use 'gold' or one of {', '.join(KINDS)}")
            for name, value in table.items():
                _check_number(f"focus of {name!r} on {kind!r}", value)

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: self.__dict__[f.name] for f in fields(self)}

    @classmethod
    def default(cls) -> RewardConfig:
        """The configuration that ships with the product."""
        from rewards.files import default_config

        return default_config()

    @classmethod
    def load(cls, directory: str | Path) -> RewardConfig:
        """Read weights.toml, fillers/*.txt and lexicons/*.txt; what is absent comes from the default.

        Raises:
            ConfigError: with file, line, what is wrong and what to do.
        """
        from rewards.files import load

        return load(Path(directory))

    def save(self, directory: str | Path) -> None:
        """Write it all back, atomically, keeping comments and the previous version of each changed file as `.bak`."""
        from rewards.files import save

        save(self, Path(directory))

    @cached_property
    def compiled(self) -> Compiled:
        return _compile(self.fillers, tuple(sorted(self.lexicons.items())), self.fuzzy)

    @cached_property
    def multipliers(self) -> dict[tuple[str, bool], tuple[tuple[str, float], ...]]:
        """Filled by `combine`: weight x focus per (kind, has gold)."""
        return {}

    def lexicon(self, name: str) -> Lexicon:
        return self.compiled.lexicon(name)

    def number(self, name: str, default: float) -> float:
        """A parameter, or the rule's own default."""
        return self.parameters.get(name, default)

    def with_weight(self, name: str, value: float) -> RewardConfig:
        """The same with another weight."""
        return replace(self, weights={**self.weights, name: float(value)})

    def with_fillers(self, fillers: Iterable[FillerEntry]) -> RewardConfig:
        """The same with another phrase list."""
        return replace(self, fillers=tuple(fillers))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready and complete: `from_dict` gives an equal configuration."""
        return {
            "weights": dict(self.weights),
            "focus": {kind: dict(table) for kind, table in self.focus.items()},
            "parameters": dict(self.parameters),
            "fillers": [asdict(entry) for entry in self.fillers],
            "lexicons": {name: list(lines) for name, lines in self.lexicons.items()},
            "aggregation": self.aggregation,
            "scale_rewards": self.scale_rewards,
            "fuzzy": self.fuzzy,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RewardConfig:
        """Read what `to_dict` wrote. Unknown keys are ignored, absent ones are the default's.

        Raises:
            ConfigError: a value has the wrong type or is not allowed.
        """
        base = cls.default() if not {"weights", "focus", "parameters", "fillers", "lexicons"} <= set(data) else cls()
        try:
            entries = data.get("fillers")
            names = {f.name for f in fields(FillerEntry)}
            return cls(
                weights={str(k): float(v) for k, v in data.get("weights", base.weights).items()},
                focus={k: {n: float(m) for n, m in t.items()} for k, t in data.get("focus", base.focus).items()},
                parameters={str(k): float(v) for k, v in data.get("parameters", base.parameters).items()},
                fillers=base.fillers if entries is None else tuple(
                    FillerEntry(**{k: v for k, v in entry.items() if k in names}) for entry in entries
                ),
                lexicons={k: tuple(v) for k, v in data.get("lexicons", base.lexicons).items()},
                aggregation=data.get("aggregation", base.aggregation),
                scale_rewards=data.get("scale_rewards", base.scale_rewards),
                fuzzy=bool(data.get("fuzzy", base.fuzzy)),
            )  # fmt: skip
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"the reward configuration is damaged ({error}); take the default or an older copy"
            ) from error

    def fingerprint(self) -> str:
        """Twelve hex digits that change when anything changes."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _check_number(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
        raise ConfigError(f"{what} is {value!r}; it must be a number from 0 to 1000")
