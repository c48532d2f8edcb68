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
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
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

std::int32_t disks::perform(operation& op, volume& store, const residence& home) {
  if (op.kind == verb::openat) return open(op, store, home);
  const auto found = open_.find(op.fd);
  const bool is_open = found != open_.end();
  switch (op.kind) {
    case verb::read:
    case verb::readv:
    case verb::pread:
    case verb::preadv:
      return is_open ? read(op) : -EBADF;
    case verb::write:
    case verb::writev:
    case verb::pwrite:
    case verb::pwritev:
      return is_open ? write(op, store, found->second) : -EBADF;
    case verb::fallocate:
      return is_open ? allocate(op, store, found->second) : -EBADF;
    case verb::ftruncate:
      return is_open ? truncate(op, found->second) : -EBADF;
    case verb::getdents:
      return is_open ? list(op, found->second) : -EBADF;
    case verb::statx:
    case verb::renameat:
    case verb::unlinkat:
    case verb::mkdirat:
      return perform_on_path(op, store);
    case verb::splice:
      return -EINVAL;
    default:
      return -ENOTSOCK;
  }
}

std::int32_t disks::perform_on_path(operation& op, volume& store) {
  if (op.kind == verb::statx && *op.path == '\0')
    return result_or_errno(::statx(op.fd, "", op.flags, op.length, op.status));
  std::string path;
  if (const std::int32_t error = find_path(store, op.fd, op.path, path); error != 0) return error;
  const std::string real = store.root() + path;
  if (op.kind == verb::statx)
    return result_or_errno(::statx(AT_FDCWD, real.c_str(), op.flags, op.length, op.status));
  if (path == "/") return op.kind == verb::mkdirat ? -EEXIST : -EBUSY;
  if (op.kind == verb::renameat) return rename(op, store, path);
  if (op.kind == verb::mkdirat) {
    const auto result = result_or_errno(::mkdir(real.c_str(), op.length));
    if (result == 0) store.made_directory(path);
    return result;
  }
  const auto result = result_or_errno(::unlinkat(AT_FDCWD, real.c_str(), op.flags));
  if (result == 0) store.removed(path);
  return result;
}

std::int32_t disks::rename(const operation& op, volume& store, const std::string& path) {
  std::string new_path;
  const std::int32_t error = find_path(store, static_cast<int>(op.length), op.new_path, new_path);
  if (error != 0) return error;
  if (new_path == "/") return -EBUSY;
  const auto flags = static_cast<unsigned>(op.flags);
  const auto result = result_or_errno(::renameat2(AT_FDCWD, (store.root() + path).c_str(), AT_FDCWD,
                                                  (store.root() + new_path).c_str(), flags));
  if (result == 0 && path != new_path)
    store.renamed(path, new_path, (flags & RENAME_EXCHANGE) != 0);
  return result;
}

/// In the order of the names, because that of the real file system may differ between machines.
std::int32_t disks::list(const operation& op, open_file& source) {
  alignas(dirent64) std::array<std::byte, 4'096> page{};
  if (source.contents != nullptr) return -ENOTDIR;
  while (!source.reads_names) {
    const ssize_t size = ::getdents64(op.fd, page.data(), page.size());
    if (size < 0) return -errno;
    source.reads_names = size == 0;
    for (ssize_t offset = 0; offset < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(page.data() + offset);
      source.names.emplace_back(reinterpret_cast<const char*>(entry), entry->d_reclen);
      offset += entry->d_reclen;
    }
  }
  const auto is_after = [](const std::string& one, const std::string& other) {
    return std::strcmp(one.c_str() + offsetof(dirent64, d_name),
                       other.c_str() + offsetof(dirent64, d_name)) > 0;
  };
  std::sort(source.names.begin(), source.names.end(), is_after);
  std::size_t size = 0;
  while (!source.names.empty() && size + source.names.back().size() <= op.length) {
    std::memcpy(static_cast<std::byte*>(op.buffer) + size, source.names.back().data(),
                source.names.back().size());
    size += source.names.back().size();
    source.names.pop_back();
  }
  return size == 0 && !source.names.empty() ? -EINVAL : static_cast<std::int32_t>(size);
}

