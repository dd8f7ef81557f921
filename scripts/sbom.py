"""Lists what a package is made of (CycloneDX): ``sbom.py ENVIRONMENT VERSION FILE``.

The Python packages are those of the environment; the engine's libraries those that it
is linked to, by the Debian packages that they are of; and what is compiled into it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

VENDOR = "lib/python3.*/site-packages/dutperf/report/vendor/plotly-basic.min.js"
"""Every report carries it."""
COMPILED_IN = ("nlohmann-json3-dev",)
"""Headers only, so the engine is not linked to it."""
ENGINE = "lib/python3.*/site-packages/dutperf/_engine/dutperf-engine"
_OF_THE_SYSTEM = "${binary:Package}\t${Version}\t${Architecture}\t${Description}\n"


def output(*command: str) -> str:
    """What a program prints; ends this one if it fails."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def python_packages(environment: Path) -> dict[str, Any]:
    """As cyclonedx-py lists them."""
    options = ("--output-format", "JSON", "--output-reproducible")
    tool = ("-m", "cyclonedx_py", "environment", *options)
    project = ("--pyproject", "pyproject.toml", "--mc-type", "application")
    listed = output(sys.executable, *tool, *project, f"{environment}/bin/python3")
    told: dict[str, Any] = json.loads(listed)
    return told


def linked_packages(engine: Path) -> list[str]:
    """The Debian packages of the libraries that the engine loads when it starts."""
    lines = output("ldd", str(engine)).splitlines()
    found = [line.partition("=> ")[2].split(" ")[0] for line in lines if "=> /" in line]
    # In /lib or /usr/lib, which are one folder: a package has it by one of both names.
    asked = (f"*/{path.parent.name}/{path.name}" for path in map(Path, found))
    known = output("dpkg", "-S", *asked)
    return sorted({line.partition(": ")[0] for line in known.splitlines()})


def component(line: str) -> dict[str, Any]:
    """Of one Debian package."""
    name, version, architecture, about = line.split("\t")
    plain = name.partition(":")[0]
    purl = f"pkg:deb/debian/{plain}@{version}?arch={architecture}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": plain,
        "version": version,
        "description": about,
        "purl": purl,
    }


def plotly(file: Path) -> dict[str, Any]:
    """The script that every report carries says its version at its top."""
    [version] = re.findall(r"plotly\.js.* v([\d.]+)", file.read_text("utf-8")[:1000])
    name = "plotly.js-basic-dist-min"
    purl = f"pkg:npm/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": purl,
    }


def main(environment: Path, version: str, file: Path) -> None:
    """Writes it, if it is as CycloneDX wants it."""
    told = python_packages(environment)
    [engine] = environment.glob(ENGINE)
    names = [*linked_packages(engine), *COMPILED_IN]
    lines = output("dpkg-query", "-W", f"-f={_OF_THE_SYSTEM}", *names)
    # Of a description the first line only, its title.
    titles = [line for line in lines.splitlines() if line.count("\t") == 3]
    [script] = environment.glob(VENDOR)
    told["components"] += [*map(component, titles), plotly(script)]
    told["metadata"]["component"]["version"] = version
    text = json.dumps(told, indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        sys.exit(f"error: {file} would be no CycloneDX: {wrong}")
    file.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
