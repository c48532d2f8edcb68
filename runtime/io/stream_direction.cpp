// SPDX-License-Identifier: MIT
// See motet/detail/io/stream_direction.hpp.
#include <motet/detail/io/stream_direction.hpp>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

std::size_t direction_lock::write(std::span<const std::byte> bytes,
                                  std::error_code& error) noexcept {
  const std::size_t count =
      calls_->move(stream_, {const_cast<std::byte*>(bytes.data()), bytes.size()}, error);
  if (count == 0 && !bytes.empty() && !error) {
    error = std::make_error_code(std::errc::io_error);  // or its caller would try for ever
  }
  return count;
}

void throw_stream_error(const std::error_code& error, const char* call) {
  if (error == std::errc::operation_canceled) {
    here().deliver();
    here().check_may_wait();
  }
  throw std::system_error(error, call);
}

}}}  // namespace motet::MOTET_ABI::detail