std::int32_t disks::open(const operation& op, volume& store, const residence& home) {
  std::string path;
  if (const std::int32_t error = find_path(store, op.fd, op.path, path); error != 0) return error;
  if ((op.flags & O_TMPFILE) == O_TMPFILE) return -EOPNOTSUPP;
  if (home.owner->descriptors >= net_.rules.descriptors) return -EMFILE;
  const int number = ::open((store.root() + path).c_str(), op.flags & ~O_DIRECT, op.length);
  struct stat status{};
  if (number < 0 || ::fstat(number, &status) != 0) return -errno;
  constexpr unsigned permissions = 07777;
  volume::file contents = store.file_at(path);
  if (contents == nullptr && S_ISREG(status.st_mode))
    contents = store.created(path, status.st_mode & permissions);
  if (contents != nullptr && (op.flags & O_TRUNC) != 0 && contents->size() > 0)
    contents->add({.sets_size = true});
  forget(number);  // a descriptor that was closed without notice
  ++home.owner->descriptors;
  open_[number] = {home, detail::traveller_of(detail::here().running()).site, std::move(contents),
                   (op.flags & O_APPEND) != 0, (op.flags & O_DSYNC) != 0};
  return number;
}

/// An error is reported once.
std::int32_t disks::read(operation& op) {
  if (net_.happens(rules.errors)) return -EIO;
  std::string bytes(room_of(op), '\0');
  const ssize_t size = has_offset(op.kind) ? ::pread(op.fd, bytes.data(), bytes.size(),
                                                     static_cast<off_t>(op.offset))
                                           : ::read(op.fd, bytes.data(), bytes.size());
  if (size < 0) return -errno;
  scatter(op, std::string_view(bytes).substr(0, static_cast<std::size_t>(size)));
  return static_cast<std::int32_t>(size);
}

std::uint64_t disks::room(volume& store) const {
  const std::uint64_t used = store.size();
  if (rules.capacity == 0) return UINT64_MAX;
  return used < rules.capacity ? rules.capacity - used : 0;
}

std::int32_t disks::write(operation& op, volume& store, const open_file& target) {
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
  const std::uint64_t excess = growth - std::min(growth, room(store));
  if (!bytes.empty() && excess >= bytes.size()) return -ENOSPC;
  bytes.resize(bytes.size() - excess);
  const ssize_t size =
      moves ? ::write(op.fd, bytes.data(), bytes.size())
            : ::pwrite(op.fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (size <= 0) return size < 0 ? -errno : 0;
  bytes.resize(static_cast<std::size_t>(size));
  target.contents->add({.offset = offset, .bytes = std::move(bytes)});
  if (target.synchronous) target.contents->synchronise(target.contents->position());
  return static_cast<std::int32_t>(size);
}

std::int32_t disks::allocate(const operation& op, volume& store, const open_file& target) {
  const int mode = static_cast<int>(op.length);
  if (target.contents == nullptr || (mode & ~FALLOC_FL_KEEP_SIZE) != 0) return -EOPNOTSUPP;
  const std::uint64_t end = op.offset + op.size;
  if (end <= target.contents->size()) return 0;
  if (end - target.contents->size() > room(store)) return -ENOSPC;
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

/// What is done after an fsync has begun need not be safe when it ends.
std::size_t disks::position_of(const operation& op) {
  const auto found = open_.find(op.fd);
  if (found == open_.end()) return 0;
  const open_file& target = found->second;
  return target.contents != nullptr ? target.contents->position()
                                    : volume_of(*target.home.owner).position();
}

/// After an error the kernel drops the unwritten data, and the next fsync succeeds.
/// Source: fsync(2), ERRORS, EIO.
std::int32_t disks::synchronise(const operation& op, std::size_t position) {
  const auto found = open_.find(op.fd);
  if (found == open_.end()) return -EBADF;
  const open_file& target = found->second;
  if (!target.home.alive()) return -EIO;
  const bool fails = net_.happens(rules.errors);
  if (target.contents == nullptr) {
    if (fails) return -EIO;
    volume& store = volume_of(*target.home.owner);
    store.synchronise(path_of(store, op.fd), position);
    return 0;
  }
  if (fails) {
    target.contents->miss(position, choices_);
    return -EIO;
  }
  target.contents->synchronise(position);
  return 0;
}

}}}  // namespace motet::MOTET_ABI::testing
