// SPDX-License-Identifier: MIT
// See http/server/cached_file.hpp.
#include "http/server/cached_file.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <motet/io/file_verbs.hpp>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "http/reason_phrase.hpp"
#include "http/server/date.hpp"
#include "http/text.hpp"
#include "platform/simulated_system.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::size_t most_open = 64;

constexpr int to_read = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

/// Opens a file if its name is in the kernel's cache, so that the call does not block.
/// Returns: an empty fd on failure, with the error; EAGAIN also if the kernel lacks RESOLVE_CACHED.
/// Source: openat2(2), RESOLVE_CACHED.
fd open_cached(const std::string& path, int& error) noexcept {
  if (detail::simulated_system::present() != nullptr) {
    error = EAGAIN;
    return {};
  }
  open_how options{};
  options.flags = to_read;
  options.resolve = RESOLVE_CACHED;
  fd file(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &options, sizeof options)));
  const bool is_unknown = errno == ENOSYS || errno == EINVAL || errno == E2BIG || errno == EPERM;
  error = file ? 0 : is_unknown ? EAGAIN : errno;
  return file;
}

[[noreturn]] void refuse_file(const std::error_code& error) {
  switch (error.value()) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
      throw standard_error(404);
    case EACCES:
    case EPERM:
    case ELOOP:
      throw standard_error(403);
    default:
      throw std::system_error(error, "open");
  }
}

fd open_to_read(const std::string& path) {
  int error = 0;
  fd file = open_cached(path, error);
  if (file) return file;
  if (error != EAGAIN) refuse_file({error, std::system_category()});
  try {
    return fd(io::openat(AT_FDCWD, path.c_str(), to_read));
  } catch (const std::system_error& failure) {
    refuse_file(failure.code());
  }
}

file_metadata metadata_of(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) throw standard_error(404);
  const auto nanoseconds = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                           static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::string tag = "W/\"";
  append_number(tag, nanoseconds, 16);
  tag += '-';
  append_number(tag, size, 16);
  tag += '"';
  return {size, status.st_mtim.tv_sec, date_of(status.st_mtim.tv_sec), std::move(tag)};
}

bool is_at(const std::string& path, const struct stat& status) noexcept {
  struct stat disk_status{};
  const auto equals = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  return ::stat(path.c_str(), &disk_status) == 0 && disk_status.st_dev == status.st_dev &&
         disk_status.st_ino == status.st_ino && disk_status.st_size == status.st_size &&
         disk_status.st_mode == status.st_mode && equals(disk_status.st_mtim, status.st_mtim) &&
         equals(disk_status.st_ctim, status.st_ctim);
}

using cached_files = std::unordered_map<std::string, std::shared_ptr<const cached_file>>;

[[gnu::noinline]] cached_files& files_of_thread() {
  static thread_local cached_files files;
  return files;
}

}  // namespace

std::shared_ptr<const cached_file> cached_file::at(const std::string& path) {
  if (const auto entry = files_of_thread().find(path); entry != files_of_thread().end()) {
    if (is_at(path, entry->second->status)) return entry->second;
    files_of_thread().erase(entry);
  }
  auto entry = std::make_shared<cached_file>();
  entry->file = open_to_read(path);
  if (::fstat(entry->file.get(), &entry->status) != 0) {
    throw std::system_error(errno, std::system_category(), "fstat");
  }
  entry->metadata = metadata_of(entry->status);
  cached_files& files = files_of_thread();
  if (files.size() == most_open) files.clear();
  files.insert_or_assign(path, entry);
  return entry;
}

}}}  // namespace motet::MOTET_ABI::http
