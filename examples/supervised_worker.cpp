// SPDX-License-Identifier: MIT
// A worker that fails twice and is started again by its supervisor, after a pause that grows; then
// one that never gets anywhere, and is given up. Run: supervised_worker
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <stdexcept>

using namespace std::chrono_literals;

namespace {

void print(const motet::supervise_event& event) {
  using kind = motet::supervise_event::kind;
  const char* child = event.child.c_str();
  switch (event.what) {
    case kind::started:
      std::printf("  %s: started\n", child);
      break;
    case kind::ended:
      std::printf("  %s: ended\n", child);
      break;
    case kind::failed:
      std::printf("  %s: failed\n", child);
      break;
    case kind::restarting:
      std::printf("  %s: again in %d ms\n", child, static_cast<int>(event.delay / 1ms));
      break;
    case kind::gave_up:
      std::printf("  %s: given up\n", child);
      break;
  }
}

}  // namespace

int main() {
  motet::supervise_options options;
  options.delay = 4ms;
  options.jitter = 0;
  options.on_event = print;

  int attempts = 0;
  const auto work = [&attempts] {
    if (++attempts < 3) throw std::runtime_error("not yet");
    std::printf("  the work is done, at attempt %d\n", attempts);
  };
  const auto on_failure = motet::restart_policy::on_failure;
  motet::supervise(options, motet::child_spec{"worker", on_failure, work});

  try {
    const auto fail = [] { throw std::runtime_error("never"); };
    motet::supervise(options, motet::child_spec{"hopeless", on_failure, fail});
  } catch (const motet::too_many_restarts& error) {
    std::printf("%s\n", error.what());
  }
}
