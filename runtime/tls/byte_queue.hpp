// SPDX-License-Identifier: MIT
// A FIFO buffer of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/owned.hpp>
#include <new>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace tls {

class byte_queue {
 public:
  bool empty() const noexcept { return begin_ == end_; }
  std::span<const std::byte> held() const noexcept {
    return {bytes_.get() + begin_, end_ - begin_};
  }
  std::size_t capacity() const noexcept { return capacity_; }

  void consume(std::size_t size) noexcept {
    begin_ += size;
    if (empty()) begin_ = end_ = 0;
  }

  /// Returns: the space behind what is held; bytes that are written there are held after added().
  std::span<std::byte> space() noexcept { return {bytes_.get() + end_, capacity_ - end_}; }
  void added(std::size_t size) noexcept { end_ += size; }

  /// Returns: false, without effect, if memory is short.
  bool put(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() > space().size() && !reserve(std::max(end_ + bytes.size(), capacity_ * 2))) {
      return false;
    }
    std::copy(bytes.begin(), bytes.end(), space().data());
    added(bytes.size());
    return true;
  }

  /// Returns: false if there is no memory.
  bool reserve(std::size_t capacity) noexcept {
    if (capacity <= capacity_) return true;
    detail::owned<std::byte[]> larger(new (std::nothrow) std::byte[capacity]);
    if (larger == nullptr) return false;
    std::copy_n(bytes_.get(), end_, larger.get());
    bytes_ = std::move(larger);
    capacity_ = capacity;
    return true;
  }

  void swap(byte_queue& other) noexcept {
    bytes_.swap(other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

 private:
  detail::owned<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}}}  // namespace motet::MOTET_ABI::tls
