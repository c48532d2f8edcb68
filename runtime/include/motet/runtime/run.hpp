// SPDX-License-Identifier: MIT
// A runtime with a definite beginning and end, for tests, plugins and foreign threads. A program
// whose main() simply uses motet does not need this.
#pragma once

#include <motet/runtime/options.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

struct control_block;

/// This thread's runtime from construction to end().
class session {
 public:
  explicit session(const options& settings);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  /// Ends every fiber.
  /// Throws: the first failure that has reached no fiber.
  void end();

 private:
  control_block* main_;
  bool ended_ = false;
};

}  // namespace detail

/// Calls `f` as the main fiber of a new runtime on this thread, then cancels and awaits every fiber
/// that is left. A runtime that has begun with this thread's first use of motet is replaced, if
/// nothing is left of that use but open descriptors.
/// Returns: what `f` returned.
/// Switchpoint.
/// Throws: what `f` throws, else the first failure that has reached no fiber; std::logic_error if
///         the thread has a runtime that is in use; std::invalid_argument for an impossible option;
///         std::system_error if the chosen backend is not available.
template <typename F>
auto run(const options& settings, F&& f) -> std::invoke_result_t<F&> {
  detail::session session(settings);
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    f();
    session.end();
  } else {
    std::invoke_result_t<F&>&& result = f();
    session.end();
    return static_cast<std::invoke_result_t<F&>&&>(result);
  }
}

template <typename F>
auto run(F&& f) -> std::invoke_result_t<F&> {
  return run(options{}, std::forward<F>(f));
}

/// Returns: the backend that this thread uses: "io_uring", "libev" or "sim".
/// Not a switchpoint.
/// Throws: as the first use of motet on a thread does.
std::string_view backend_name();

}}  // namespace motet::MOTET_ABI
