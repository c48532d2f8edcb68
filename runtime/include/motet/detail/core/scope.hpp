// SPDX-License-Identifier: MIT
// The parts of a fiber's body that can end before the body does, and those that nothing may
// interrupt: objects on the fiber's stack, linked from the innermost outwards.
#pragma once

#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/timer.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct control_block;

/// An interruption that lasts until its scope, or the fiber's body, is left.
struct lasting_interruption {
  lasting_interruption() noexcept = default;
  lasting_interruption(const char* text, call_site site) noexcept
      : reason(interruption::reason(text, site)) {}

  std::uint64_t id = 0;  // unique; identifies its `cancelled`
  cancel_reason reason = interruption::reason("");
  shared_cause as_cause;          // `reason`, once its fiber has asked others to end
  bool thrown = false;            // at least once;
  std::uint64_t scopes_then = 0;  // the newest scope's number when this was last thrown
  bool handled = false;           // a handler has reached a switchpoint, at handled_since
  clock::time_point handled_since{};
};

enum class scope_kind : std::uint8_t {
  ends,       // can end, and then interrupts what is inside
  shields,    // keeps what is outside from interrupting
  announces,  // requests a stop of a std::stop_token when it is interrupted
};

/// Entered by its constructor, left by its destructor, in the running fiber.
class scope_entry {
 public:
  explicit scope_entry(scope_kind type);
  scope_entry(const scope_entry&) = delete;
  scope_entry& operator=(const scope_entry&) = delete;

  control_block* fiber;
  scope_entry* outer;
  unsigned depth;  // unwind_depth() of the fiber when it entered
  scope_kind kind;

 protected:
  ~scope_entry() noexcept;
};

class shield_scope : public scope_entry {
 public:
  shield_scope() : scope_entry(scope_kind::shields) {}
};

/// A scope that can end. Makes room for one timer.
class scope : public scope_entry {
 public:
  /// Throws: std::bad_alloc before anything has happened.
  scope(call_site site, const char* text, const atomic<bool>* stop_flag = nullptr,
        const cancel_reason* given_then = nullptr);
  /// From now on it can neither end nor interrupt.
  ~scope();

  /// Returns: whether `c` was thrown because this very scope ended.
  bool caused(const cancelled& c) const noexcept { return interruption::id_of(c) == cause.id; }

  void end() noexcept;

  struct scope_timer : timer {
    scope* owner = nullptr;
    bool packed = false;  // its migrating fiber rearms it on arrival
  };

  lasting_interruption cause;
  const atomic<bool>* asked_remotely;  // if given, set by another thread that wants it to end
  const cancel_reason* given_reason;   // if not null, the reason, once the scope has ended
  bool ended = false;
  bool ended_call = false;  // it has made a call of the C library fail, which threw nothing
  scope_timer alarm;        // its deadline; once it has ended, the end of a handler's grace
};

/// A scope that a deadline ends.
class timed_scope : public scope {
 public:
  timed_scope(clock::duration limit, call_site site);
  timed_scope(clock::time_point due, call_site site);

  bool set_end(clock::time_point later);
  clock::time_point due() const noexcept { return alarm.due; }
  void check_thread() const;
};

}}}  // namespace motet::MOTET_ABI::detail
