// SPDX-License-Identifier: MIT
// See motet/move_on_when_closed.hpp.
#include <poll.h>

#include <cerrno>
#include <motet/errors.hpp>
#include <motet/io.hpp>
#include <motet/move_on_when_closed.hpp>
#include <system_error>

#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void watch_peer(group& watchers, int socket, const std::stop_source& stop) {
  if (socket < 0) throw_errno(EBADF, "wait for a hang-up", socket);
  watchers.spin({.name = "watches a peer"}, [socket, stop = stop]() mutable {
    try {
      io::wait_fd(socket, POLLRDHUP);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::bad_file_descriptor) return;  // closed on this side
      throw;
    }
    stop.request_stop();
  });
}

}}}  // namespace motet::MOTET_ABI::detail
