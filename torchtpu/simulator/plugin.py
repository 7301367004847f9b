"""Finds XLA's CPU PJRT plugin, which stands in for libtpu, and checks what it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PLUGIN_VARIABLE = "TORCHTPU_PLUGIN"
FILE_NAME = "pjrt_c_api_cpu_plugin.so"
PACKAGE = "lammps_jax_pjrt_cpu"
DISTRIBUTION = "lammps-jax-pjrt-cpu"

# Plugins this project was tested with, by SHA-256 of the library: distribution and version.
PINNED = {
    "ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2": f"{DISTRIBUTION} 0.11.2",
}


class PluginError(RuntimeError):
    """No plugin was found, or the one found is not trusted."""


@dataclass(frozen=True)
class Plugin:
    """A CPU PJRT plugin.

    Attributes:
        path: The shared library.
        sha256: Hash of its bytes.
        release: Distribution and version when the hash is a pinned one, else None.
        named: Whether the user named this file, which admits an unknown hash.
    """

    path: Path
    sha256: str
    release: str | None
    named: bool


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _inspect(path: Path, named: bool) -> Plugin:
    digest = _sha256(path)
    return Plugin(path.resolve(), digest, PINNED.get(digest), named)


def _named(path: Path) -> Plugin:
    if not path.is_file():
        raise PluginError(f"the plugin named by {PLUGIN_VARIABLE} or a setting is no file: {path}")
    return _inspect(path, named=True)


def find_plugin(
    folders: Iterable[Path],
    explicit: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Plugin:
    """Finds the plugin: a named file, else the one an installed wheel carries.

    Args:
        folders: Folders of the installed wheel's package, in order of preference.
        explicit: A file named in a setting. Any hash is accepted.
        environ: Environment to read TORCHTPU_PLUGIN from; None is the process's own.

    Returns:
        The plugin and its hash.

    Raises:
        PluginError: None is there, or an installed one has an unknown hash.
    """
    variable = (os.environ if environ is None else environ).get(PLUGIN_VARIABLE)
    if explicit is not None:
        return _named(explicit)
    if variable:
        return _named(Path(variable))
    unknown: list[Plugin] = []
    for folder in folders:
        path = folder / FILE_NAME
        if not path.is_file():
            continue
        plugin = _inspect(path, named=False)
        if plugin.release is not None:
            return plugin
        unknown.append(plugin)
    if unknown:
        found = unknown[0]
        raise PluginError(
            f"{found.path} has the unknown SHA-256 {found.sha256}; to use it all the same, "
            f"name it: {PLUGIN_VARIABLE}={found.path}"
        )
    raise PluginError(f"no CPU PJRT plugin is installed; install it with: pip install {DISTRIBUTION}==0.11.2")
