// SPDX-License-Identifier: MIT
// The state of a primitive whose calls and leases may outlive the primitive. The primitive, its
// calls and its leases own the state together, and the last owner destroys it.
#pragma once

#include <cstddef>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The base of such a state.
template <typename Sharing>
struct shared_lifetime {
  /// Called when the primitive ends.
  /// Returns: whether the state still has other owners.
  bool end() noexcept {
    sharing.lock_at_end();
    ended = true;
    const bool survives = owners > 1;
    sharing.unlock();
    return survives;
  }

  Sharing sharing;  // guards the members below, and those of the derived state
  bool ended = false;
  std::size_t owners = 1;  // the primitive at first
};

template <typename State>
class shared_owner {
 public:
  /// The first owner of a state that was just made with `new`.
  explicit shared_owner(State* state) noexcept : state_(state) {}
  explicit shared_owner(State& state) : state_(&state) {
    const std::lock_guard lock(state.sharing);
    ++state.owners;
  }
  shared_owner(shared_owner&& other) noexcept : state_(taken(other.state_)) {}
  shared_owner& operator=(shared_owner&&) = delete;
  ~shared_owner() {
    if (state_ == nullptr) return;
    state_->sharing.lock_at_end();
    const bool last = --state_->owners == 0;
    state_->sharing.unlock();
    if (last) delete state_;
  }

  explicit operator bool() const noexcept { return state_ != nullptr; }
  State& operator*() const noexcept { return *state_; }
  State* operator->() const noexcept { return state_; }

 private:
  State* state_;
};

}}}  // namespace motet::MOTET_ABI::detail
