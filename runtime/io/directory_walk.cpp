// SPDX-License-Identifier: MIT
// A walk keeps the directories open from the given one down to where it is: one that is renamed
// meanwhile does not lead it astray, nor does a symbolic link that takes a directory's place.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/io/directory_walk.hpp>
#include <motet/io/fd.hpp>
#include <motet/io/file_verbs.hpp>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/directory_page.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

constexpr std::size_t most_entries = 256;
constexpr std::chrono::milliseconds longest{5};
constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

/// Whether another process has removed, or replaced, a name that was there before.
bool is_gone(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/// Some file systems let a signal interrupt these calls.
template <typename Call>
auto retried(Call call) noexcept {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace

struct directory_walk::state {
  state(std::string path, std::size_t depth);

  /// Reads a batch of entries, on an offload thread. Without memory the batch ends early, and the
  /// next one begins with the same name.
  void fill(const std::stop_token& stop);
  bool at_end() const noexcept { return levels_.empty(); }

  bool has_entry() const noexcept { return next_entry_ < entries_.size(); }
  walk_entry take() noexcept;

  /// For what was met behind the batch's entries.
  void throw_failure();

 private:
  struct level {
    fd descriptor;
    std::size_t path_length;  // including the slash
    detail::directory_page page;
  };
  struct entry {
    std::size_t offset;  // in the texts
    std::size_t path_length;
    std::size_t name_length;
    unsigned char type;
    std::uint64_t size;
    std::size_t depth;
  };

  void read_one();
  bool read_page(level& directory);
  void read_entry(const level& directory, std::string_view name);
  void record(std::string_view name, const struct statx& attributes);
  void fail(const char* call, int error) noexcept {
    error_ = error;
    failed_call_ = call;
  }

  std::vector<std::unique_ptr<level>> levels_;
  std::size_t max_depth_;
  std::string path_;  // of the name that was read last
  std::vector<entry> entries_;
  std::string texts_;
  std::size_t next_entry_ = 0;
  int error_ = 0;
  const char* failed_call_ = nullptr;
};

directory_walk::state::state(std::string path, std::size_t depth)
    : max_depth_(depth), path_(std::move(path)) {
  std::unique_ptr<level> root(new level);
  root->descriptor = fd(io::openat(AT_FDCWD, path_.c_str(), directory_flags));
  if (!path_.ends_with('/')) path_ += '/';
  root->path_length = path_.size();
  levels_.push_back(std::move(root));
}

void directory_walk::state::fill(const std::stop_token& stop) {
  entries_.clear();
  texts_.clear();
  next_entry_ = 0;
  const auto end = std::chrono::steady_clock::now() + longest;
  try {
    while (!at_end() && error_ == 0 && entries_.size() < most_entries && !stop.stop_requested()) {
      read_one();
      if (std::chrono::steady_clock::now() > end) return;
    }
  } catch (const std::bad_alloc&) {
    if (entries_.empty()) throw;
  }
}

walk_entry directory_walk::state::take() noexcept {
  const entry& next = entries_[next_entry_++];
  const std::string_view path = std::string_view(texts_).substr(next.offset, next.path_length);
  return {path, path.substr(path.size() - next.name_length), next.type, next.size, next.depth};
}

void directory_walk::state::throw_failure() {
  if (error_ == 0) return;
  const std::system_error failure(error_, std::system_category(),
                                  std::string(failed_call_) + " of \"" + path_ + "\"");
  error_ = 0;
  throw failure;
}

void directory_walk::state::read_one() {
  level& directory = *levels_.back();
  if (directory.page.empty() && !read_page(directory)) return;
  const std::string_view name = directory.page.front().name;
  if (!detail::is_dot_or_dot_dot(name)) read_entry(directory, name);
  directory.page.pop();
}

/// Leaves the directory at its end. Returns: whether there was another page.
bool directory_walk::state::read_page(level& directory) {
  path_.resize(directory.path_length);
  const std::span<std::byte> buffer = directory.page.buffer();
  const ssize_t size = retried(
      [&] { return ::getdents64(directory.descriptor.get(), buffer.data(), buffer.size()); });
  if (size < 0 && !is_gone(errno)) fail("getdents64", errno);
  if (size <= 0) {
    levels_.pop_back();
    return false;
  }
  directory.page.filled(static_cast<std::size_t>(size));
  return true;
}

/// What may throw comes first: then the name is read again by the next batch.
void directory_walk::state::read_entry(const level& directory, std::string_view name) {
  path_.reserve(directory.path_length + name.size() + 1);
  path_.resize(directory.path_length);
  path_ += name;
  struct statx attributes{};
  const int result = retried([&] {
    return ::statx(directory.descriptor.get(), name.data(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                   STATX_TYPE | STATX_SIZE, &attributes);
  });
  if (result != 0) {
    if (!is_gone(errno)) fail("statx", errno);
    return;
  }
  if (!S_ISDIR(attributes.stx_mode) || levels_.size() > max_depth_) return record(name, attributes);

  levels_.reserve(levels_.size() + 1);
  std::unique_ptr<level> child(new level);
  child->descriptor = fd(retried([&] {
    return detail::sys::openat(directory.descriptor.get(), name.data(),
                               directory_flags | O_NOFOLLOW);
  }));
  const int error = child->descriptor ? 0 : errno;
  record(name, attributes);
  if (error == 0) {
    path_ += '/';
    child->path_length = path_.size();
    levels_.push_back(std::move(child));
  } else if (!is_gone(error)) {
    fail("openat", error);
  }
}

void directory_walk::state::record(std::string_view name, const struct statx& attributes) {
  const std::size_t offset = texts_.size();
  texts_ += path_;
  entries_.push_back({offset, path_.size(), name.size(),
                      static_cast<unsigned char>(IFTODT(attributes.stx_mode)), attributes.stx_size,
                      levels_.size() - 1});
}

directory_walk::directory_walk(std::string_view path, walk_options options)
    : state_(new state(detail::terminated(path), options.max_depth)) {}

directory_walk::directory_walk(directory_walk&&) noexcept = default;
directory_walk& directory_walk::operator=(directory_walk&&) noexcept = default;
directory_walk::~directory_walk() = default;

std::optional<walk_entry> directory_walk::next() {
  if (state_ == nullptr) detail::throw_errno(EBADF, "getdents64", -1);
  for (;;) {
    detail::here().deliver();
    if (state_->has_entry()) return state_->take();
    state_->throw_failure();
    if (state_->at_end()) return std::nullopt;
    detail::offload_to(detail::offload_pool::own,
                       [this](const std::stop_token& stop) { state_->fill(stop); });
  }
}

}}  // namespace motet::MOTET_ABI
