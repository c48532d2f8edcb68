// SPDX-License-Identifier: MIT
// Descriptors that come with a message, when a call collects several parts of a stream.
// Source: cmsg(3), unix(7).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether descriptors have come with the message.
bool has_descriptors(const msghdr& message) noexcept;

/// The control data of a later part. Only its descriptors are used, because other control data
/// would repeat that of the first part.
class later_control {
 public:
  /// `capacity`: of the buffer for control data that the caller of recvmsg(2) has given.
  explicit later_control(std::size_t capacity) noexcept : capacity_(capacity) {}

  void prepare(msghdr& part) noexcept;
  /// Adds the descriptors that have come with `part` to the control data of `message`. Those for
  /// which there is no room are closed, as in the kernel.
  /// Returns: whether any have come.
  bool move(const msghdr& part, msghdr& message) const noexcept;

 private:
  static constexpr std::size_t most = 253;  // SCM_MAX_FD: in one message
  std::size_t capacity_;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(most * sizeof(int)) + 256> buffer_;
};

}}}  // namespace motet::MOTET_ABI::detail
