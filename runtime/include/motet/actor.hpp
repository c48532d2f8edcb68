// SPDX-License-Identifier: MIT
// A fiber with an inbox: others send it messages, it alone reads them.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <motet/channel.hpp>
#include <motet/fiber.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

struct actor_options {
  std::string_view name = {};
  /// How many messages may wait; with none, send() waits until its message is received.
  std::optional<std::size_t> capacity = std::nullopt;  // nullopt: as many as memory holds
};

/// A handle to one; copies refer to the same actor. The actor is a fiber of the thread that made
/// it, a child of the fiber that did; it ends when its body does, and destroying handles neither
/// ends nor awaits it.
template <typename M>
class actor {
  static_assert(!std::is_pointer_v<M> && !std::is_reference_v<M>,
                "an actor is sent messages it owns: a pointer or a reference would share what it "
                "points to with the sender (send a std::unique_ptr, or a value)");

 public:
  class inbox;

  /// Spins a fiber that calls `body(inbox&)`.
  /// Not a switchpoint.
  /// Throws: as spin().
  template <typename F>
    requires std::is_invocable_v<F&, inbox&>
  explicit actor(F body, call_site site = call_site::here())
      : actor(actor_options{}, std::move(body), site) {}

  /// Not a switchpoint.
  template <typename F>
    requires std::is_invocable_v<F&, inbox&>
  actor(const actor_options& how, F body, call_site site = call_site::here())
      : inbox_(how.capacity.has_value() ? std::make_shared<channel<M>>(*how.capacity)
                                        : std::make_shared<channel<M>>(unbounded)),
        fiber_(spin(
            spin_options{.name = std::string(how.name)},
            [own = closing(inbox_), body = std::move(body)]() mutable {
              inbox its(*own.messages);
              body(its);
            },
            site)) {}

  /// Sends `message`, waiting for room if the inbox is bounded. Messages of one sender arrive in
  /// order. Where it throws, the message is the caller's still. Any thread.
  /// Switchpoint; switches only if it must wait.
  /// Throws: channel_closed if the actor has ended, or ends meanwhile; what is pending for this
  ///         fiber; std::bad_alloc.
  void send(M&& message) const { inbox_->push(std::move(message)); }
  /// The same with a copy.
  /// Switchpoint; switches only if it must wait.
  void send(const M& message) const { inbox_->push(message); }

  /// As send(), if that needs no waiting. Any thread.
  /// Returns: false if it does; the message is the caller's still.
  /// Not a switchpoint.
  /// Throws: channel_closed if the actor has ended; std::bad_alloc.
  bool try_send(M&& message) const { return inbox_->try_push(std::move(message)); }
  /// The same with a copy.
  /// Not a switchpoint.
  bool try_send(const M& message) const { return inbox_->try_push(message); }

  /// Waits for its end. Any thread.
  /// Switchpoint.
  /// Throws: what its body has thrown; as fiber_ref::await().
  void await() const { fiber_.await(); }

  /// Asks it to end. Any thread.
  /// Not a switchpoint.
  cancel_result cancel(const char* reason) const noexcept { return fiber_.cancel(reason); }

 private:
  /// Lets nobody send once the body is over, or will not run; what was not received is destroyed.
  struct closing {
    explicit closing(const std::shared_ptr<channel<M>>& to_close) : messages(to_close) {}
    closing(closing&&) noexcept = default;
    closing& operator=(closing&&) = delete;
    ~closing() {
      if (messages == nullptr) return;
      messages->close();
      while (messages->try_pop()) {
      }
    }
    std::shared_ptr<channel<M>> messages;
  };

  std::shared_ptr<channel<M>> inbox_;
  fiber_ref fiber_;
};

/// The receiving end, in the actor's body alone.
template <typename M>
class actor<M>::inbox {
 public:
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  /// Waits for a message, and takes the oldest one.
  /// Switchpoint; switches only if it must wait.
  /// Throws: what is pending for this fiber.
  M receive() {
    if (passed_over_.empty()) return next();
    return take(passed_over_.begin());
  }

  /// Waits for a message that `wanted(message)` says yes to, and takes the oldest such; the others
  /// stay, in order. What has been passed over no longer counts for the capacity. `wanted` must not
  /// receive.
  /// Switchpoint; switches only if it must wait.
  /// Throws: what is pending for this fiber, what `wanted` throws; std::bad_alloc.
  template <typename F>
  M receive_if(F wanted) {
    for (auto each = passed_over_.begin(); each != passed_over_.end(); ++each) {
      if (wanted(std::as_const(**each))) return take(each);
    }
    for (;;) {
      receive_more();
      const auto last = std::prev(passed_over_.end());
      if (wanted(std::as_const(**last))) return take(last);
    }
  }

 private:
  friend class actor;
  explicit inbox(channel<M>& messages) : messages_(messages) {}

  using place = typename std::list<std::optional<M>>::iterator;

  M next() { return *messages_.pop(); }

  /// There is a place for a message before it is taken.
  void receive_more() {
    const place last = passed_over_.emplace(passed_over_.end());
    try {
      last->emplace(next());
    } catch (...) {
      passed_over_.erase(last);
      throw;
    }
  }

  M take(place at) {
    M found = std::move(**at);
    passed_over_.erase(at);
    return found;
  }

  channel<M>& messages_;
  std::list<std::optional<M>> passed_over_;
};

}}  // namespace motet::MOTET_ABI
