// SPDX-License-Identifier: MIT
// See io/programs/launch.hpp.
#include "io/programs/launch.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <motet/io/fd.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/faults.hpp"
#include "base/system_calls.hpp"
#include "io/path.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/signal_mask.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

char* const* environment_of(const launch_plan& plan) noexcept {
  return plan.own_variables ? plan.environment.get() : environ;
}

std::vector<std::string> arguments_of(const process_options& options) {
  std::vector<std::string> arguments{options.program};
  arguments.insert(arguments.end(), options.args.begin(), options.args.end());
  return arguments;
}

/// Returns: the numbers up to `last`, from 3 on, that the program is not given.
std::vector<int> gaps_in(const std::vector<passed_descriptor>& descriptors, int last) {
  std::vector<int> gaps;
  for (int number = STDERR_FILENO + 1; number <= last; ++number) {
    const auto is_given = [number](const passed_descriptor& descriptor) {
      return descriptor.there == number;
    };
    if (std::none_of(descriptors.begin(), descriptors.end(), is_given)) gaps.push_back(number);
  }
  return gaps;
}

int last_number(const std::vector<passed_descriptor>& descriptors) {
  int last = STDERR_FILENO;
  for (const passed_descriptor& descriptor : descriptors) last = std::max(last, descriptor.there);
  return last;
}

/// Source: environ(7); execvp(3), which searches the same directories where PATH is not set.
std::string search_path(const launch_plan& plan) {
  constexpr std::string_view name = "PATH=";
  if (plan.own_variables) {
    for (const std::string& variable : plan.variables) {
      if (variable.starts_with(name)) return variable.substr(name.size());
    }
    return "/bin:/usr/bin";
  }
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/bin:/usr/bin" : path;
}

bool is_absolute(const std::string& path) {
  return path.starts_with('/');
}

