"""The system's OpenSSH, so that people's keys, config and agents work: run a script, copy a file, forward a port.

BatchMode, strict host keys: never a hidden prompt, never an unknown or changed key accepted. Argument lists here,
quoted words on the far side. Needs a POSIX shell with sha256sum there (any Jetson has them).
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ada_tui.errors import BadInput
from ada_tui.export import hosts

OPTIONS = (
    "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15",
    "-o", "ServerAliveCountMax=4", "-o", "ClearAllForwardings=yes",
)  # fmt: skip
BLOCK = 1 << 18
TUNNEL_TIMEOUT = 20.0
"""Seconds within which a forwarded port must answer."""

CAUSES = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed: another machine, or a new system; "
     "if you know why, remove the old key with `ssh-keygen -R {host}` and connect once by hand"),
    ("Host key verification failed", "its host key is not known here; `ssh {target}` once and compare the fingerprint"),
    ("Permission denied", "it refuses your key; `ssh-copy-id {target}`, or load the key into your agent"),
    ("Connection refused", "no ssh server on that port; on the device: `sudo systemctl enable --now ssh`"),
    ("Could not resolve hostname", "its name has no address here; give the IP address"),
    ("timed out", "no answer; is the device on and in the same network?"),
    ("No route to host", "it cannot be reached; is the device on and in the same network?"),
    ("No space left on device", "its disk is full; free some space there (`ollama rm`, `df -h`) and deliver again"),
    ("command not found", "a command is missing there ({said}); on the device install Ollama and coreutils"),
    ("not found", "a command is missing there ({said}); on the device install Ollama and coreutils"),
)  # fmt: skip
"""What OpenSSH or the far side says -> cause and fix."""


@dataclass(frozen=True, slots=True)
class Ssh:
    """One destination. Raises BadInput from every method when something goes wrong, with cause and fix."""

    target: str
    """As people type it: host, user@host or an alias of their ssh config."""
    options: tuple[str, ...] = ()
    how: str = field(default="")
    """How the host's address was found."""

    def run(self, script: str, *, what: str) -> str:
        """Run a shell script there; its standard output."""
        done = subprocess.run(
            self._command(script),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise self._failure(done.stderr or done.stdout, what)
        return done.stdout

    def free(self, folder: str) -> int:
        """Bytes free on the disk of `folder`, which need not exist yet."""
        said = self.run(
            f"mkdir -p {shlex.quote(folder)} && df -Pk {shlex.quote(folder)} | tail -n 1", what="reading free space"
        )
        return int(said.split()[3]) * 1024

    def copy(self, source: Path, folder: str, sha256: str, progress: Callable[[int], None]) -> int:
        """Put `source` into `folder`, going on where an interrupted copy ended; bytes sent now.

        It gets its final name only after its hash was computed there and is right.
        """
        size, name = source.stat().st_size, shlex.quote(source.name)
        part = shlex.quote(f".{source.name}.{sha256[:16]}.part")
        into = f"mkdir -p {shlex.quote(folder)} && cd {shlex.quote(folder)}"
        older = f'for f in .{name}.*.part; do [ "$f" = {part} ] || rm -f "$f"; done'
        # A copy that arrived whole but was not used (ollama create failed) is checked again instead of sent again.
        look = f"if [ -f {name} ]; then mv {name} {part}; fi; if [ -f {part} ]; then wc -c < {part}; else echo 0; fi"
        have = int(self.run(f"{into} && {older} && {look}", what="looking there"))
        if have > size:
            self.run(f"{into} && rm {part}", what="removing a damaged copy")
            have = 0
        progress(have)
        if have < size:
            self._send(source, have, f"{into} && cat >> {part}", progress)
        said = self.run(f"{into} && sha256sum {part}", what="hashing there").split()[0].lstrip("\\")
        if said != sha256:
            self.run(f"{into} && rm {part}", what="removing a damaged copy")
            raise BadInput(f"{self.target}: the copy of {source.name} is damaged (its hash differs); deliver again")
        self.run(f"{into} && mv {part} {name}", what="renaming")
        return size - have

    def write(self, text: str, folder: str, name: str) -> None:
        """A small text file, as one step."""
        part, final = shlex.quote(f".{name}.part"), shlex.quote(name)
        script = f"cd {shlex.quote(folder)} && cat > {part} && mv {part} {final}"
        done = subprocess.run(self._command(script), input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise self._failure(done.stderr, f"writing {name}")

    @contextmanager
    def tunnel(self, host: str, port: int) -> Iterator[int]:
        """Forward a local port to `host`:`port` as seen from there; yields the local port."""
        local = _free_port()
        options = [option for option in OPTIONS if option != "ClearAllForwardings=yes"]
        options.pop()  # its -o
        command = [
            "ssh", *options, *self.options, "-o", "ExitOnForwardFailure=yes", "-N",
            "-L", f"127.0.0.1:{local}:{host}:{port}", "--", self.target,
        ]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_for(local, process)
                if process.poll() is not None:
                    assert process.stderr is not None
                    raise self._failure(process.stderr.read(), "forwarding a port")
                yield local
            finally:
                process.terminate()

    def _send(self, source: Path, offset: int, script: str, progress: Callable[[int], None]) -> None:
        with (
            source.open("rb") as file,
            subprocess.Popen(self._command(script), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        ):
            assert process.stdin is not None
            assert process.stderr is not None
            file.seek(offset)
            try:
                while block := file.read(BLOCK):
                    process.stdin.write(block)
                    offset += len(block)
                    progress(offset)
                process.stdin.close()
            except BrokenPipeError:
                pass  # the far side gave up: its words say why
            except BaseException:
                process.kill()
                raise
            said = process.stderr.read().decode("utf-8", "replace")
        if process.returncode:
            raise self._failure(said, f"copying {source.name}")

    def _command(self, script: str) -> list[str]:
        return ["ssh", *OPTIONS, *self.options, "--", self.target, script]

    def _failure(self, said: str, what: str) -> BadInput:
        words = " ".join(said.split())[-300:]
        host = self.target.rpartition("@")[2]
        for sign, cause in CAUSES:
            if sign.lower() in said.lower():
                return BadInput(f"{self.target}: {what}: {cause.format(host=host, target=self.target, said=words)}")
        return BadInput(f"{self.target}: {what} failed: {words or 'ssh said nothing'}; a copy goes on where it stopped")


def connect(target: str, saved: str = "", options: tuple[str, ...] = ()) -> Ssh:
    """`target` with its address found. People's ssh config decides name, port, user and jumps.

    Raises:
        BadInput: not a destination, no ssh here, or no address.
    """
    if not target or target.startswith("-") or any(c.isspace() for c in target):
        raise BadInput(f"{target!r}: not an ssh destination; give USER@HOST")
    try:
        said = subprocess.run(["ssh", *options, "-G", "--", target], capture_output=True, text=True, check=False)
    except OSError:
        raise BadInput("ssh is not installed: sudo apt install openssh-client") from None
    config = dict(line.split(" ", 1) for line in said.stdout.splitlines() if " " in line)
    name = config.get("hostname", "")
    if said.returncode or not name:
        raise BadInput(f"{target!r}: not an ssh destination ({' '.join(said.stderr.split())[:200]})")
    if config.get("proxyjump", "none") != "none" or config.get("proxycommand", "none") != "none":
        return Ssh(target, options, "by your ssh config")
    address = hosts.find(name, saved)
    if address.how in ("resolver", "as given"):
        return Ssh(target, options, address.how)
    found = ("-o", f"HostName={address.ip}", "-o", f"HostKeyAlias={name}")
    return Ssh(target, (*options, *found), address.how)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Until something accepts on `port`, or `process` has ended."""
    until = time.monotonic() + TUNNEL_TIMEOUT
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
