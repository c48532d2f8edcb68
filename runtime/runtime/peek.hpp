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

/// Returns: the number of bytes from `at` on copied into `room`; 0 also if the kernel, or a system
///          call filter, forbids it.
inline std::size_t peek_bytes(const void* at, std::span<std::byte> room) noexcept {
  iovec to{room.data(), room.size()};
  iovec from{const_cast<void*>(at), room.size()};
  const ssize_t got = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

/// Returns: whether the whole of `*at` was copied into `to`.
template <typename T>
bool peek(const T* at, T& to) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  return peek_bytes(at, std::as_writable_bytes(std::span(&to, 1))) == sizeof(T);
}

}}}  // namespace motet::MOTET_ABI::detail
