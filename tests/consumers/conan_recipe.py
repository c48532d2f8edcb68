#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does with a recipe for Conan 2 what Conan does, as far as the recipe asks for it; Conan itself is in
no package of Debian. Dependencies are the system's.

usage: conan_recipe.py RECIPE PLACE OPTION=VALUE...
"""

import glob
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import types


class Options(dict):
    __getattr__ = dict.__getitem__

    def get_safe(self, name):
        return self.get(name)


class Component:
    def __init__(self):
        self.libs, self.requires, self.properties = [], [], {}

    def set_property(self, name, value):
        self.properties[name] = value


class Components(dict):
    def __missing__(self, name):
        return self.setdefault(name, Component())


class Recipe:
    """Stands for conan.ConanFile."""

    def requires(self, *_, **__):
        pass

    tool_requires = requires


class Toolchain:
    def __init__(self, recipe):
        self.project_options = {}
        recipe.toolchain = self

    def generate(self):
        pass


class Meson:
    def __init__(self, recipe):
        self.recipe = recipe
        self.build_dir = str(recipe.place / "build")

    def configure(self):
        kind = "shared" if self.recipe.options.shared else "static"
        options = [f"-D{name}={str(value).lower()}" for name, value in self.recipe.toolchain.project_options.items()]
        run("meson", "setup", self.build_dir, self.recipe.source_folder, "--prefix", self.recipe.package_folder,
            "--libdir", "lib", "--buildtype", self.recipe.settings.build_type.lower(), f"-Ddefault_library={kind}", *options)

    def build(self):
        run("meson", "compile", "-C", self.build_dir)

    def install(self):
        run("meson", "install", "-C", self.build_dir)


def run(*command):
    subprocess.run(command, check=True)


def copy(_, pattern, src, dst):
    """As Conan's: '*' stands for slashes, too."""
    src = pathlib.Path(src)
    pattern = pattern.replace("/*", "/**/*")
    for file in glob.glob(pattern, root_dir=src, recursive=True):
        if (src / file).is_file():
            (pathlib.Path(dst) / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(src / file, pathlib.Path(dst) / file)


def pretend_conan():
    generator = type("Deps", (), {"__init__": lambda self, _: None, "generate": lambda self: None})
    for name, members in {
        "conan": {"ConanFile": Recipe},
        "conan.errors": {"ConanInvalidConfiguration": type("ConanInvalidConfiguration", (Exception,), {})},
        "conan.tools": {},
        "conan.tools.build": {"check_min_cppstd": lambda *_: None},
        "conan.tools.files": {"copy": copy, "load": lambda _, path: pathlib.Path(path).read_text()},
        "conan.tools.gnu": {"PkgConfigDeps": generator},
        "conan.tools.layout": {"basic_layout": lambda _: None},
        "conan.tools.meson": {"Meson": Meson, "MesonDeps": generator, "MesonToolchain": Toolchain},
    }.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)


def load(path):
    pretend_conan()
    spec = importlib.util.spec_from_file_location("recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    classes = [entry for entry in vars(module).values() if isinstance(entry, type) and issubclass(entry, Recipe)]
    return next(entry for entry in classes if entry is not Recipe)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path, place = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    kind = load(path)
    recipe = kind()
    recipe.place, recipe.recipe_folder = place, str(path.parent)
    recipe.export_sources_folder = recipe.source_folder = str(place / "sources")
    recipe.package_folder = str(place / "package")
    recipe.settings = types.SimpleNamespace(os="Linux", arch="x86_64", compiler="gcc", build_type="Debug")
    settings = dict(word.split("=") for word in sys.argv[3:])
    recipe.options = Options(kind.default_options, **{name: value == "True" for name, value in settings.items()})
    recipe.cpp_info = types.SimpleNamespace(components=Components())
    for step in ("set_version", "export_sources", "requirements", "build_requirements", "validate", "layout", "generate",
                 "build", "package", "package_info"):
        getattr(recipe, step)()
    for component in list(recipe.cpp_info.components.values()):
        for name in component.libs:
            assert list((place / "package/lib").glob(f"lib{name}.*")), name
    assert (place / "package/licenses/LICENSE").exists()


if __name__ == "__main__":
    main()
