// SPDX-License-Identifier: MIT
// system(3) and pclose(3) wait for the command inside the C library, so another thread calls them.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <motet/detail/core/internal_shield.hpp>
#include <new>
#include <string>

#include "posix/caller.hpp"
#include "posix/calls/plain_call.hpp"
#include "posix/functions.hpp"
#include "posix/wait.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace {

struct command_call {
  void operator()() noexcept {
    status = libc.system(command.c_str());
    error = errno;
  }
  std::string command;
  int status = 0;
  int error = 0;
};

int run_command(thread_state& home, const char* command) {
  const auto ended = plain_call<command_call>::make(home, offload_pool::calls, on_signal::go_on,
                                                    command_call{command, 0, 0});
  if (ended == nullptr) return -1;
  const command_call& outcome = ended->call();
  return outcome.status < 0 ? fail(outcome.error) : outcome.status;
}

struct close_call {
  void operator()() noexcept {
    status = libc.pclose(stream);
    error = errno;
  }
  FILE* stream = nullptr;
  int status = 0;
  int error = 0;
};

/// Interruptions do not end it: the stream is gone in any case. What the stream has not written yet
/// is written here, because a SIGPIPE is the caller's.
int close_command(thread_state& home, FILE* stream) {
  const internal_shield shield;
  bool has_begun = false;
  std::fflush(stream);
  const auto ended = plain_call<close_call>::make(home, offload_pool::calls, on_signal::go_on,
                                                  close_call{stream, 0, 0}, &has_begun);
  if (ended == nullptr) return has_begun ? -1 : libc.pclose(stream);
  const close_call& outcome = ended->call();
  return outcome.status < 0 ? fail(outcome.error) : outcome.status;
}

}}}}  // namespace motet::MOTET_ABI::detail

using namespace motet::detail;

extern "C" {

int system(const char* command) {
  const fiber_call call;
  if (command == nullptr || !call.may_wait()) return libc.system(command);
  try {
    return call.result(run_command(call.home(), command));
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM);
  }
}

int pclose(FILE* stream) {
  const fiber_call call;
  if (!call.may_wait()) return libc.pclose(stream);
  try {
    return call.result(close_command(call.home(), stream));
  } catch (const std::bad_alloc&) {
    return libc.pclose(stream);
  }
}

}  // extern "C"
