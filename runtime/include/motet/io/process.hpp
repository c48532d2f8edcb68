// SPDX-License-Identifier: MIT
// Other programs, run as children of this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/io/pipe.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

/// How a program has ended.
struct exit_status {
  int code = 0;    // what the program returned; 128 plus the signal's number if one has ended it
  int signal = 0;  // the signal that terminated it, or 0
  bool dumped_core = false;

  /// Whether the program returned 0.
  /// Not a switchpoint.
  explicit operator bool() const noexcept { return code == 0; }
};

/// A standard stream of a program: inherited from this process, /dev/null, a pipe to this process,
/// or one of its descriptors, which stays open here. `err` may also be `standard_output`: the same
/// as `out`.
class standard_stream {
 public:
  enum kind { inherit, null, pipe, descriptor, standard_output };

  constexpr standard_stream(kind selection = inherit) noexcept : kind_(selection) {}
  constexpr explicit standard_stream(int fd) noexcept : kind_(descriptor), fd_(fd) {}

  /// Not a switchpoint.
  constexpr kind what() const noexcept { return kind_; }
  constexpr int native_handle() const noexcept { return fd_; }

 private:
  kind kind_;
  int fd_ = -1;
};

/// A descriptor of this process, which stays open here, and its number in a program.
struct passed_descriptor {
  int here = -1;
  int there = -1;  // 3 or above
};

/// Descriptors that a program gets are put into blocking mode, as programs expect. The mode belongs
/// to the open file, so it changes here as well. A listening socket keeps its mode: else accept()
/// could block this thread when the program has taken the connection.
struct process_options {
  /// A path, or a name that is looked up in PATH: that of `environment` if given, else that of this
  /// process.
  std::string program;
  std::vector<std::string> args = {};
  /// Of the form NAME=value; nothing: the environment of this process.
  std::optional<std::vector<std::string>> environment = {};
  /// The program's working directory, in which a relative `program` begins; empty: this process's.
  std::string directory = {};
  standard_stream in = {};
  standard_stream out = {};
  standard_stream err = {};
  /// Further descriptors, such as a listening socket, or a file with a lock.
  std::vector<passed_descriptor> descriptors = {};
  /// The kernel ends the program, with SIGKILL, when this process ends, however that happens.
  /// Programs started by it are not ended. Without effect on a program that runs with other
  /// privileges. This option needs a fork, which takes longer the more memory this process uses.
  /// Source: prctl(2), PR_SET_PDEATHSIG.
  bool die_with_parent = false;
  /// The program leads its own process group: signal() and terminate() then also reach the programs
  /// that it starts, and a terminal's interrupt key reaches none of them. What is left of the group
  /// ends with the process object, if not before; until then the program that leads the group, once
  /// it has ended, is a zombie.
  bool new_group = false;
  /// How long the destructor of the process waits between SIGTERM and SIGKILL.
  clock::duration grace = std::chrono::seconds(5);
};

/// A running program, which the destructor ends. Move-only; to be used on one thread at a time. The
/// program has its three standard streams and the given descriptors, no blocked signals, and
/// default actions for signals that this process handles. Its end is detected without SIGCHLD,
/// which the process must not ignore.
class process {
 public:
  /// Starts a program. A plain thread makes the call, because it can take a long time.
  /// Switchpoint.
  /// Throws: std::system_error that names the program if it, or its directory, cannot be used;
  ///         no_child_process if the program was started, but has ended already, and this process
  ///         ignores SIGCHLD, or has reaped it by another call; std::invalid_argument for a NUL in
  ///         a string, and for a descriptor number below 3 or given twice; a pending interruption,
  ///         and then nothing was started.
  /// Source: posix_spawn(3), pidfd_open(2).
  static process start(const process_options& options);

  /// No program.
  /// Not a switchpoint.
  process() noexcept;
  process(process&&) noexcept;
  process& operator=(process&&) noexcept;
  /// Closes the pipes and, unless the program is known to have ended, ends it as terminate() does,
  /// with the options' grace. A forked child leaves the program, which is the parent's, alone. The
  /// destructor does not wait for a program that this process may not signal.
  /// Switchpoint; nothing interrupts it.
  ~process();

  /// Waits until the program has ended. Any number of fibers may wait; all get the same result.
  /// Switchpoint.
  /// Throws: a pending interruption, and then the program continues; std::system_error,
  ///         no_child_process if this process ignores SIGCHLD, or has reaped the program by another
  ///         call; std::logic_error if there is no program, and in a forked child.
  /// Source: waitid(2).
  exit_status wait();

  /// Sends a signal.
  /// Returns: false if the program has ended.
  /// Not a switchpoint.
  /// Throws: std::system_error; std::logic_error as wait().
  bool signal(int number);

  /// Sends SIGTERM, then SIGKILL after `grace`, and waits for the program's end. The rest of its
  /// own process group, if it has one, then receives SIGKILL, too.
  /// Switchpoint.
  /// Throws: as wait().
  exit_status terminate(detail::timespan grace = std::chrono::seconds(5));

  /// The pipes: the program reads what is written to in(); its output comes from out() and err(). A
  /// pipe that the options did not request is empty.
  /// Not a switchpoint.
  /// Throws: std::logic_error if there is no program.
  pipe& in();
  pipe& out();
  pipe& err();

  /// Returns: the process id, which the system may reuse once the program's end has been seen.
  /// Not a switchpoint.
  /// Throws: std::logic_error if there is no program.
  int id() const;
  /// Returns: a pidfd, which becomes readable (see on_readable()) when the program has ended; -1 if
  ///          there is none.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  struct state;
  state& started() const;

  std::shared_ptr<state> state_;
};

/// What a program has written, and how it ended.
struct command_result {
  exit_status status;
  std::string out;
  std::string err;
};

/// Runs a program with `input`, collects its output, and waits for its end. Where the options say
/// `inherit`, `in` becomes a pipe with `input`, and `out` and `err` are collected; other streams
/// are as specified. A time limit or an interruption ends the program as ~process() does.
/// Returns: the exit status, whatever it is, and the collected output.
/// Switchpoint.
/// Throws: as process::start(); limit_exceeded if one stream exceeds `limit` bytes, and then the
///         program is ended; a pending interruption.
command_result run_command(process_options options, std::string_view input = {},
                           std::size_t limit = std::size_t{1} << 20);

}}  // namespace motet::MOTET_ABI
