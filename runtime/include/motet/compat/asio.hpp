// SPDX-License-Identifier: MIT
// Fibers and standalone Asio (1.22 or later): a fiber can wait for an Asio operation, an Asio
// handler can run on a fiber, a fiber can move to an Asio loop and back, and a thread whose loop is
// Asio's can have fibers. motet.hpp does not include this, and the library does not need Asio.
#pragma once

#include <fcntl.h>

#include <asio/any_io_executor.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <exception>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/io/fd.hpp>
#include <motet/runtime/embed.hpp>
#include <motet/sync/event.hpp>
#include <motet/threads/portal.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace compat {

/// A completion token: `socket.async_read_some(buffer, use_fiber)` makes the fiber wait until
/// the operation completes, and returns the handler's arguments, several as a std::tuple. If
/// the first is an error, it is thrown instead: a std::exception_ptr as it is, a
/// std::error_code as std::system_error. The loop may run on any thread; on the fiber's own thread,
/// either another fiber or an asio_host must run it. An interruption emits a cancellation signal
/// on the executor of the operation's I/O object. If that aborts the operation, the
/// interruption is thrown; otherwise the operation's result is returned, and the interruption
/// is thrown at the next switchpoint. If the handler is destroyed without a call,
/// broken_resumer is thrown.
struct use_fiber_t {};
inline constexpr use_fiber_t use_fiber{};

/// An Asio execution context whose executor passes functions to `target`: handlers that are bound
/// to it, for example by `asio::bind_executor(fibers.get_executor(), f)`, run on the fibers of
/// `target`, and may wait. Any thread. It must outlive its executors.
class asio_context : public asio::execution_context {
 public:
  class executor_type;

  /// Not a switchpoint.
  explicit asio_context(motet::executor target) : target_(std::move(target)) {}
  /// Not a switchpoint.
  ~asio_context() { shutdown(); }
  /// Not a switchpoint.
  executor_type get_executor() noexcept;

 private:
  motet::executor target_;
};

/// See Asio's requirements for executors.
class asio_context::executor_type {
 public:
  explicit executor_type(asio_context& context) noexcept : context_(&context) {}

  /// Switchpoint if the post() of that executor makes the caller wait; else not a switchpoint.
  /// Throws: as executor::post().
  template <typename F>
  void execute(F&& f) const {
    context_->target_.post(std::forward<F>(f));
  }
  /// Not a switchpoint.
  asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_; }
  /// Not a switchpoint.
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  /// Not a switchpoint.
  friend bool operator==(const executor_type& a, const executor_type& b) noexcept = default;

 private:
  asio_context* context_;
};

inline asio_context::executor_type asio_context::get_executor() noexcept {
  return executor_type(*this);
}

/// An Asio loop as a place for fibers: `asio_place loop(io.get_executor()); portal there(loop);`.
class asio_place {
 public:
  /// Not a switchpoint.
  explicit asio_place(asio::any_io_executor loop) : loop_(std::move(loop)) {}

  /// Not a switchpoint.
  template <typename F>
  void post(F&& f) {
    asio::post(loop_, std::forward<F>(f));
  }

 private:
  asio::any_io_executor loop_;
};

/// While it lives, its Asio loop runs the fibers of this thread. It is made, and
/// destroyed, in the thread's main fiber, which runs the loop: io_context::run() does not return by
/// itself meanwhile, and throws the failure of a child of the main fiber.
class asio_host {
 public:
  /// Not a switchpoint.
  /// Throws: as poll_descriptor(); std::system_error.
  explicit asio_host(const asio::any_io_executor& loop) : news_(loop) {
    fd copy(::fcntl(poll_descriptor(), F_DUPFD_CLOEXEC, 0));
    if (!copy) throw std::system_error(errno, std::system_category(), "fcntl");
    news_.assign(copy.get());
    static_cast<void>(copy.release());
    wait();
  }
  asio_host(const asio_host&) = delete;
  asio_host& operator=(const asio_host&) = delete;
  /// Not a switchpoint.
  ~asio_host() { *alive_ = false; }

 private:
  void wait() {
    news_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this, alive = alive_](std::error_code error) {
                       if (!*alive || error) return;
                       wait();
                       run_ready();
                     });
  }

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  asio::posix::stream_descriptor news_;
};

