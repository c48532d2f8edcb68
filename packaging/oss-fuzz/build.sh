#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# Builds motet's fuzzers as OSS-Fuzz asks for them: with its compiler and flags, into $OUT, and with
# nothing that the machine where they run would have to have. Its image needs meson, ninja, pkg-config
# and the headers of Boost.
# Source: https://google.github.io/oss-fuzz/getting-started/new-project-guide/#buildsh
: "${SRC:?}" "${WORK:?}" "${OUT:?}" "${CXX:?}" "${CXXFLAGS:?}" "${LIB_FUZZING_ENGINE:?}"

# The part of libc++ that std::stop_token is in.
if [[ $CXXFLAGS == *-stdlib=libc++* ]]; then export CXXFLAGS="$CXXFLAGS -fexperimental-library"; fi
# The fuzzers run on the simulation, or without any backend.
meson setup "$WORK/motet" "$SRC/motet" --buildtype=plain -Db_lundef=false -Db_pch=false -Ddefault_library=static \
  -Dbackends=sim -Dtls=disabled -Dhttp=enabled -Dtests=false -Dexamples=false -Dfuzz=true \
  -Dfuzz_engine="$LIB_FUZZING_ENGINE"
meson compile -C "$WORK/motet"

for fuzzer in "$WORK"/motet/tests/fuzz/*_fuzz; do
  name=${fuzzer##*/}
  cp -- "$fuzzer" "$OUT"
  words=$SRC/motet/tests/fuzz/${name%_fuzz}.dict
  if [[ -e $words ]]; then cp -- "$words" "$OUT/$name.dict"; fi
  printf '[libfuzzer]\nmax_len = 1000\ntimeout = 60\n' >"$OUT/$name.options"
done
