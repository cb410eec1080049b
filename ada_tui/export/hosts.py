"""Find a host's address. Under WSL2 the Linux side often cannot resolve `jetson.local`, while Windows can."""

from __future__ import annotations

import ipaddress
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from ada_tui.errors import BadInput

POWERSHELL_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a host is, and which of the ways found it."""

    ip: str
    how: str
    """resolver, windows, saved, or "as given" for an address."""


def find(host: str, saved: str = "") -> Address:
    """The address of `host`: this system's resolver, then Windows', then the one that worked last time.

    Raises:
        BadInput: none of them knows it.
    """
    try:
        return Address(str(ipaddress.ip_address(host)), "as given")
    except ValueError:
        pass
    ways: list[tuple[str, Callable[[str], str]]] = [("resolver", by_resolver), ("windows", by_windows)]
    for how, way in ways:
        if ip := way(host):
            return Address(ip, how)
    if saved:
        return Address(saved, "saved")
    raise BadInput(
        f"{host}: no address found (asked: this system, Windows); give its IP address, "
        "or under WSL2 set networkingMode=mirrored in .wslconfig"
    )


def by_resolver(host: str) -> str:
    """The first address getaddrinfo knows, IPv4 preferred; "" for none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return ""
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


def by_windows(host: str, powershell: str = "powershell.exe") -> str:
    """What Windows resolves (mDNS included), when this is WSL; "" for none."""
    program = shutil.which(powershell)
    if program is None or not host.replace(".", "").replace("-", "").isalnum():
        return ""
    command = f"(Resolve-DnsName -Name '{host}' -Type A -ErrorAction Stop | Select-Object -First 1).IPAddress"
    try:
        said = subprocess.run(
            [program, "-NoProfile", "-NonInteractive", "-Command", command],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=POWERSHELL_TIMEOUT, check=False,
        ).stdout.strip()  # fmt: skip
        return str(ipaddress.ip_address(said))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
