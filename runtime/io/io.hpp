// SPDX-License-Identifier: MIT
// How a verb has its operation performed: throwing, or with an error code.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <motet/runtime/backend.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// Linux moves no more bytes in one call; so a result fits an int. Source: read(2).
inline constexpr std::size_t most_bytes = 0x7ffff000;

/// An operation that reads to `buffer`, or writes from it, at most as much as one call moves.
inline operation transfer(verb kind, int fd, std::span<const std::byte> buffer,
                          int flags = 0) noexcept {
  operation op;
  op.kind = kind;
  op.fd = fd;
  op.flags = flags;
  op.buffer = const_cast<std::byte*>(buffer.data());
  op.length = static_cast<std::uint32_t>(std::min(buffer.size(), most_bytes));
  return op;
}

/// Returns: the operation's result; -ECANCELED without effect if something is pending; -EBADF
///          without asking the kernel for a negative descriptor.
/// Throws: as here().
std::int32_t perform_now(operation& op, const char* call);
/// The same on `thread`, which is the caller's. Does not throw; waits for the
/// result.
std::int32_t perform_now(thread_state& thread, operation& op, const char* call) noexcept;

/// Returns: whether a call must end with -ECANCELED, without effect, because something is pending
///          for the fiber.
/// Throws: as here().
bool refused_by_pending();

/// For calls that cannot be taken back: also sees a time limit that no poll has found yet.
/// Throws: a pending interruption.
void deliver_passed_limits();

/// Returns: `result`, if it is no error.
/// Throws: std::system_error; for -ECANCELED a pending interruption.
std::size_t check_result(std::int32_t result, const char* call, int fd);

/// Tells how `call` went, which returns a result or minus an errno value, without throwing. What is
/// pending stays so: operation_canceled.
template <typename Call>
std::size_t quietly(std::error_code& error, Call call) noexcept {
  std::int32_t result = 0;
  try {
    result = call();
  } catch (const std::system_error& failure) {
    error = failure.code();
    return 0;
  } catch (...) {
    result = -EPERM;  // misuse, or the thread's runtime has ended or cannot start
  }
  error = result < 0 ? std::error_code(-result, std::system_category()) : std::error_code();
  if (result == -ECANCELED) error = std::make_error_code(std::errc::operation_canceled);
  return result < 0 ? 0 : static_cast<std::size_t>(result);
}

/// Why a call is refused before it asks the kernel.
enum class refusal : std::uint8_t { none, invalid, too_many_buffers, waits_for_all };

/// What a verb performs. One function describes the call for both of the verb's forms, the throwing
/// one and that with an error code.
struct io_call {
  operation op;
  const char* name;
  refusal reason = refusal::none;
};

/// Throws: std::system_error; std::invalid_argument for misuse; a pending interruption.
std::size_t perform(io_call&& call);
std::size_t perform(io_call&& call, std::error_code& error) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
