"""A real OpenSSH server on loopback: its own keys and configuration, an unprivileged port, an `ollama` in its PATH.

The `ollama create` there does what the real command line does: it reads the Modelfile, uploads the blob, and posts the
create call to the server that OLLAMA_HOST names.
"""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

OLLAMA = '''\
#!{python}
import hashlib, http.client, json, os, re, sys
assert sys.argv[1] == "create" and sys.argv[3:] == ["-f", "Modelfile"], sys.argv
text = open("Modelfile", encoding="utf-8").read()
assert not re.search("^ADAPTER", text, re.M)
path = re.search(r"^FROM \\./(.+)$", text, re.M)[1]
data = open(path, "rb").read()
digest = "sha256:" + hashlib.sha256(data).hexdigest()
def call(method, path, body):
    server = http.client.HTTPConnection(os.environ["OLLAMA_HOST"])
    server.request(method, path, body)
    answer = server.getresponse()
    said = answer.read()
    if answer.status >= 300 or b'"error"' in said:
        sys.exit("Error: " + said.decode())
call("POST", "/api/blobs/" + digest, data)
parameters = {{}}
for name, value in re.findall(r"^PARAMETER (\\S+) (.+)$", text, re.M):
    if name == "stop":
        parameters.setdefault("stop", []).append(value.strip('"'))
    else:
        parameters[name] = json.loads(value)
body = {{"model": sys.argv[2], "files": {{path: digest}}, "parameters": parameters}}
for name in ("TEMPLATE", "SYSTEM"):
    if found := re.search(name + ' """(.*?)"""', text, re.S):
        body[name.lower()] = found[1]
call("POST", "/api/create", json.dumps(body))
'''


class Sshd:
    """`with Sshd(folder) as sshd:`; clients use `ssh -F sshd.config device`."""

    def __init__(self, folder: Path, ollama_port: int) -> None:
        binary = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:/usr/bin")
        if binary is None or shutil.which("ssh") is None:
            pytest.skip("no sshd: apt install openssh-server")
        folder.mkdir()
        folder.chmod(0o700)
        self.folder, self._binary, self.home = folder, binary, folder / "home"
        self.known_hosts, self.config = folder / "known_hosts", folder / "ssh_config"
        (self.home / "bin").mkdir(parents=True)
        for name in ("host", "other", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copyfile(folder / "client.pub", folder / "authorized_keys")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._know("host")
        (self.home / "bin" / "ollama").write_text(OLLAMA.format(python=sys.executable))
        (self.home / "bin" / "ollama").chmod(0o755)
        # The login shell starts in the real home directory; the command moves it into this server's own.
        shell = folder / "shell"
        shell.write_text(f'#!/bin/sh\ncd {self.home} || exit 1\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
        shell.chmod(0o755)
        (folder / "sshd_config").write_text(
            textwrap.dedent(f"""\
                Port {self.port}
                ListenAddress 127.0.0.1
                HostKey {folder}/host
                AuthorizedKeysFile {folder}/authorized_keys
                PidFile none
                StrictModes no
                UsePAM no
                PasswordAuthentication no
                KbdInteractiveAuthentication no
                UseDNS no
                ForceCommand {shell}
                SetEnv OLLAMA_HOST=127.0.0.1:{ollama_port} PATH={self.home}/bin:/usr/local/bin:/usr/bin:/bin
                """)
        )
        self.config.write_text(
            textwrap.dedent(f"""\
                Host device
                  HostName 127.0.0.1
                  Port {self.port}
                  User {getpass.getuser()}
                  IdentityFile {folder}/client
                  IdentitiesOnly yes
                  UserKnownHostsFile {self.known_hosts}
                  GlobalKnownHostsFile none
                """)
        )

    def __enter__(self) -> Sshd:
        if Path("/run").is_dir():
            Path("/run/sshd").mkdir(exist_ok=True)  # privilege separation wants it when started by root
        log = (self.folder / "log").open("wb")
        command = [self._binary, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        until = time.monotonic() + 20
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.stop()
        pytest.skip("sshd does not start here: " + (self.folder / "log").read_text()[-300:])

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def forget_client_key(self) -> None:
        shutil.copyfile(self.folder / "other.pub", self.folder / "authorized_keys")

    def remember_another_host_key(self) -> None:
        self._know("other")

    def _know(self, name: str) -> None:
        key = " ".join((self.folder / f"{name}.pub").read_text().split()[:2])
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key}\n")
