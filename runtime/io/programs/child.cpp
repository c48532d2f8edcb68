// SPDX-License-Identifier: MIT
// See io/programs/child.hpp. A plain thread makes the call, which takes as long as the kernel needs
// to find the program.
#include "io/programs/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/detail/threads/offloaded.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/faults.hpp"
#include "base/listens.hpp"
#include "base/system_calls.hpp"
#include "io/programs/launch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The C library of some systems declares it for C alone. Source: pidfd_open(2).
int open_pidfd(pid_t number) noexcept {
  return static_cast<int>(faults::call("pidfd_open", ::syscall, SYS_pidfd_open, number, 0));
}

[[noreturn]] void refuse(int error, const process_options& options, const char* reason = "") {
  std::string text = "start \"" + options.program + "\"";
  if (!options.directory.empty()) text += " in \"" + options.directory + "\"";
  throw std::system_error(error, std::system_category(), text + reason);
}

/// A standard stream of a program to be started.
struct joined_stream {
  fd child_end;
  pipe pipe_end;
};

/// Returns: the highest number that the program gets.
int highest_number(const process_options& options) {
  int highest = STDERR_FILENO;
  for (const passed_descriptor& descriptor : options.descriptors)
    highest = std::max(highest, descriptor.there);
  return highest;
}

/// Returns: a duplicate with a number above all that the program gets, so that it is not
///          overwritten before it is used.
fd copy_above(int number, const process_options& options) {
  fd copy(faults::call("fcntl", sys::fcntl, number, F_DUPFD_CLOEXEC, highest_number(options) + 1));
  if (!copy) refuse(errno, options);
  return copy;
}

/// Programs expect that they can wait.
void make_blocking(int descriptor) noexcept {
  const int mode = sys::fcntl(descriptor, F_GETFL);
  if (mode < 0 || (mode & O_NONBLOCK) == 0 || listens(descriptor)) return;
  sys::fcntl(descriptor, F_SETFL, mode & ~O_NONBLOCK);
}

joined_stream join(const standard_stream& stream, int number, const process_options& options) {
  joined_stream result;
  switch (stream.what()) {
    case standard_stream::inherit:
    case standard_stream::standard_output:
      break;
    case standard_stream::null: {
      const fd null(sys::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!null) refuse(errno, options);
      result.child_end = copy_above(null.get(), options);
      break;
    }
    case standard_stream::pipe: {
      const int their_end = number == STDIN_FILENO ? SHUT_RD : SHUT_WR;
      result.pipe_end = pipe::open();
      result.child_end = copy_above(result.pipe_end.release(their_end).get(), options);
      make_blocking(result.child_end.get());
      break;
    }
    case standard_stream::descriptor:
      result.child_end = copy_above(stream.native_handle(), options);
      make_blocking(result.child_end.get());
      break;
  }
  return result;
}

void check_numbers(const process_options& options) {
  const auto refuse_number = [](const char* rule, int number) {
    throw std::invalid_argument(std::string("process_options.descriptors: ") + rule + ": " +
                                std::to_string(number));
  };
  constexpr int highest = 1023;
  std::vector<int> numbers;
  for (const passed_descriptor& descriptor : options.descriptors) {
    if (descriptor.there <= STDERR_FILENO || descriptor.there > highest) {
      refuse_number("the number in the program must be 3 to 1023", descriptor.there);
    }
    if (std::find(numbers.begin(), numbers.end(), descriptor.there) != numbers.end()) {
      refuse_number("a number is given twice", descriptor.there);
    }
    numbers.push_back(descriptor.there);
  }
  for (const standard_stream* stream : {&options.in, &options.out}) {
    if (stream->what() == standard_stream::standard_output) {
      throw std::invalid_argument("process_options: only `err` can be standard_output");
    }
  }
}

/// Copies, for the program, of the descriptors that it gets.
struct given_descriptors {
  std::vector<fd> copies;
  std::vector<passed_descriptor> numbers;

  void add(fd copy, int number) {
    numbers.push_back({copy.get(), number});
    copies.push_back(std::move(copy));
  }
};

given_descriptors copies_for(const process_options& options,
                             std::array<joined_stream, 3>& streams) {
  given_descriptors copies;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].child_end) copies.add(std::move(streams[i].child_end), static_cast<int>(i));
  }
  if (options.err.what() == standard_stream::standard_output) {
    const auto of_out =
        std::find_if(copies.numbers.begin(), copies.numbers.end(),
                     [](const auto& descriptor) { return descriptor.there == STDOUT_FILENO; });
    const int output = of_out == copies.numbers.end() ? STDOUT_FILENO : of_out->here;
    copies.add(copy_above(output, options), STDERR_FILENO);
  }
  for (const passed_descriptor& descriptor : options.descriptors) {
    copies.add(copy_above(descriptor.here, options), descriptor.there);
    make_blocking(descriptor.here);
  }
  return copies;
}

/// Returns: the number of the new process.
pid_t start_process(const process_options& options, std::array<joined_stream, 3>& streams) {
  const given_descriptors copies = copies_for(options, streams);
  const launch_plan plan(options, copies.numbers);
  pid_t process_id = -1;
  const int error = offload_to(offload_pool::own, [&] { return launch(plan, process_id); });
  if (error != 0) refuse(error, options);
  return process_id;
}

/// Without a pidfd, the child's end could not be detected, and it would have to be killed.
void check_pidfd(const process_options& options) {
  const fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!pidfd) refuse(errno, options, ": pidfd_open is refused");
}

/// Ends a child for which pidfd_open(2) has failed with `error`. ESRCH says that the child has been
/// reaped; so does EINVAL: in that very moment, or with its process group left.
[[noreturn]] void give_up(pid_t number, int error, const process_options& options) {
  if (error == ESRCH || error == EINVAL) {  // the number may be another process's by now
    refuse(ECHILD, options,
           ": it was started, and this process let its end go unseen (by ignoring SIGCHLD, or by "
           "waiting for any child)");
  }
  ::kill(number, SIGKILL);
  while (sys::waitpid(number, nullptr, 0) < 0 && errno == EINTR) {
  }
  refuse(error, options);
}

}  // namespace

spawned_child spawn_child(const process_options& options) {
  check_numbers(options);
  check_pidfd(options);
  std::array<joined_stream, 3> streams{join(options.in, STDIN_FILENO, options),
                                       join(options.out, STDOUT_FILENO, options),
                                       join(options.err, STDERR_FILENO, options)};
  spawned_child child;
  child.id = start_process(options, streams);
  child.pidfd = fd(open_pidfd(child.id));
  if (!child.pidfd) give_up(child.id, errno, options);
  for (std::size_t i = 0; i < streams.size(); ++i) child.pipes[i] = std::move(streams[i].pipe_end);
  return child;
}

}}}  // namespace motet::MOTET_ABI::detail
