# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Shared by the scripts: the project's root, build options, and how test results are counted.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
export PYTHONDONTWRITEBYTECODE=1

# The build that scripts/test makes.
# shellcheck disable=SC2034
test_build=(-Doptimization=2 -Ddebug=false -Dtests=true -Dexamples=true)

# What clang precompiles holds the place of its source. Without it, what one checkout has compiled
# serves another; to compile everything takes a tenth longer.
# shellcheck disable=SC2034
clang_build=(-Db_pch=false)

# The builds that watch the program while it runs. Their traces need only lines, which compile more
# quickly than all of debugging information, as does code that need not go on after a finding. LLVM's
# linker takes a third of the time over a sanitizer's runtime.
sanitized=("${clang_build[@]}" -Doptimization=1 -Ddebug=false -Db_lundef=false
  -Dcpp_link_args=-fuse-ld=lld)
# AddressSanitizer's checks as calls, from functions of their own: tests compile in three quarters
# of the time, and most of what the tests do is to wait.
# shellcheck disable=SC2034
asan_build=("${sanitized[@]}" "-Db_sanitize=address,undefined" -Dfaults=true -Dfuzz=true
  "-Dcpp_args=['-gline-tables-only','-fno-sanitize-recover=undefined',\
'-mllvm','-asan-instrumentation-with-call-threshold=0','-fno-inline-functions']")
# shellcheck disable=SC2034
tsan_build=("${sanitized[@]}" -Db_sanitize=thread -Djitter=true
  "-Dcpp_args=['-gline-tables-only','-fno-inline-functions']")

# The sanitizers' own settings: end at the first finding, with names in its trace.
set_sanitizer_options() {
  local names
  names=external_symbolizer_path="'$(command -v llvm-symbolizer-19)'"
  export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=1:$names"
  export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:$names"
  export TSAN_OPTIONS="halt_on_error=1:suppressions='$root/tests/tsan.supp':$names"
}

# cache_compilers: puts what precedes a compiler's name into `cached`, nothing where ccache is not.
# It may trust a header, g++'s precompiled ones too, whose date is new. A comment counts: g++ takes a
# header whose size has changed for another one than that it has precompiled, and reads both.
# shellcheck disable=SC2034
cache_compilers() {
  cached=
  if command -v ccache >/dev/null; then
    cached='ccache '
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_COMMENTS=1
    export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  fi
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# number OPTION VALUE...: the value of an option that takes a number.
number() {
  [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number"
  printf '%s' "$2"
}

# set_up_in DIR OPTION...: a directory that was set up with other options, or is broken, is made anew;
# one that holds anything else than a build is left alone.
set_up_in() {
  local dir=$1 wanted="$root|${CXX:-}|${CXXFLAGS:-}|${LDFLAGS:-}|$*"
  local how=$dir/meson-private/motet-setup
  shift
  if [[ ! -e $how || $(<"$how") != "$wanted" ]] || ! meson setup --reconfigure "$dir" "$root"; then
    if [[ $dir != "$root"/build/* && ! -d $dir/meson-private && -n $(ls -A "$dir" 2>&-) ]]; then
      die "$dir is not a build directory and not empty"
    fi
    rm -rf -- "$dir"
    meson setup "$dir" "$root" "$@" || return
    printf '%s\n' "$wanted" >"$how"
  fi
}

# announce SECONDS TEXT: how long something takes, of which SECONDS are a processor's.
announce() {
  local minutes=$((($1 / $(nproc) + 59) / 60))
  printf '%s: some %d minutes here, if nothing has been compiled before.\n' "$2" "$minutes"
}

# build_in DIR OPTION...: sets DIR up and builds it.
build_in() {
  set_up_in "$@" && meson compile -C "$1"
}

# build_models DIR OPTION...: the models of the library's own code, which the explorer runs.
build_models() {
  (
    unset CCACHE_COMMENTS
    set_up_in "$root/$1" -Dexplorer=true -Doptimization=1 -Ddebug=false -Dexamples=false \
      -Dtls=disabled -Dhttp=disabled -Dobserve=false "${@:2}" && meson compile -C "$root/$1" models
  )
}

# test_in DIR ARGUMENT...: runs the tests that were built there.
test_in() {
  local dir=$1
  shift
  meson test -C "$dir" --no-rebuild --print-errorlogs "$@"
}

# test_names DIR STEM...: the tests there of the files STEM (or all), one a line, for every backend.
test_names() {
  meson introspect --tests "$1" | python3 -c '
import json, sys
for test in json.load(sys.stdin):
    if len(sys.argv) == 1 or test["name"].split()[0] in sys.argv[1:]:
        print(test["name"])' "${@:2}"
}

# tally LOG: "PASSED FAILED SKIPPED SECONDS NAME" of a run, the last two about its longest test.
tally() {
  python3 - "$1" <<'EOF'
import json, os, sys
log = sys.argv[1]
tests = [json.loads(line) for line in open(log)] if os.path.exists(log) else []
results = [test["result"] for test in tests]
passed = sum(result in ("OK", "EXPECTEDFAIL") for result in results)
skipped = results.count("SKIP")
longest = max(tests, key=lambda test: test["duration"], default={"duration": 0, "name": "-"})
failed = len(tests) - passed - skipped
name = longest["name"].split(" / ")[-1]
print(passed, failed, skipped, f"{longest['duration']:.1f}", name)
EOF
}

# failures LOG: the names of the tests that failed in a run, and the last that each has written.
failures() {
  python3 - "$1" <<'EOF'
import json, os, sys
log = sys.argv[1]
for line in open(log) if os.path.exists(log) else []:
    test = json.loads(line)
    if test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP"):
        print(f'  {test["name"].split(" / ")[-1]}: {test["result"]}')
        said = (test.get("stdout", "") + test.get("stderr", "")).splitlines()
        for text in [line for line in said if line.strip()][-20:]:
            print("    " + text[:200])
EOF
}

# summary PASSED FAILED SKIPPED
summary() {
  printf '%d passed, %d failed' "$1" "$2"
  if (($3)); then printf ', %d skipped' "$3"; fi
  printf '\n'
}

# What has been checked so far, for scripts whose checks are not Meson's.
checked=(0 0 0)
check_lines=()

# score NAME VERDICT: counts one check that "passed", "failed" or was "skipped".
score() {
  local -A column=([passed]=0 [failed]=1 [skipped]=2)
  checked[${column[$2]}]=$((checked[${column[$2]}] + 1))
  check_lines+=("$1: $2")
  printf '%s\n' "$1: $2"
}

# check NAME COMMAND...: one check; what a function prints, or ends at its first error with, is
# shown if it fails.
check() {
  local name=$1 log status
  log=$(mktemp)
  shift
  set +e
  (
    set -e
    "$@"
  ) >"$log" 2>&1
  status=$?
  set -e
  if ((status)); then
    cat -- "$log"
    score "$name" failed
  else
    score "$name" passed
  fi
  rm -f -- "$log"
}

# report: one line for each check, then their number. Fails if one of them did.
report() {
  printf '\n'
  printf '%s\n' "${check_lines[@]}"
  summary "${checked[@]}"
  ((checked[1] == 0 && checked[0] > 0))
}

# give_back DIR: what root built here through sudo belongs to the user who asked for it.
give_back() {
  if ((EUID == 0)) && [[ -n ${SUDO_UID:-} && -d $1/meson-private ]]; then
    chown -hR "$SUDO_UID:${SUDO_GID:-}" "$1"
    if [[ $1 == "$root"/build/* ]]; then chown "$SUDO_UID:${SUDO_GID:-}" "$root/build"; fi
  fi
}
