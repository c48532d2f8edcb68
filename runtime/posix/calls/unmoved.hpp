// SPDX-License-Identifier: MIT
// What a call on several buffers has not moved yet.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class unmoved {
 public:
  explicit unmoved(std::span<const iovec> vectors) noexcept : vectors_(vectors) { drop_empty(); }

  bool empty() const noexcept { return vectors_.empty(); }
  /// The buffers for the next call: all that remain, or only the rest of one that has been moved in
  /// part.
  std::span<const iovec> next() noexcept {
    if (offset_ == 0) return vectors_;
    const iovec& first = vectors_.front();
    rest_ = {static_cast<std::byte*>(first.iov_base) + offset_, first.iov_len - offset_};
    return {&rest_, 1};
  }
  void moved(std::size_t size) noexcept {
    offset_ += size;
    drop_empty();
  }
  std::size_t size() const noexcept {
    std::size_t sum = 0;
    for (const iovec& vector : vectors_) sum += vector.iov_len;
    return sum - offset_;
  }

 private:
  void drop_empty() noexcept {
    while (!vectors_.empty() && offset_ >= vectors_.front().iov_len) {
      offset_ -= vectors_.front().iov_len;
      vectors_ = vectors_.subspan(1);
    }
  }

  std::span<const iovec> vectors_;
  std::size_t offset_ = 0;  // in the first of them
  iovec rest_{};
};

}}}  // namespace motet::MOTET_ABI::detail
