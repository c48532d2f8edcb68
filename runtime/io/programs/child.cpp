// SPDX-License-Identifier: MIT
// See io/programs/child.hpp. A plain thread makes the call, which takes as long as the kernel needs
// to find the program.
#include "io/programs/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <motet/offload.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "io/path.hpp"
#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

/// The C library of some systems declares it for C alone. Source: pidfd_open(2).
int open_pidfd(pid_t number) noexcept {
  return static_cast<int>(detail::faults::call("pidfd_open", ::syscall, SYS_pidfd_open, number, 0));
}

[[noreturn]] void refuse(int error, const process_options& what, const char* why = "") {
  std::string text = "start \"" + what.program + "\"";
  if (!what.directory.empty()) text += " in \"" + what.directory + "\"";
  throw std::system_error(error, std::system_category(), text + why);
}

void check(int error, const process_options& what) {
  if (error != 0) refuse(error, what);
}

/// A null-terminated array, as execve(2) takes it.
class argument_vector {
 public:
  void add(std::string_view text) { texts_.push_back(detail::terminated(text)); }
  char** get() {
    pointers_.clear();
    for (std::string& each : texts_) pointers_.push_back(each.data());
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// Owns what posix_spawn(3) is told of descriptors and the directory.
class file_actions {
 public:
  explicit file_actions(const process_options& what) : what_(what) {
    check(::posix_spawn_file_actions_init(&actions_), what);
  }
  file_actions(const file_actions&) = delete;
  file_actions& operator=(const file_actions&) = delete;
  ~file_actions() { ::posix_spawn_file_actions_destroy(&actions_); }

  void join(int from, int to) {
    check(::posix_spawn_file_actions_adddup2(&actions_, from, to), what_);
  }
  void enter_directory() {
    if (what_.directory.empty()) return;
    const std::string path = detail::terminated(what_.directory);
    check(::posix_spawn_file_actions_addchdir_np(&actions_, path.c_str()), what_);
  }
  void close_others() {
    check(::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1), what_);
  }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  const process_options& what_;
  posix_spawn_file_actions_t actions_;
};

/// Owns what posix_spawn(3) is told of signals and the process group.
class attributes {
 public:
  explicit attributes(const process_options& what) {
    check(::posix_spawnattr_init(&attributes_), what);
    sigset_t none;
    ::sigemptyset(&none);
    check(::posix_spawnattr_setsigmask(&attributes_, &none), what);
    const int group = what.new_group ? POSIX_SPAWN_SETPGROUP : 0;
    check(::posix_spawnattr_setflags(&attributes_,
                                     static_cast<short>(POSIX_SPAWN_SETSIGMASK | group)),
          what);
  }
  attributes(const attributes&) = delete;
  attributes& operator=(const attributes&) = delete;
  ~attributes() { ::posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// A standard stream of a program to be started.
struct joined_stream {
  fd theirs;
  pipe ours;
};

/// Returns: a copy with a number above those of the standard streams, so that none of those is
///          overwritten before it has been used.
fd above_standard(int from, const process_options& what) {
  fd copy(detail::faults::call("fcntl", ::fcntl, from, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) refuse(errno, what);
  return copy;
}

joined_stream join(const standard_stream& wanted, int number, const process_options& what) {
  joined_stream made;
  switch (wanted.what()) {
    case standard_stream::inherit:
      break;
    case standard_stream::null: {
      const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
      if (!null) refuse(errno, what);
      made.theirs = above_standard(null.get(), what);
      break;
    }
    case standard_stream::pipe: {
      const int their_end = number == STDIN_FILENO ? SHUT_RD : SHUT_WR;
      made.ours = pipe::open();
      made.theirs = above_standard(made.ours.release(their_end).get(), what);
      ::fcntl(made.theirs.get(), F_SETFL, 0);  // programs expect that they can wait
      break;
    }
    case standard_stream::descriptor:
      made.theirs = above_standard(wanted.native_handle(), what);
      break;
  }
  return made;
}

/// Returns: the number of the new process.
pid_t spawn(const process_options& what, const std::array<joined_stream, 3>& streams) {
  argument_vector args;
  args.add(what.program);
  for (const std::string& each : what.args) args.add(each);
  argument_vector environment;
  if (what.environment.has_value()) {
    for (const std::string& each : *what.environment) environment.add(each);
  }
  file_actions files(what);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].theirs) files.join(streams[i].theirs.get(), static_cast<int>(i));
  }
  files.enter_directory();
  files.close_others();
  const attributes how(what);
  char** const arguments = args.get();
  char** const variables = what.environment.has_value() ? environment.get() : environ;
  pid_t made = -1;
  const int error = offload([&] {
    if (const int refused = detail::faults::next("posix_spawn"); refused != 0) return refused;
    return ::posix_spawnp(&made, arguments[0], files.get(), how.get(), arguments, variables);
  });
  check(error, what);
  return made;
}

/// Ends a child for which pidfd_open(2) has failed with `error`. ESRCH says that the child has been
/// reaped; so does EINVAL: in that very moment, or with its process group left.
[[noreturn]] void give_up(pid_t number, int error, const process_options& what) {
  if (error == ESRCH || error == EINVAL) {  // the number may be a stranger's by now
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

detail::spawned_child detail::spawn_child(const process_options& what) {
  std::array<joined_stream, 3> streams{join(what.in, STDIN_FILENO, what),
                                       join(what.out, STDOUT_FILENO, what),
                                       join(what.err, STDERR_FILENO, what)};
  spawned_child made;
  made.id = spawn(what, streams);
  made.pidfd = fd(open_pidfd(made.id));
  if (!made.pidfd) give_up(made.id, errno, what);
  for (std::size_t i = 0; i < streams.size(); ++i) made.pipes[i] = std::move(streams[i].ours);
  return made;
}

}}  // namespace motet::MOTET_ABI
