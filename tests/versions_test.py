#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the places that say which version this is do not agree, or a list of sources is not
what there is.

usage: versions_test.py SOURCE-ROOT
"""

import json
import pathlib
import re
import sys


def found_in(path, pattern):
    match = re.search(pattern, path.read_text(), re.MULTILINE)
    return ".".join(match.groups()) if match else None


def versions(root):
    """Each place, and the version that it says."""
    header = root / "runtime/include/motet/base/version.hpp"
    macros = r"_MAJOR (\d+)\n#define MOTET_VERSION_MINOR (\d+)\n#define MOTET_VERSION_PATCH (\d+)\n"
    yield header.relative_to(root), (found_in(header, macros) or "") + (found_in(header, r'_SUFFIX "(.*)"') or "")
    number = r"(\d+\.\d+\.\d+[^ )\n\",]*)"
    yield "CHANGELOG.md", found_in(root / "CHANGELOG.md", f"^## {number}")
    # Debian sorts what follows a tilde before what does not.
    yield "debian/changelog", (found_in(root / "debian/changelog", rf"^motet \({number}\)") or "").replace("~", "-")
    for symbols in sorted(root.glob("debian/*.symbols")):
        yield symbols.relative_to(root), (found_in(symbols, rf"^ .* {number}$") or "").replace("~", "-")
    for page in sorted(root.glob("tools/*/*.1")):
        yield page.relative_to(root), found_in(page, rf'"motet {number}"')
    port = root / "packaging/vcpkg/motet/vcpkg.json"
    yield port.relative_to(root), json.loads(port.read_text())["version-semver"]
    readme = root / "README.md"
    yield readme.relative_to(root), found_in(readme, rf"^\*\*Status\*\*: {number}")


def sonames(root):
    """Each place, and the number in the names of the libraries that it says."""
    for path, pattern in (("runtime/meson.build", r"motet_soversion = '(\d+)'"), ("CMakeLists.txt", r"SOVERSION (\d+)"),
                          ("runtime/include/motet/detail/base/abi.hpp", r"\babi_(\d+)\b"),
                          ("debian/control", r"^Package: libmotet(\d+)$"), ("debian/libmotet0.symbols", r"^libmotet\.so\.(\d+) ")):
        yield path, found_in(root / path, pattern)


def left_out(root):
    """Sources that no list has, and names in a list that are no sources."""
    runtime = root / "runtime"
    listed = set()
    for names in runtime.glob("**/sources.txt"):
        for name in names.read_text().split():
            if names.parent / name in listed:
                yield names.parent / name
            listed.add(names.parent / name)
    yield from listed ^ set(runtime.glob("**/*.cpp"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    version = (root / "VERSION").read_text().strip()
    complaints = [f"{place} says {text}, and VERSION {version}" for place, text in versions(root) if text != version]
    names = dict(sonames(root))
    if len(set(names.values())) != 1 or None in names.values():
        complaints.append(f"the soname is not the same everywhere: {names}")
    complaints += [f"{path.relative_to(root)} is not in a sources.txt once" for path in left_out(root)]
    for line in complaints:
        print(line)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
