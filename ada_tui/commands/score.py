"""`ada-tui score`: rows of prompt and completion in, cards out. The rules are in `rewards`; this parses and prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ada_tui.errors import BadInput
from ada_tui.workspace import Workspace

if TYPE_CHECKING:
    from rewards import Card, RewardConfig
    from rewards.own import FileReward


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option(
    "--weights", type=click.Path(path_type=Path), help="A weights.toml, or a folder with one and phrase lists."
)
@click.option(
    "--explain", is_flag=True, help="Print each text with the spans marked and the reason for each deduction."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document per line.")
@click.pass_obj
def score(here: Workspace | None, file: Path, weights: Path | None, explain: bool, as_json: bool) -> None:
    """Score the replies in FILE (JSONL; - for standard input) with the rules.

    A row is {"prompt", "completion", "truncated", ...} with any of the row columns of docs/rewards.md; "prompt" may be
    a text or a list of chat turns. Exit code 1: some rows were skipped, each with its line on stderr.
    """
    config, own = _config(here, weights)
    good, problems = 0, 0
    for name, item in _rows(file):
        if isinstance(item, str):
            problems += 1
            click.echo(f"ada-tui: {name}: {item}", err=True)
            continue
        try:
            row_id, completion, card = _card(item, config, own)
        except ValueError as error:
            problems += 1
            click.echo(f"ada-tui: {name}: {error}; correct or remove that line", err=True)
            continue
        good += 1
        if as_json:
            click.echo(_dumps(_document(row_id, card)))
        elif explain:
            _explain(row_id, item, completion, card)
        else:
            _line(row_id, completion, card)
    if not good:
        raise BadInput(f"{file}: no row could be scored; a row is a JSON object with prompt and completion, one a line")
    if problems:
        sys.exit(1)


def _config(here: Workspace | None, weights: Path | None) -> tuple[RewardConfig, Mapping[str, FileReward]]:
    """The configuration asked for, else the workspace's, else the default; and the workspace's own rewards."""
    from rewards import ConfigError, RewardConfig
    from rewards.files import load_toml
    from rewards.own import find

    root = here.root if here is not None and (here.root / "ada.toml").is_file() else None
    try:
        if weights is not None and not weights.is_dir():
            if not weights.is_file():
                raise BadInput(f"{weights}: no such file; give a weights.toml or the folder that holds one")
            config = load_toml(weights)
        elif weights is not None:
            config = RewardConfig.load(weights)
        elif root is not None and (root / "data" / "rewards").is_dir():
            config = RewardConfig.load(root / "data" / "rewards")
        else:
            config = RewardConfig.default()
    except ConfigError as error:
        raise BadInput(str(error)) from error
    found = find(root / "my_rewards") if root is not None else None
    if found is None:
        return config, {}
    for fault in found.faults:
        click.echo(f"ada-tui: my_rewards/{fault.error}; the reward is left out", err=True)
    return found.configure(config), found.rewards


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """(file:line, row) or (file:line, what is wrong with it), for every line that is not empty."""
    import json

    name = "<stdin>" if str(file) == "-" else str(file)
    try:
        stream = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except FileNotFoundError:
        raise BadInput(f"{file}: no such file; give a JSONL file with prompt and completion") from None
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); check its permissions") from error
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                item = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError:
                yield f"{name}:{number}", "is not UTF-8; save the file as UTF-8"
            except (json.JSONDecodeError, RecursionError) as error:
                what = (
                    f"{error.msg} at column {error.colno}"
                    if isinstance(error, json.JSONDecodeError)
                    else "nested too deep"
                )
                yield f"{name}:{number}", f"is no JSON ({what}); write one JSON object a line"
            else:
                if isinstance(item, dict):
                    yield f"{name}:{number}", item
                else:
                    yield f"{name}:{number}", 'is no JSON object; write {"prompt": ..., "completion": ...}'


def _card(item: dict[str, Any], config: RewardConfig, own: Mapping[str, FileReward]) -> tuple[str, str, Card]:
    """(id, completion, card) of a row. Raises ValueError with what is wrong."""
    from rewards import Row
    from rewards import score as score_reply
    from rewards.trl import completion_text, split_prompt

    for name in ("prompt", "completion"):
        value = item.get(name)
        turns = isinstance(value, list) and all(isinstance(turn, dict) for turn in value)
        if not isinstance(value, str) and not turns:
            raise ValueError(
                f"{name!r} is missing" if value is None else f"{name!r} must be a text or a list of chat turns"
            )
    truncated = item.get("truncated", False)
    if not isinstance(truncated, bool | None):
        raise ValueError("'truncated' must be true or false")
    prompt, history = split_prompt(item["prompt"])
    completion = completion_text(item["completion"])
    row = Row.from_columns(item)
    card = score_reply(prompt, completion, row, config, history=history, truncated=bool(truncated), own=own)
    return row.id, completion, card


def _document(row_id: str, card: Card) -> dict[str, Any]:
    raw = card.raw
    spans = [
        {"start": s.start, "end": s.end, "rule": s.rule, "text": s.text, "category": s.category,
        "delta": s.delta} for s in card.spans
    ]  # fmt: skip
    return {
        "id": row_id, "total": card.total, "rewards": dict(raw.rewards), "guard": raw.guard, "gated": raw.gated,
        "substance": raw.substance, "kind": raw.kind, "kind_by": card.kind_by, "words": card.words, "spans": spans,
        "why": [sentence for result in card.results.values() for sentence in result.why],
    }  # fmt: skip


def _dumps(document: Any) -> str:
    import json

    return json.dumps(document, ensure_ascii=True, allow_nan=False)


def _shown(value: float | None) -> str:
    return "  - " if value is None else f"{value:.2f}"


def _line(row_id: str, completion: str, card: Card) -> None:
    from ada_tui.text import visible

    parts = "  ".join(f"{name} {_shown(value)}" for name, value in card.raw.rewards.items())
    raw = card.raw
    guard = f"guard {raw.guard:+.2f}{'  GATED' if raw.gated else ''}"
    label = f"{visible(row_id)}  " if row_id else ""
    click.echo(f"{label}{card.total:+.3f}  {parts}  {guard}  substance {_shown(raw.substance)}  {raw.kind}")
    click.echo(f"    {visible(completion)[:160]}")


def _explain(row_id: str, item: Mapping[str, Any], completion: str, card: Card) -> None:
    """The text with numbered marks around the spans, then a line per mark and per reason."""
    from ada_tui.text import visible
    from rewards.trl import split_prompt

    prompt = visible(split_prompt(item["prompt"])[0])
    click.echo(f"{visible(row_id) or 'row'}: {prompt}   ({card.kind}, decided by {card.kind_by})")
    spans = [span for span in card.spans if span.delta]
    click.echo(f"  {marked(completion, [(s.start, s.end) for s in spans])}")
    for number, span in enumerate(spans, 1):
        click.echo(f"    [{number}] {span.rule}: {visible(span.text)[:60]} ({span.category}) {span.delta:+.2f}")
    for name, result in card.results.items():
        value = card.raw.guard if name == "guard" else result.score
        click.echo(f"  {name:<12} {_shown(value):>5}  {visible('; '.join(result.why)) if result.why else ''}".rstrip())
    click.echo(f"  {'total':<12} {card.total:+.3f}\n")


def marked(text: str, spans: list[tuple[int, int]]) -> str:
    """`text` on one line with [1 ... ] around each span; spans may overlap.

    >>> marked("Great question! Yes.", [(0, 14)])
    '[1 Great question]! Yes.'
    """
    from ada_tui.text import visible

    opens: dict[int, list[int]] = {}
    closes: dict[int, int] = {}
    for number, (start, end) in enumerate(spans, 1):
        opens.setdefault(start, []).append(number)
        closes[end] = closes.get(end, 0) + 1
    out: list[str] = []
    last = 0
    for at in sorted({*opens, *closes}):
        out += [visible(text[last:at]), "]" * closes.get(at, 0), *(f"[{number} " for number in opens.get(at, []))]
        last = at
    return "".join([*out, visible(text[last:])])
