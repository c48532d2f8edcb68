// SPDX-License-Identifier: MIT
// See http/server/admission.hpp.
#include "http/server/admission.hpp"

#include <netinet/in.h>  // IWYU pragma: keep
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <motet/fibers/fiber.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

using namespace std::chrono_literals;

/// A queue that was short within this time takes up a burst, and no request waits longer in it.
constexpr clock::duration interval = 100ms;

}  // namespace

[[gnu::noinline]] admission& admission::here(clock::duration limit) noexcept {
  static thread_local admission of_thread;
  of_thread.limit_ = limit;
  return of_thread;
}

bool admission::refuses(clock::duration delay) const noexcept {
  const bool has_work = requests_.load(std::memory_order_relaxed) > 0;
  return has_work && delay > limit(clock::now());
}

bool admission::refuses_at_start(clock::duration delay) noexcept {
  const clock::time_point present = clock::now();
  if (delay <= limit_) short_at_ = present;
  return in_line_ > 0 && delay > limit(present);
}

clock::duration admission::limit(clock::time_point present) const noexcept {
  const bool overloaded = present - short_at_ >= interval;
  return overloaded ? limit_ : std::max(limit_, interval);
}

/// Polls first, if a poll is due: requests that have arrived are decided on as well.
void admission::in_service::let_others_be_decided() {
  struct line_count_guard {
    explicit line_count_guard(int& count) noexcept : line(count) { ++line; }
    ~line_count_guard() { --line; }
    int& line;
  };
  const line_count_guard guard(door_.in_line_);
  checkpoint();
  if (detail::here().any_runnable()) snooze();
}

/// Source: tcp(7), TCP_INFO.
clock::duration waiting_time(int socket) {
  if (detail::here().time.virtual_time()) return clock::duration(0);
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    return std::chrono::milliseconds(info.tcpi_last_data_recv);
  }
  const clock::time_point start = clock::now();
  snooze();
  return clock::now() - start;
}

}}}  // namespace motet::MOTET_ABI::http