/// Returns: 0 if `path` can be executed, seen from where the program is to run.
int check_program(const launch_plan& plan, const std::string& path) {
  const bool relative = !is_absolute(path) && !plan.directory.empty();
  const std::string full_path = relative ? plan.directory + '/' + path : path;
  struct stat attributes{};
  if (::stat(full_path.c_str(), &attributes) != 0) return errno;
  if (S_ISDIR(attributes.st_mode)) return EACCES;
  return ::faccessat(AT_FDCWD, full_path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/// Returns: 0, or an errno value. Sets `result` to the program's path.
/// Source: execvp(3): a file that may not be executed is passed over, but remembered.
int find_program(const launch_plan& plan, std::string& result) {
  result = plan.program;
  if (result.empty()) return ENOENT;
  if (result.find('/') != std::string::npos) return 0;
  const std::string path = search_path(plan);
  int error = ENOENT;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string directory = path.substr(begin, end - begin);
    result = (directory.empty() ? "." : directory) + '/' + plan.program;
    const int refusal = check_program(plan, result);
    if (refusal == 0) return 0;
    if (refusal == EACCES) error = EACCES;
    begin = end + 1;
  }
  return error;
}

/// The attributes for posix_spawn(3).
class spawn_settings {
 public:
  spawn_settings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
  ~spawn_settings() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }

  /// Returns: 0, or an errno value.
  int apply(const launch_plan& plan) {
    int error = 0;
    const auto add = [&error](int result) { error = error != 0 ? error : result; };
    for (const passed_descriptor& descriptor : plan.descriptors) {
      add(::posix_spawn_file_actions_adddup2(&actions, descriptor.here, descriptor.there));
    }
    const int last = last_number(plan.descriptors);
    for (const int gap : gaps_in(plan.descriptors, last)) {
      add(::posix_spawn_file_actions_addclose(&actions, gap));
    }
    if (!plan.directory.empty()) {
      add(::posix_spawn_file_actions_addchdir_np(&actions, plan.directory.c_str()));
    }
    add(::posix_spawn_file_actions_addclosefrom_np(&actions, last + 1));
    sigset_t signals;
    ::sigemptyset(&signals);
    add(::posix_spawnattr_setsigmask(&attributes, &signals));
    const int group = plan.new_group ? POSIX_SPAWN_SETPGROUP : 0;
    add(::posix_spawnattr_setflags(&attributes,
                                   static_cast<short>(POSIX_SPAWN_SETSIGMASK | group)));
    return error;
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

int spawn(const launch_plan& plan, const std::string& path, pid_t& process_id) {
  spawn_settings settings;
  if (const int error = settings.apply(plan); error != 0) return error;
  return ::posix_spawn(&process_id, path.c_str(), &settings.actions, &settings.attributes,
                       plan.arguments.get(), environment_of(plan));
}

/// The handlers are the parent's, and would act on what the two have in common.
void drop_signal_handlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action{};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_flags = 0;
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
}

/// Runs in the child, with all signals blocked, and makes only async-signal-safe calls. Returns
/// only on failure.
void become(const launch_plan& plan, const char* path, const std::vector<int>& gaps, int last,
            pid_t parent) {
  drop_signal_handlers();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (::getppid() != parent) ::_exit(127);  // it has ended before the kernel was asked
  if (plan.new_group && ::setpgid(0, 0) != 0) return;
  for (const passed_descriptor& descriptor : plan.descriptors) {
    if (sys::dup2(descriptor.here, descriptor.there) < 0) return;
  }
  for (const int gap : gaps) sys::close(gap);
  if (!plan.directory.empty() && ::chdir(plan.directory.c_str()) != 0) return;
  if (::syscall(SYS_close_range, static_cast<unsigned>(last) + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    return;
  }
  sigset_t signals;
  ::sigemptyset(&signals);
  errno = ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  if (errno != 0) return;
  ::execve(path, plan.arguments.get(), environment_of(plan));
}

/// The kernel sends the signal when the thread ends that has forked, not the process.
/// Returns: 0, or an errno value.
int fork_bound_to_parent(const launch_plan& plan, const std::string& path, pid_t& process_id) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const fd read_end(ends[0]);
  const int last = last_number(plan.descriptors);
  fd write_end(sys::fcntl(ends[1], F_DUPFD_CLOEXEC, last + 1));
  const int refusal = errno;
  sys::close(ends[1]);
  if (!write_end) return refusal;
  const std::vector<int> gaps = gaps_in(plan.descriptors, last);
  const pid_t parent = ::getpid();
  blocking_pool::keep_this_thread();
  sigset_t signals;
  ::sigfillset(&signals);
  std::optional<signal_mask> mask(std::in_place, SIG_SETMASK, signals);
  process_id = ::_Fork();
  if (process_id < 0) return errno;
  if (process_id == 0) {
    become(plan, path.c_str(), gaps, last, parent);
    const int error = errno;
    [[maybe_unused]] const ssize_t size_written = sys::write(write_end.get(), &error, sizeof error);
    ::_exit(127);
  }
  mask.reset();
  write_end = fd();
  int error = 0;
  ssize_t size = 0;
  do {
    size = sys::read(read_end.get(), &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return 0;  // closed by execve
  while (sys::waitpid(process_id, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

}  // namespace

string_array::string_array(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (std::string& text : texts_) {
    text = terminated(text);
    pointers_.push_back(text.data());
  }
  pointers_.push_back(nullptr);
}

launch_plan::launch_plan(const process_options& options,
                         std::vector<passed_descriptor> passed_descriptors)
    : program(terminated(options.program)),
      directory(terminated(options.directory)),
      arguments(arguments_of(options)),
      variables(options.environment.value_or(std::vector<std::string>())),
      own_variables(options.environment.has_value()),
      environment(variables),
      descriptors(std::move(passed_descriptors)),
      new_group(options.new_group),
      die_with_parent(options.die_with_parent) {}

int launch(const launch_plan& plan, pid_t& process_id) {
  if (const int refusal = faults::next("posix_spawn"); refusal != 0) return refusal;
  std::string path;
  if (const int error = find_program(plan, path); error != 0) return error;
  return plan.die_with_parent ? fork_bound_to_parent(plan, path, process_id)
                              : spawn(plan, path, process_id);
}

}}}  // namespace motet::MOTET_ABI::detail
