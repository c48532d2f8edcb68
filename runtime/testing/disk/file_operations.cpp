// SPDX-License-Identifier: MIT
// See testing/disk/disks.hpp: what each operation does. The real file system holds what programs
// see, so it answers; the volume is told.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/thread_state.hpp"
#include "testing/disk/disks.hpp"
#include "testing/net/network.hpp"
#include "testing/net/simulated_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

template <typename T>
std::int32_t result_or_errno(T result) noexcept {
  return result < 0 ? -errno : static_cast<std::int32_t>(result);
}

bool has_offset(verb kind) noexcept {
  return kind == verb::pread || kind == verb::preadv || kind == verb::pwrite ||
         kind == verb::pwritev;
}

}  // namespace

std::int32_t disks::perform(operation& op, volume& on, const residence& home) {
  if (op.kind == verb::openat) return open(op, on, home);
  const auto found = open_.find(op.fd);
  const bool is_open = found != open_.end();
  switch (op.kind) {
    case verb::read:
    case verb::readv:
    case verb::pread:
    case verb::preadv:
      return is_open ? read(op, found->second) : -EBADF;
    case verb::write:
    case verb::writev:
    case verb::pwrite:
    case verb::pwritev:
      return is_open ? write(op, on, found->second) : -EBADF;
    case verb::fallocate:
      return is_open ? allocate(op, on, found->second) : -EBADF;
    case verb::ftruncate:
      return is_open ? truncate(op, found->second) : -EBADF;
    case verb::getdents:
      return result_or_errno(::getdents64(op.fd, op.buffer, op.length));
    default:
      return perform_on_path(op, on);
  }
}

std::int32_t disks::perform_on_path(operation& op, volume& on) {
  if (op.kind == verb::statx && *op.path == '\0')
    return result_or_errno(::statx(op.fd, "", op.flags, op.length, op.status));
  const std::string path = path_of(on, op.fd, op.path);
  const std::string real = on.root() + path;
  std::int32_t result = -EINVAL;
  if (op.kind == verb::statx)
    return result_or_errno(::statx(AT_FDCWD, real.c_str(), op.flags, op.length, op.status));
  if (op.kind == verb::mkdirat) {
    result = result_or_errno(::mkdir(real.c_str(), op.length));
    if (result == 0) on.made_directory(path);
  } else if (op.kind == verb::unlinkat) {
    result = result_or_errno(::unlinkat(AT_FDCWD, real.c_str(), op.flags));
    if (result == 0) on.removed(path);
  } else if (op.kind == verb::renameat) {
    const auto flags = static_cast<unsigned>(op.flags);
    const std::string new_path = path_of(on, static_cast<int>(op.length), op.new_path);
    result = result_or_errno(
        ::renameat2(AT_FDCWD, real.c_str(), AT_FDCWD, (on.root() + new_path).c_str(), flags));
    if (result == 0 && path != new_path) on.renamed(path, new_path, (flags & RENAME_EXCHANGE) != 0);
  }
  return result;
}

