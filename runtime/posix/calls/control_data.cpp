// SPDX-License-Identifier: MIT
// See posix/calls/control_data.hpp.
#include "posix/calls/control_data.hpp"

#include <algorithm>
#include <cstring>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

bool is_of_descriptors(const cmsghdr& header) noexcept {
  return header.cmsg_level == SOL_SOCKET && header.cmsg_type == SCM_RIGHTS;
}

cmsghdr* next(const msghdr& message, cmsghdr* header) noexcept {
  return CMSG_NXTHDR(const_cast<msghdr*>(&message), header);
}

/// Copies as many of the descriptors as there is room for, and closes the others.
void add(const cmsghdr& header, msghdr& message, std::size_t capacity) noexcept {
  const std::size_t count = (header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  const std::size_t room = capacity - std::min(capacity, message.msg_controllen);
  const std::size_t fitting = room < CMSG_LEN(sizeof(int)) ? 0 : (room - CMSG_LEN(0)) / sizeof(int);
  const std::size_t copied = std::min(count, fitting);
  const unsigned char* const numbers = CMSG_DATA(const_cast<cmsghdr*>(&header));
  if (copied > 0) {
    auto* const end = static_cast<std::byte*>(message.msg_control) + message.msg_controllen;
    cmsghdr fresh{};
    fresh.cmsg_len = CMSG_LEN(copied * sizeof(int));
    fresh.cmsg_level = SOL_SOCKET;
    fresh.cmsg_type = SCM_RIGHTS;
    std::memcpy(end, &fresh, CMSG_LEN(0));
    std::memcpy(end + CMSG_LEN(0), numbers, copied * sizeof(int));
    message.msg_controllen += std::min(room, CMSG_SPACE(copied * sizeof(int)));
  }
  for (std::size_t i = copied; i < count; ++i) {
    int number = -1;
    std::memcpy(&number, numbers + i * sizeof number, sizeof number);
    sys::close(number);
    message.msg_flags |= MSG_CTRUNC;
  }
}

}  // namespace

bool has_descriptors(const msghdr& message) noexcept {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = next(message, header)) {
    if (is_of_descriptors(*header)) return true;
  }
  return false;
}

void later_control::prepare(msghdr& part) noexcept {
  if (capacity_ == 0) return;
  part.msg_control = buffer_.data();
  part.msg_controllen = buffer_.size();
}

bool later_control::move(const msghdr& part, msghdr& message) const noexcept {
  bool moved = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&part); header != nullptr; header = next(part, header)) {
    if (!is_of_descriptors(*header)) continue;
    add(*header, message, capacity_);
    moved = true;
  }
  return moved;
}

}}}  // namespace motet::MOTET_ABI::detail
