// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <motet/directory.hpp>
#include <motet/errors.hpp>
#include <motet/io.hpp>
#include <utility>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

/// Some hundred names at a time: so the way to a plain thread does not count.
struct directory::page {
  /// Reads the next names. A directory that has been taken away, which the kernel calls missing,
  /// has none. Returns: whether there are any.
  bool fill(int from) {
    operation op;
    op.kind = verb::getdents;
    op.fd = from;
    op.buffer = bytes.data();
    op.length = static_cast<std::uint32_t>(bytes.size());
    detail::here().deliver();
    const std::int32_t result = detail::perform_now(op, "getdents64");
    filled = detail::settled(result == -ENOENT ? 0 : result, "getdents64", from);
    taken = 0;
    return filled > 0;
  }

  /// Source: getdents(2): the length of an entry says where the next one begins.
  directory_entry take() noexcept {
    const std::byte* at = bytes.data() + taken;
    unsigned short length = 0;
    directory_entry found{};
    std::memcpy(&length, at + offsetof(dirent64, d_reclen), sizeof length);
    std::memcpy(&found.type, at + offsetof(dirent64, d_type), sizeof found.type);
    found.name = reinterpret_cast<const char*>(at + offsetof(dirent64, d_name));
    taken += length;
    return found;
  }

  std::size_t filled = 0;
  std::size_t taken = 0;
  alignas(dirent64) std::array<std::byte, 32'768> bytes;
};

directory::directory(std::string_view path)
    : directory(fd(io::openat(AT_FDCWD, detail::terminated(path).c_str(),
                              O_RDONLY | O_DIRECTORY | O_NONBLOCK))) {}

directory::directory(fd opened) : page_(new page), fd_(std::move(opened)) {}

directory::directory(directory&&) noexcept = default;
directory& directory::operator=(directory&&) noexcept = default;
directory::~directory() = default;

std::optional<directory_entry> directory::next() {
  if (page_ == nullptr) detail::throw_errno(EBADF, "getdents64", -1);
  for (;;) {
    if (page_->taken == page_->filled && !page_->fill(fd_.get())) return std::nullopt;
    const directory_entry found = page_->take();
    if (found.name != "." && found.name != "..") return found;
  }
}

directory::iterator& directory::iterator::operator++() {
  const std::optional<directory_entry> entry = of_->next();
  at_end_ = !entry;
  entry_ = entry.value_or(directory_entry{});
  return *this;
}

}}  // namespace motet::MOTET_ABI