std::int32_t disks::open(const operation& op, volume& on, const residence& home) {
  const std::string path = path_of(on, op.fd, op.path);
  if ((op.flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
  if (home.at->descriptors >= net_.rules.descriptors) return -EMFILE;
  const int number = ::open((on.root() + path).c_str(), op.flags, op.length);
  struct stat status{};
  if (number < 0 || ::fstat(number, &status) != 0) return -errno;
  volume::file contents = on.file_at(path);
  if (contents == nullptr && S_ISREG(status.st_mode)) contents = on.created(path);
  if (contents != nullptr && (op.flags & O_TRUNC) != 0 && contents->size() > 0)
    contents->add({.sets_size = true});
  ++home.at->descriptors;
  open_[number] = {home, detail::here().running().site, std::move(contents),
                   (op.flags & O_APPEND) != 0};
  return number;
}

/// An error is reported once.
std::int32_t disks::read(operation& op, const open_file&) {
  if (net_.happens(rules.errors)) return -EIO;
  std::string bytes(room_of(op), '\0');
  const ssize_t size = has_offset(op.kind) ? ::pread(op.fd, bytes.data(), bytes.size(),
                                                     static_cast<off_t>(op.offset))
                                           : ::read(op.fd, bytes.data(), bytes.size());
  if (size < 0) return -errno;
  scatter(op, std::string_view(bytes).substr(0, static_cast<std::size_t>(size)));
  return static_cast<std::int32_t>(size);
}

std::uint64_t disks::room(volume& on) const {
  const std::uint64_t used = on.size();
  if (rules.capacity == 0) return UINT64_MAX;
  return used < rules.capacity ? rules.capacity - used : 0;
}

std::int32_t disks::write(operation& op, volume& on, const open_file& target) {
  if (target.contents == nullptr) return -EBADF;
  if (net_.happens(rules.errors)) return -EIO;
  std::string bytes = gathered(op, SIZE_MAX);
  const std::uint64_t old_size = target.contents->size();
  const bool appends = target.appends || (op.flags & RWF_APPEND) != 0;
  const bool moves = !has_offset(op.kind);
  const off_t position = moves ? ::lseek(op.fd, 0, SEEK_CUR) : static_cast<off_t>(op.offset);
  const std::uint64_t offset = appends ? old_size : static_cast<std::uint64_t>(position);
  const std::uint64_t end = offset + bytes.size();
  const std::uint64_t growth = end > old_size ? end - old_size : 0;
  const std::uint64_t excess = growth - std::min(growth, room(on));
  if (!bytes.empty() && excess >= bytes.size()) return -ENOSPC;
  bytes.resize(bytes.size() - excess);
  const ssize_t size =
      moves ? ::write(op.fd, bytes.data(), bytes.size())
            : ::pwrite(op.fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (size < 0) return -errno;
  bytes.resize(static_cast<std::size_t>(size));
  target.contents->add({.offset = offset, .bytes = std::move(bytes)});
  return static_cast<std::int32_t>(size);
}

std::int32_t disks::allocate(const operation& op, volume& on, const open_file& target) {
  const int mode = static_cast<int>(op.length);
  if (target.contents == nullptr || (mode & ~FALLOC_FL_KEEP_SIZE) != 0) return -EOPNOTSUPP;
  const std::uint64_t end = op.offset + op.size;
  if (end <= target.contents->size()) return 0;
  if (end - target.contents->size() > room(on)) return -ENOSPC;
  if (mode != 0) return 0;
  if (::ftruncate(op.fd, static_cast<off_t>(end)) != 0) return -errno;
  target.contents->add({.offset = end, .sets_size = true});
  return 0;
}

std::int32_t disks::truncate(const operation& op, const open_file& target) {
  if (target.contents == nullptr) return -EINVAL;
  if (::ftruncate(op.fd, static_cast<off_t>(op.offset)) != 0) return -errno;
  target.contents->add({.offset = op.offset, .sets_size = true});
  return 0;
}

/// After an error the kernel forgets what it could not write; the next call succeeds.
/// Source: fsync(2), ERRORS, EIO.
std::int32_t disks::synchronise(const operation& op) {
  const auto found = open_.find(op.fd);
  if (found == open_.end()) return -EBADF;
  const open_file& target = found->second;
  if (!target.home.alive()) return -EIO;
  const bool fails = net_.happens(rules.errors);
  if (target.contents == nullptr) {
    if (fails) return -EIO;
    volume& on = volume_of(*target.home.at);
    on.synchronise(path_of(on, op.fd, "."));
    return 0;
  }
  if (fails) {
    target.contents->miss(choices_);
    return -EIO;
  }
  target.contents->synchronise();
  return 0;
}

}}}  // namespace motet::MOTET_ABI::testing
