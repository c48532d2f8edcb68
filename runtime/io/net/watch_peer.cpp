// SPDX-License-Identifier: MIT
// See motet/cancellation/move_on_when_closed.hpp.
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/cancellation/move_on_when_closed.hpp>
#include <motet/io/io.hpp>
#include <motet/sync/time.hpp>
#include <system_error>
#include <utility>

#include "io/exact_io.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::chrono::milliseconds pause_in_vain{32};

/// Something in the error queue makes a socket ready too, for as long as nobody takes it.
/// Returns: whether the peer has hung up; false if the socket was closed on this side.
bool await_hang_up(const descriptor_guard& socket) {
  try {
    while (!socket.closed()) {
      if ((io::wait_fd(socket.get(), POLLRDHUP) & (POLLRDHUP | POLLHUP)) != 0) return true;
      sleep_for(pause_in_vain);
    }
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::bad_file_descriptor) throw;
  }
  return false;
}

}  // namespace

/// The fiber begins later, when the number may be another file's.
void monitor_peer(group& monitors, int socket, const std::stop_source& stop) {
  if (socket < 0) throw_errno(EBADF, "wait for a hang-up", socket);
  auto guard = std::make_unique<const descriptor_guard>(socket);
  monitors.spin({.name = "watches a peer"}, [guard = std::move(guard), stop = stop]() mutable {
    if (await_hang_up(*guard)) stop.request_stop();
  });
}

}}}  // namespace motet::MOTET_ABI::detail
