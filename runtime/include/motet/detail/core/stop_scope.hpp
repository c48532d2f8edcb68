// SPDX-License-Identifier: MIT
// The bridges between scopes and std::stop_token: a scope that a token ends, and a token that an
// interruption stops.
#pragma once

#include <exception>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/core/scope.hpp>
#include <stop_token>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Ends when a stop is requested, on any thread. Its reason is the stop, or `reason`, if that is
/// not null.
class stop_scope : public scope {
 public:
  stop_scope(std::stop_token token, call_site site, const cancel_reason* reason = nullptr);

 private:
  struct end_scope {
    stop_scope* self;
    void operator()() const noexcept { self->stop_requested(); }
  };
  void stop_requested() noexcept;

  control_block& owner_;  // the block at home, even of a traveller
  atomic<bool> stop_requested_{false};
  std::stop_callback<end_scope> callback_;  // destroyed first: waits for a running callback
};

/// Its token is stopped when what is inside is interrupted, or left by an exception.
class announcing_scope : public scope_entry {
 public:
  announcing_scope() : scope_entry(scope_kind::announces) {}
  ~announcing_scope() {
    if (std::uncaught_exceptions() > exceptions_) source_.request_stop();
  }
  std::stop_token token() const noexcept { return source_.get_token(); }
  void announce() noexcept { source_.request_stop(); }

 private:
  std::stop_source source_;
  int exceptions_ = std::uncaught_exceptions();
};

}}}  // namespace motet::MOTET_ABI::detail
