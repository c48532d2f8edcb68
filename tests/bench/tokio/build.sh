#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the benchmark with tokio as Debian packages it (librust-tokio-dev), without a network.
#
# usage: build.sh CARGO PROGRAM: PROGRAM is the file to make; beside it is a folder for what it takes
set -euo pipefail
cargo=$1 program=$2
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
project=$program.project
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
[dependencies]
tokio = { version = "1", features = ["macros", "rt-multi-thread", "sync", "time"] }
[profile.release]
lto = true
codegen-units = 1
panic = "unwind"
TOML
(cd "$project" && "$cargo" build --quiet --offline --release)
cp "$project/target/release/tokio_bench" "$program"
