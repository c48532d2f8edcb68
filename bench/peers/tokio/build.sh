#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds what is measured of tokio, as Debian packages it (librust-tokio-dev), without a network.
#
# usage: build.sh CARGO BENCH ECHO: the programs to make; beside them is a folder for what that takes
set -euo pipefail
cargo=$1 bench=$2 echo=$3
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
project=$bench.project
mkdir -p "$project/.cargo"
cat >"$project/.cargo/config.toml" <<'TOML'
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
TOML
cat >"$project/Cargo.toml" <<TOML
[package]
name = "tokio_bench"
version = "0.0.0"
edition = "2021"
[[bin]]
name = "tokio_bench"
path = "$here/main.rs"
[[bin]]
name = "tokio_echo"
path = "$here/echo.rs"
[dependencies]
tokio = { version = "1", features = ["io-util", "macros", "net", "rt-multi-thread", "signal", "sync", "time"] }
[profile.release]
lto = true
codegen-units = 1
panic = "unwind"
TOML
(cd "$project" && "$cargo" build --quiet --offline --release)
cp "$project/target/release/tokio_bench" "$bench"
cp "$project/target/release/tokio_echo" "$echo"
