// SPDX-License-Identifier: MIT
// See motet/net/listen_fds.hpp.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <motet/base/errors.hpp>
#include <motet/net/listen_fds.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

/// Source: sd_listen_fds(3), SD_LISTEN_FDS_START.
constexpr int first_number = 3;

std::atomic_flag claim;

/// Returns: the number in the environment; none if the variable is not set.
std::optional<int> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number > INT_MAX - first_number) {
    throw std::runtime_error(std::string(name) + " is not a number: \"" + value + "\"");
  }
  return number;
}

/// A count that is too large takes in what this program has opened itself.
/// Throws: std::system_error.
void check_socket(int number) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    detail::throw_errno(errno, "a descriptor of LISTEN_FDS", number);
  }
}

}  // namespace

std::vector<fd> listen_fds() {
  const std::optional<int> process = variable("LISTEN_PID");
  const std::optional<int> count = variable("LISTEN_FDS");
  if (process != ::getpid() || !count || claim.test()) return {};
  for (int number = first_number; number < first_number + *count; ++number) check_socket(number);
  if (claim.test_and_set()) return {};
  std::vector<fd> sockets;
  for (int number = first_number; number < first_number + *count; ++number) {
    detail::sys::fcntl(number, F_SETFD, FD_CLOEXEC);
    sockets.emplace_back(number);
  }
  return sockets;
}

}}}  // namespace motet::MOTET_ABI::net
