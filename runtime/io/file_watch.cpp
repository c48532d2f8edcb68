// SPDX-License-Identifier: MIT
// See motet/io/file_watch.hpp.
#include <sys/inotify.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/io/fd.hpp>
#include <motet/io/file_watch.hpp>
#include <motet/io/io.hpp>
#include <motet/sync/mutex.hpp>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "base/faults.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

/// Returns: the path of the file `name` in the directory `directory`.
std::string joined(const std::string& directory, const char* name) {
  if (*name == '\0') return directory;
  return directory.ends_with('/') ? directory + name : directory + '/' + name;
}

struct watched_path {
  std::string name;
  bool ignored = false;  // earlier events may still arrive
  bool listed = false;   // by each_watched
};

/// Calls `callback` with every watch descriptor that the kernel has for `instance`.
/// Returns: false if there may be more, because /proc or memory is missing.
/// Source: proc_pid_fdinfo(5).
template <typename F>
bool each_watched(int instance, F callback) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", instance);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> list(std::fopen(path, "re"), std::fclose);
  if (list == nullptr) return false;
  char line[512];
  while (std::fgets(line, sizeof line, list.get()) != nullptr) {
    unsigned number = 0;
    if (std::sscanf(line, "inotify wd:%x", &number) == 1) callback(static_cast<int>(number));
  }
  return std::ferror(list.get()) == 0;
}

}  // namespace

struct file_watch::state {
  /// Returns: std::nullopt for an event that users do not receive.
  std::optional<file_event> take() {
    inotify_event head;
    std::memcpy(&head, bytes.data() + offset, sizeof head);
    const auto* name = reinterpret_cast<const char*>(bytes.data() + offset + sizeof head);
    std::optional<file_event> event;
    const auto watch_entry = paths.find(head.wd);
    if (watch_entry != paths.end()) {
      if ((head.mask & IN_IGNORED) == 0) {
        event = {joined(watch_entry->second.name, head.len == 0 ? "" : name), head.mask,
                 head.cookie};
      } else {
        paths.erase(watch_entry);  // the file was deleted
      }
    } else if ((head.mask & IN_Q_OVERFLOW) != 0) {
      event = {{}, head.mask, 0};
      forget_unwatched();
    }
    offset += sizeof head + head.len;  // last: without memory for it the event is not lost
    return event;
  }

  /// Makes up for lost events IN_IGNORED, without which the paths of files that are gone stay.
  void forget_unwatched() noexcept {
    for (auto& [number, watch_entry] : paths) watch_entry.listed = false;
    const bool complete = each_watched(instance.get(), [this](int number) {
      if (const auto entry = paths.find(number); entry != paths.end()) entry->second.listed = true;
    });
    if (complete) std::erase_if(paths, [](const auto& entry) { return !entry.second.listed; });
  }

  local::mutex watch_mutex;  // held while the path of an event may be unknown
  fd instance;
  std::map<int, watched_path> paths;
  std::size_t offset = 0;
  std::size_t size = 0;
  alignas(inotify_event) std::array<std::byte, 4'096> bytes;
};

const std::uint32_t file_watch::every_change =
    IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF;

file_watch::file_watch() : state_(new state) {
  state_->instance =
      fd(detail::faults::call("inotify_init1", ::inotify_init1, IN_CLOEXEC | IN_NONBLOCK));
  if (!state_->instance) detail::throw_errno(errno, "inotify_init1");
}

file_watch::file_watch(std::string_view path, std::uint32_t mask) : file_watch() {
  watch(path, mask);
}

file_watch::file_watch(file_watch&&) noexcept = default;
file_watch& file_watch::operator=(file_watch&&) noexcept = default;
file_watch::~file_watch() = default;

void file_watch::watch(std::string_view path, std::uint32_t mask) {
  const std::string name = detail::terminated(path);
  state& watch_state = opened();
  const std::lock_guard lock(watch_state.watch_mutex);
  const int number =
      detail::offload_to(detail::offload_pool::own, [&] {  // a network file system answers late
        const int descriptor = ::inotify_add_watch(watch_state.instance.get(), name.c_str(), mask);
        return descriptor < 0 ? -errno : descriptor;
      });
  if (number < 0) throw std::system_error(-number, std::system_category(), "watch " + name);
  try {
    watch_state.paths.insert_or_assign(number, watched_path{name});
  } catch (const std::bad_alloc&) {
    ::inotify_rm_watch(watch_state.instance.get(), number);
    throw;
  }
}

bool file_watch::ignore(std::string_view path) {
  state& watch_state = opened();
  bool found = false;
  for (auto& [number, watch_entry] :
       watch_state.paths) {  // a path may have been that of several files
    if (watch_entry.ignored || watch_entry.name != path) continue;
    watch_entry.ignored = true;  // next() hears when the last event has come, and forgets the path
    if (::inotify_rm_watch(watch_state.instance.get(), number) == 0)
      found = true;  // else it was deleted
  }
  return found;
}

std::optional<file_event> file_watch::next() {
  state& watch_state = opened();
  detail::here_core().deliver();
  for (;;) {
    while (watch_state.offset < watch_state.size) {
      const std::lock_guard lock(watch_state.watch_mutex);
      if (std::optional<file_event> event = watch_state.take()) return event;
    }
    if (watch_state.paths.empty()) return std::nullopt;
    const std::size_t size = io::read(watch_state.instance.get(), watch_state.bytes);
    watch_state.offset = 0;
    watch_state.size = size;
  }
}

file_watch::state& file_watch::opened() const {
  if (state_ == nullptr) detail::throw_errno(EBADF, "inotify", -1);
  return *state_;
}

file_watch::iterator& file_watch::iterator::operator++() {
  std::optional<file_event> event = range_->next();
  at_end_ = !event;
  event_ = event ? std::move(*event) : file_event{};
  return *this;
}

int file_watch::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->instance.get();
}

}}  // namespace motet::MOTET_ABI
