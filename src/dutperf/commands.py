"""Programs that are run once, with a text as their input, perhaps in a namespace."""

from __future__ import annotations

import subprocess


def in_namespace(namespace: str, *command: str) -> list[str]:
    """``command`` as it runs in a network namespace, with that one's /sys."""
    return ["ip", "netns", "exec", namespace, *command]


def feed(command: list[str], text: str) -> str:
    """Runs ``command`` with ``text`` as input; what it complained about, or nothing."""
    result = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return ""
    return result.stderr.strip() or f"exit code {result.returncode}"
