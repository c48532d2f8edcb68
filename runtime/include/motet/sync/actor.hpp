// SPDX-License-Identifier: MIT
// An actor is a fiber with an inbox: other fibers send it messages, and it alone reads them.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <motet/fibers/fiber.hpp>
#include <motet/sync/channel.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

struct actor_options {
  std::string_view name = {};
  /// How many messages may wait; with 0, send() waits until its message is received.
  std::optional<std::size_t> capacity = std::nullopt;  // nullopt: as many as memory holds
};

/// A handle to an actor; copies refer to the same actor. The actor is a child of the fiber that
/// created it, on the same thread. It ends when its body does; destroying handles neither ends nor
/// awaits it.
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
  actor(const actor_options& options, F body, call_site site = call_site::here())
      : inbox_(options.capacity.has_value() ? std::make_shared<channel<M>>(*options.capacity)
                                            : std::make_shared<channel<M>>(unbounded)),
        fiber_(spin(
            spin_options{.name = std::string(options.name)},
            [closer = closing(inbox_), body = std::move(body)]() mutable {
              inbox messages(*closer.messages);
              body(messages);
            },
            site)) {}

  /// Sends `message`, waiting for room if the inbox is bounded. Messages of one sender arrive in
  /// order. If send() throws, the caller keeps the message. Any thread.
  /// Switchpoint; switches only if it must wait.
  /// Throws: channel_closed if the actor has ended, or ends meanwhile;
  ///         a pending interruption; std::bad_alloc.
  void send(M&& message) const { inbox_->push(std::move(message)); }
  /// The same for a message that is copied.
  /// Switchpoint; switches only if it must wait.
  void send(const M& message) const { inbox_->push(message); }

  /// As send(), but never waits. Any thread.
  /// Returns: false if send() would wait; the caller keeps the message.
  /// Not a switchpoint.
  /// Throws: channel_closed if the actor has ended; std::bad_alloc.
  bool try_send(M&& message) const { return inbox_->try_push(std::move(message)); }
  /// The same for a message that is copied.
  /// Not a switchpoint.
  bool try_send(const M& message) const { return inbox_->try_push(message); }

  /// Waits for the actor's end. Any thread.
  /// Switchpoint.
  /// Throws: what its body has thrown; as fiber_ref::await().
  void await() const { fiber_.await(); }

  /// Asks the actor to end. Any thread.
  /// Not a switchpoint.
  cancel_result cancel(const char* reason) const noexcept { return fiber_.cancel(reason); }

 private:
  /// Closes the inbox once the body is over, or will not run; messages left in it are destroyed.
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

/// The receiving end, for use in the actor's body only.
template <typename M>
class actor<M>::inbox {
 public:
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  /// Waits for a message, and takes the oldest one.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption.
  M receive() {
    if (passed_over_.empty()) return next();
    return take(passed_over_.begin());
  }

  /// Waits for a message for which `predicate(message)` is true, and takes the oldest such message;
  /// the others stay, in order. Messages that were passed over no longer count towards capacity.
  /// `predicate` must not receive.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption, what `predicate` throws; std::bad_alloc.
  template <typename F>
  M receive_if(F predicate) {
    for (auto it = passed_over_.begin(); it != passed_over_.end(); ++it) {
      if (predicate(std::as_const(**it))) return take(it);
    }
    for (;;) {
      receive_more();
      const auto last = std::prev(passed_over_.end());
      if (predicate(std::as_const(**last))) return take(last);
    }
  }

 private:
  friend class actor;
  explicit inbox(channel<M>& messages) : messages_(messages) {}

  using iterator = typename std::list<std::optional<M>>::iterator;

  M next() { return *messages_.pop(); }

  /// Adds the list node before the message is taken, so that a bad_alloc loses no message.
  void receive_more() {
    const iterator last = passed_over_.emplace(passed_over_.end());
    try {
      last->emplace(next());
    } catch (...) {
      passed_over_.erase(last);
      throw;
    }
  }

  M take(iterator position) {
    M message = std::move(**position);
    passed_over_.erase(position);
    return message;
  }

  channel<M>& messages_;
  std::list<std::optional<M>> passed_over_;
};

}}  // namespace motet::MOTET_ABI
