// SPDX-License-Identifier: MIT
#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>
#include <motet/io/directory.hpp>
#include <motet/io/file_verbs.hpp>
#include <utility>

#include "core/thread_state.hpp"
#include "io/directory_page.hpp"
#include "io/io.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

struct directory::page : detail::directory_page {
  /// Reads the next names. A removed directory, for which the kernel reports ENOENT, is empty.
  /// Returns: whether there are any.
  bool fill(int number) {
    operation op;
    op.kind = verb::getdents;
    op.fd = number;
    op.buffer = buffer().data();
    op.length = static_cast<std::uint32_t>(buffer().size());
    detail::here().deliver();
    const std::int32_t result = detail::perform_now(op, "getdents64");
    filled(detail::check_result(result == -ENOENT ? 0 : result, "getdents64", number));
    return !empty();
  }
};

directory::directory(std::string_view path)
    : directory(fd(io::openat(AT_FDCWD, detail::terminated(path).c_str(),
                              O_RDONLY | O_DIRECTORY | O_NONBLOCK))) {}

directory::directory(fd descriptor) : page_(new page), fd_(std::move(descriptor)) {}

directory::directory(directory&&) noexcept = default;
directory& directory::operator=(directory&&) noexcept = default;
directory::~directory() = default;

std::optional<directory_entry> directory::next() {
  if (page_ == nullptr) detail::throw_errno(EBADF, "getdents64", -1);
  for (;;) {
    if (page_->empty() && !page_->fill(fd_.get())) return std::nullopt;
    const directory_entry entry = page_->front();
    page_->pop();
    if (!detail::is_dot_or_dot_dot(entry.name)) return entry;
  }
}

directory::iterator& directory::iterator::operator++() {
  const std::optional<directory_entry> entry = range_->next();
  at_end_ = !entry;
  entry_ = entry.value_or(directory_entry{});
  return *this;
}

}}  // namespace motet::MOTET_ABI
