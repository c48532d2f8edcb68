# SPDX-License-Identifier: MIT
"""A recipe for Conan 2, of the sources that it lies in: conan create packaging/conan -s compiler.cppstd=20"""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonDeps, MesonToolchain


class Motet(ConanFile):
    name = "motet"
    description = "Fibers for C++20 on Linux, on io_uring or libev"
    license = "MIT"
    topics = ("fibers", "coroutines", "io_uring", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "tls": [True, False], "http": [True, False]}
    default_options = {"shared": False, "tls": False, "http": False, "boost/*:header_only": True}

    def set_version(self):
        self.version = load(self, os.path.join(self.recipe_folder, "..", "..", "VERSION")).strip()

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("VERSION", "LICENSE", "meson.build", "meson_options.txt", "runtime/*", "backends/*", "cmake/*",
                        "tools/*", "scripts/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def requirements(self):
        self.requires("liburing/2.6")
        self.requires("libev/4.33")
        if self.options.tls:
            self.requires("openssl/[>=3.0 <4]")
        if self.options.http:
            self.requires("boost/1.83.0", headers=True, libs=False)

    def build_requirements(self):
        self.tool_requires("meson/[>=1.0 <2]")
        self.tool_requires("pkgconf/[>=2.0 <3]")

    def validate(self):
        if str(self.settings.os) != "Linux" or str(self.settings.arch) not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("motet is for Linux on x86-64 and aarch64")
        check_min_cppstd(self, 20)

    def layout(self):
        basic_layout(self)

    def generate(self):
        PkgConfigDeps(self).generate()
        MesonDeps(self).generate()  # what Meson looks for without pkg-config: libev, Boost's headers
        chain = MesonToolchain(self)
        chain.project_options.update({"tests": False, "examples": False, "posix": "disabled"})
        for part in ("tls", "http"):
            chain.project_options[part] = "enabled" if self.options.get_safe(part) else "disabled"
        chain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.components["core"].libs = ["motet"]
        self.cpp_info.components["core"].set_property("cmake_target_name", "motet::motet")
        self.cpp_info.components["core"].set_property("pkg_config_name", "motet")
        self.cpp_info.components["core"].cxxflags = ["-fstack-clash-protection"]
        self.cpp_info.components["core"].system_libs = ["pthread"]
        self.cpp_info.components["core"].requires = ["liburing::liburing", "libev::libev"]
        self.cpp_info.components["boost_fiber"].set_property("cmake_target_name", "motet::boost_fiber")
        self.cpp_info.components["boost_fiber"].set_property("pkg_config_name", "motet-boost-fiber")
        self.cpp_info.components["boost_fiber"].requires = ["core"]
        self.cpp_info.components["testing"].libs = ["motet-testing"]
        self.cpp_info.components["testing"].set_property("cmake_target_name", "motet::testing")
        self.cpp_info.components["testing"].set_property("pkg_config_name", "motet-testing")
        self.cpp_info.components["testing"].requires = ["core"]
        for part, needed in (("tls", "openssl::openssl"), ("http", "boost::headers")):
            if self.options.get_safe(part):
                self.cpp_info.components[part].libs = [f"motet-{part}"]
                self.cpp_info.components[part].set_property("cmake_target_name", f"motet::{part}")
                self.cpp_info.components[part].set_property("pkg_config_name", f"motet-{part}")
                self.cpp_info.components[part].requires = ["core", needed]
        if self.options.tls and self.options.http:
            self.cpp_info.components["http"].requires.append("tls")
