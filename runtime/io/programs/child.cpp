// SPDX-License-Identifier: MIT
// See io/programs/child.hpp. A plain thread makes the call, which takes as long as the kernel needs
// to find the program.
#include "io/programs/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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
#include "io/programs/launch.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The C library of some systems declares it for C alone. Source: pidfd_open(2).
int open_pidfd(pid_t number) noexcept {
  return static_cast<int>(faults::call("pidfd_open", ::syscall, SYS_pidfd_open, number, 0));
}

[[noreturn]] void refuse(int error, const process_options& what, const char* why = "") {
  std::string text = "start \"" + what.program + "\"";
  if (!what.directory.empty()) text += " in \"" + what.directory + "\"";
  throw std::system_error(error, std::system_category(), text + why);
}

/// A standard stream of a program to be started.
struct joined_stream {
  fd theirs;
  pipe ours;
};

/// Returns: the highest number that the program gets.
int highest_number(const process_options& what) {
  int highest = STDERR_FILENO;
  for (const passed_descriptor& each : what.descriptors) highest = std::max(highest, each.there);
  return highest;
}

/// Returns: a duplicate with a number above all that the program gets, so that it is not
///          overwritten before it is used.
fd copy_above(int from, const process_options& what) {
  fd copy(faults::call("fcntl", ::fcntl, from, F_DUPFD_CLOEXEC, highest_number(what) + 1));
  if (!copy) refuse(errno, what);
  return copy;
}

/// Programs expect that they can wait.
void make_blocking(int descriptor) noexcept {
  const int mode = ::fcntl(descriptor, F_GETFL);
  if (mode < 0 || (mode & O_NONBLOCK) == 0 || listens(descriptor)) return;
  ::fcntl(descriptor, F_SETFL, mode & ~O_NONBLOCK);
}

joined_stream join(const standard_stream& wanted, int number, const process_options& what) {
  joined_stream made;
  switch (wanted.what()) {
    case standard_stream::inherit:
    case standard_stream::standard_output:
      break;
    case standard_stream::null: {
      const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!null) refuse(errno, what);
      made.theirs = copy_above(null.get(), what);
      break;
    }
    case standard_stream::pipe: {
      const int their_end = number == STDIN_FILENO ? SHUT_RD : SHUT_WR;
      made.ours = pipe::open();
      made.theirs = copy_above(made.ours.release(their_end).get(), what);
      make_blocking(made.theirs.get());
      break;
    }
    case standard_stream::descriptor:
      made.theirs = copy_above(wanted.native_handle(), what);
      make_blocking(made.theirs.get());
      break;
  }
  return made;
}

void check_numbers(const process_options& what) {
  const auto refuse_number = [](const char* rule, int number) {
    throw std::invalid_argument(std::string("process_options.descriptors: ") + rule + ": " +
                                std::to_string(number));
  };
  constexpr int highest = 1023;
  std::vector<int> numbers;
  for (const passed_descriptor& each : what.descriptors) {
    if (each.there <= STDERR_FILENO || each.there > highest) {
      refuse_number("the number in the program must be 3 to 1023", each.there);
    }
    if (std::find(numbers.begin(), numbers.end(), each.there) != numbers.end()) {
      refuse_number("a number is given twice", each.there);
    }
    numbers.push_back(each.there);
  }
  for (const standard_stream* each : {&what.in, &what.out}) {
    if (each->what() == standard_stream::standard_output) {
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

given_descriptors copies_for(const process_options& what, std::array<joined_stream, 3>& streams) {
  given_descriptors given;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].theirs) given.add(std::move(streams[i].theirs), static_cast<int>(i));
  }
  if (what.err.what() == standard_stream::standard_output) {
    const auto of_out = std::find_if(given.numbers.begin(), given.numbers.end(),
                                     [](const auto& each) { return each.there == STDOUT_FILENO; });
    const int output = of_out == given.numbers.end() ? STDOUT_FILENO : of_out->here;
    given.add(copy_above(output, what), STDERR_FILENO);
  }
  for (const passed_descriptor& each : what.descriptors) {
    given.add(copy_above(each.here, what), each.there);
    make_blocking(each.here);
  }
  return given;
}

/// Returns: the number of the new process.
pid_t start_process(const process_options& what, std::array<joined_stream, 3>& streams) {
  const given_descriptors given = copies_for(what, streams);
  const launch_plan plan(what, given.numbers);
  pid_t made = -1;
  const int error = offload_to(offload_room::own, [&] { return launch(plan, made); });
  if (error != 0) refuse(error, what);
  return made;
}

/// Without a pidfd, the child's end could not be detected, and it would have to be killed.
void check_pidfd(const process_options& what) {
  const fd own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!own) refuse(errno, what, ": pidfd_open is refused");
}

/// Ends a child for which pidfd_open(2) has failed with `error`. ESRCH says that the child has been
/// reaped; so does EINVAL: in that very moment, or with its process group left.
[[noreturn]] void give_up(pid_t number, int error, const process_options& what) {
  if (error == ESRCH || error == EINVAL) {  // the number may be another process's by now
    refuse(ECHILD, what,
           ": it was started, and this process let its end go unseen (by ignoring SIGCHLD, or by "
           "waiting for any child)");
  }
  ::kill(number, SIGKILL);
  while (::waitpid(number, nullptr, 0) < 0 && errno == EINTR) {
  }
  refuse(error, what);
}

}  // namespace

spawned_child spawn_child(const process_options& what) {
  check_numbers(what);
  check_pidfd(what);
  std::array<joined_stream, 3> streams{join(what.in, STDIN_FILENO, what),
                                       join(what.out, STDOUT_FILENO, what),
                                       join(what.err, STDERR_FILENO, what)};
  spawned_child made;
  made.id = start_process(what, streams);
  made.pidfd = fd(open_pidfd(made.id));
  if (!made.pidfd) give_up(made.id, errno, what);
  for (std::size_t i = 0; i < streams.size(); ++i) made.pipes[i] = std::move(streams[i].ours);
  return made;
}

}}}  // namespace motet::MOTET_ABI::detail
