// SPDX-License-Identifier: MIT
// See posix/clients/client.hpp.
#include "posix/clients/client.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace clients {

std::map<std::string_view, library>& libraries() {
  static std::map<std::string_view, library> all;
  return all;
}

std::size_t call_all_polled(connections& all) {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  for (const auto& each : all) {
    auto& one = static_cast<polled_client&>(*each);
    epoll_event interest{EPOLLIN, {.ptr = &one}};
    one.begin();
    if (::epoll_ctl(poll, EPOLL_CTL_ADD, one.descriptor(), &interest) != 0)
      throw std::runtime_error("epoll_ctl");
  }
  std::size_t successes = 0;
  for (std::size_t left = all.size(); left > 0;) {
    std::array<epoll_event, 256> events{};
    const int count = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0) throw std::runtime_error("epoll_wait");
    for (int i = 0; i < count; ++i) {
      auto& one = *static_cast<polled_client*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (const std::optional<bool> succeeded = one.proceed()) {
        ::epoll_ctl(poll, EPOLL_CTL_DEL, one.descriptor(), nullptr);
        successes += *succeeded ? 1 : 0;
        --left;
      }
    }
  }
  ::close(poll);
  return successes;
}

}  // namespace clients
