"""Ollama's HTTP API, the part that delivery needs: blobs, create, show, ps, chat, copy, delete, tags.

Standard library, no proxy, nothing retried in silence. What goes wrong is one line with its cause and what to do.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ada_tui.errors import BadInput
from ada_tui.export.store import CHUNK

PORT = 11434
CONNECT_TIMEOUT = 10.0
"""Seconds to wait for a connection. An open one may take as long as it takes; keep-alive notices a dead peer."""


def parse(url: str) -> tuple[str, int]:
    """(host, port) of an OLLAMA_HOST value: "host", "host:port", "http://host:port". Raises BadInput."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "http" or parts.path.strip("/"):
        raise BadInput(f"{url!r}: not an Ollama address; give http://HOST:{PORT}, or USER@HOST to deliver by ssh")
    return host, port or PORT


class Ollama:
    """One server. Every call opens its own connection."""

    def __init__(self, host: str, port: int = PORT) -> None:
        self.host, self.port = host, port

    def version(self) -> str:
        return str(self._json("GET", "/api/version")["version"])

    def tags(self) -> dict[str, dict[str, Any]]:
        """Model name -> {"digest", "size", ...} of everything stored there."""
        return {str(model["name"]): model for model in self._json("GET", "/api/tags")["models"]}

    def running(self, model: str) -> dict[str, Any] | None:
        """What `ollama ps` says of `model`: {"size", "size_vram", "context_length", ...}; None = not loaded."""
        loaded = self._json("GET", "/api/ps")["models"]
        return next((entry for entry in loaded if entry["name"] == model), None)

    def show(self, model: str) -> dict[str, Any]:
        """Template, system prompt, parameters as they are stored."""
        return self._json("POST", "/api/show", {"model": model})

    def upload(self, path: Path, sha256: str, progress: Callable[[int], None]) -> bool:
        """Put `path` there as a blob, unless it is there already; True = it was sent. `progress` gets bytes sent."""
        blob = f"/api/blobs/sha256:{sha256}"
        if self._status("HEAD", blob) == 200:
            return False
        with path.open("rb") as file:

            def body() -> Iterator[bytes]:
                sent = 0
                while chunk := file.read(CHUNK):
                    yield chunk
                    sent += len(chunk)
                    progress(sent)

            size = str(path.stat().st_size)
            self._call("POST", blob, body(), {"Content-Length": size, "Content-Type": "application/octet-stream"})
        return True

    def create(self, body: dict[str, Any], progress: Callable[[str], None]) -> None:
        """Make a model from uploaded blobs; `progress` gets what the server says. Raises BadInput when it refuses."""
        last = ""
        for line in self._lines("POST", "/api/create", body):
            last = str(line.get("status", ""))
            progress(last)
        if last != "success":
            raise BadInput(f"{self}: creating {body['model']} ended with {last!r} instead of success; see its log")

    def chat(self, model: str, messages: list[dict[str, str]], options: dict[str, Any]) -> dict[str, Any]:
        """One answer: {"message": {"content"}, "eval_count", "eval_duration" (ns), ...}. Loads the model if need be."""
        body = {"model": model, "messages": messages, "options": options, "stream": False}
        return self._json("POST", "/api/chat", body)

    def copy(self, source: str, destination: str) -> None:
        self._call("POST", "/api/copy", json.dumps({"source": source, "destination": destination}).encode())

    def delete(self, model: str) -> None:
        self._call("DELETE", "/api/delete", json.dumps({"model": model}).encode())

    def __str__(self) -> str:
        return f"Ollama at {self.host}:{self.port}"

    # -- one request

    def _status(self, method: str, path: str) -> int:
        connection = self._connect()
        try:
            connection.request(method, path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None
        finally:
            connection.close()

    def _call(
        self, method: str, path: str, body: bytes | Iterator[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        connection = self._connect()
        try:
            with contextlib.suppress(BrokenPipeError):  # it refuses and hangs up: its answer says why
                connection.request(method, path, body, headers or {"Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None
        finally:
            connection.close()
        if response.status not in (200, 201):
            raise self._refused(path, response.status, data)
        return data

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = self._call(method, path, json.dumps(body).encode() if body is not None else None)
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise BadInput(f"{self}: {path} did not answer with JSON; is another program on that port?")
        return answer

    def _lines(self, method: str, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The JSON lines of a streamed answer. An error inside the stream is raised."""
        for line in self._call(method, path, json.dumps(body).encode()).splitlines():
            if line.strip():
                answer = json.loads(line)
                if "error" in answer:
                    raise self._refused(path, 200, line)
                yield answer

    def _connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=CONNECT_TIMEOUT)
        try:
            connection.connect()
        except OSError as error:
            raise self._broken(error) from None
        connection.sock.settimeout(None)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _broken(self, error: Exception) -> BadInput:
        if isinstance(error, ConnectionRefusedError):
            return BadInput(
                f"{self}: nothing listens there; start `ollama serve`, with OLLAMA_HOST=0.0.0.0 to be reached"
            )
        if isinstance(error, TimeoutError):
            return BadInput(
                f"{self}: no answer within {CONNECT_TIMEOUT:.0f} s; is the device on, is a firewall between?"
            )
        return BadInput(f"{self}: the connection broke ({error or type(error).__name__}); deliver again")

    def _refused(self, path: str, status: int, data: bytes) -> BadInput:
        try:
            said = str(json.loads(data)["error"])
        except (ValueError, KeyError, TypeError):
            said = data.decode("utf-8", "replace")[:200]
        said = " ".join(said.split())
        if "no space" in said.lower():
            return BadInput(f"{self}: its disk is full; remove models there (`ollama rm`) and deliver again: {said}")
        if "digest" in said.lower():
            return BadInput(f"{self}: the file arrived damaged ({said}); deliver again")
        return BadInput(f"{self}: {path} was refused ({status}): {said or 'no reason given'}")