namespace detail {

/// What the fiber and the handler of one operation share; in the fiber's frame, which stays until
/// `completion` is set.
template <typename... Values>
struct asio_wait {
  event completion;
  std::optional<std::tuple<Values...>> values;  // none: the handler was dropped
  std::shared_ptr<asio::cancellation_signal> call_off =
      std::make_shared<asio::cancellation_signal>();
};

template <typename... Values>
class asio_handler {
 public:
  using cancellation_slot_type = asio::cancellation_slot;

  explicit asio_handler(asio_wait<Values...>& waits) noexcept
      : waits_(&waits), call_off_(waits.call_off) {}
  asio_handler(asio_handler&& other) noexcept
      : waits_(std::exchange(other.waits_, nullptr)), call_off_(std::move(other.call_off_)) {}
  asio_handler& operator=(asio_handler&&) = delete;
  ~asio_handler() {
    if (waits_ != nullptr) end();
  }

  cancellation_slot_type get_cancellation_slot() const noexcept { return call_off_->slot(); }

  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    waits_->values.emplace(std::forward<Arguments>(arguments)...);
    end();
  }

 private:
  /// A later signal has no effect, because its operation may have been destroyed.
  void end() noexcept {
    call_off_->slot().clear();
    std::exchange(waits_, nullptr)->completion.set();
  }

  asio_wait<Values...>* waits_;
  std::shared_ptr<asio::cancellation_signal> call_off_;
};

template <typename First, typename... Others>
bool was_aborted(const std::tuple<First, Others...>& values) {
  if constexpr (std::is_same_v<First, std::error_code>) {
    return std::get<0>(values) == asio::error::operation_aborted;
  } else {
    return false;
  }
}
inline bool was_aborted(const std::tuple<>&) {
  return false;
}

/// Returns: nothing, the value, or a tuple of the values.
template <typename... Values>
auto returned(Values&&... values) {
  if constexpr (sizeof...(Values) == 1) {
    return (std::move(values), ...);
  } else if constexpr (sizeof...(Values) > 1) {
    return std::tuple<Values...>(std::move(values)...);
  }
}

template <typename First, typename... Others>
auto returned_or_thrown(First&& first, Others&&... rest) {
  if constexpr (std::is_same_v<First, std::error_code>) {
    if (first) throw std::system_error(first);
    return returned(std::move(rest)...);
  } else if constexpr (std::is_same_v<First, std::exception_ptr>) {
    if (first) std::rethrow_exception(first);
    return returned(std::move(rest)...);
  } else {
    return returned(std::move(first), std::move(rest)...);
  }
}
inline void returned_or_thrown() {}

/// Called in a handler of the interruption: asks for the end of the operation and waits for it.
/// Returns: whether the operation was aborted.
template <typename Wait, typename Where>
bool end_early(Wait& waits, const Where& position) {
  const motet::detail::internal_shield until_it_is_over;
  if constexpr (requires { position.get_executor(); }) {
    try {
      if (!waits.completion.is_set()) {
        asio::dispatch(position.get_executor(), [call_off = waits.call_off] {
          call_off->emit(asio::cancellation_type::terminal);
        });
      }
    } catch (...) {  // out of memory: the operation ends on its own
    }
  }
  waits.completion.wait();
  return !waits.values || was_aborted(*waits.values);
}

/// Waits for the end of the operation that `position` has begun.
template <typename Wait, typename Where>
auto await_end_of(Wait& waits, const Where& position) {
  try {
    waits.completion.wait();
  } catch (const cancelled&) {
    if (end_early(waits, position)) throw;  // else the next switchpoint throws it again
  } catch (...) {
    if (end_early(waits, position)) throw;
    current().raise(std::current_exception());
  }
  if (!waits.values) throw broken_resumer();
  return std::apply([](auto&... value) { return returned_or_thrown(std::move(value)...); },
                    *waits.values);
}

}  // namespace detail

}}}  // namespace motet::MOTET_ABI::compat

template <typename... Values>
class asio::async_result<motet::compat::use_fiber_t, void(Values...)> {
 public:
  template <typename Initiation, typename... Arguments>
  static auto initiate(Initiation&& begin, motet::compat::use_fiber_t, Arguments&&... arguments) {
    using namespace motet::compat::detail;
    motet::detail::here_core().deliver();  // else one that ends at once is not interrupted
    asio_wait<std::decay_t<Values>...> waits;
    const auto position = begin;
    std::forward<Initiation>(begin)(asio_handler<std::decay_t<Values>...>(waits),
                                    std::forward<Arguments>(arguments)...);
    return await_end_of(waits, position);
  }
};
