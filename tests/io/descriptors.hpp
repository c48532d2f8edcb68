// SPDX-License-Identifier: MIT
// Descriptors in a message, without motet.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace testing {

/// A message of one byte, 'd', with one or two descriptors.
struct descriptor_letter {
  explicit descriptor_letter(std::span<const int> numbers) noexcept {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(numbers.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(numbers.size_bytes());
    std::memcpy(CMSG_DATA(head), numbers.data(), numbers.size_bytes());
  }
  explicit descriptor_letter(const int& number) noexcept
      : descriptor_letter(std::span(&number, 1)) {}

  char byte = 'd';
  iovec vector{&byte, 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
};

}  // namespace testing
