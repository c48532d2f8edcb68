// SPDX-License-Identifier: MIT
// A look at memory of this process that another thread may be changing, or giving back, just now:
// the kernel copies it, and refuses where a load would fault. What is seen may be half changed.
// Source: process_vm_readv(2).
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <span>
#include <type_traits>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the number of bytes from `source` on copied into `destination`; 0 also if the kernel,
///          or a system call filter, forbids it.
inline std::size_t peek_bytes(const void* source, std::span<std::byte> destination) noexcept {
  iovec local{destination.data(), destination.size()};
  iovec remote{const_cast<void*>(source), destination.size()};
  const ssize_t size = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  return size < 0 ? 0 : static_cast<std::size_t>(size);
}

/// Returns: whether the whole of `*at` was copied into `target`.
template <typename T>
bool peek(const T* source, T& target) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_writable_bytes(std::span(&target, 1));
  return peek_bytes(static_cast<const void*>(source), bytes) == bytes.size();
}

}}}  // namespace motet::MOTET_ABI::detail
