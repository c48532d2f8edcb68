// SPDX-License-Identifier: MIT
// One execution of a model. A step is an access to an atomic, a fence, or a call on a mutex, a
// futex or a descriptor.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "explorer/accesses.hpp"
#include "explorer/controller.hpp"
#include "explorer/limits.hpp"
#include "explorer/memory.hpp"
#include "explorer/search.hpp"

namespace explorer {

class world final : public accesses {
 public:
  world(search& choices, motet::detail::stack_pool& stacks, const limits& most)
      : accesses(choices, stacks, most) {
    current_controller = current() = this;
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() { current_controller = current() = nullptr; }

  /// The execution that goes on.
  static world*& current() {
    static world* value = nullptr;
    return value;
  }

  void begin(std::function<void()> model) { threads_.begin(std::move(model)); }

  // For models.

  /// Returns: the number of the new thread.
  std::size_t add_thread(std::function<void()> body) {
    const std::size_t fresh = threads_.add(std::move(body));
    history_.begin(number(), fresh);
    return fresh;
  }
  /// Runs the threads. Returns when all have ended; never returns if they fail.
  void run() {
    threads_.run();
    for (std::size_t i = 1; i < threads_.count(); ++i) history_.join(0, i);
  }
  void check_read(plain_history& variable) {
    if (!history_.read(number(), variable)) fail("a data race: a read and a write");
  }
  void check_write(plain_history& variable) {
    if (!history_.write(number(), variable)) fail("a data race: a write");
  }

  void lock(const void* mutex) {
    threads_.before({action::other, mutex, false});
    lock_state& state = locks_[mutex];
    while (state.held) threads_.block(mutex);
    state.held = true;
    history_.acquire(number(), state.released);
    note("lock of mutex", index_of(mutex), 0, {});
  }
  bool try_lock(const void* mutex) {
    threads_.before({action::other, mutex, false});
    lock_state& state = locks_[mutex];
    note("try_lock of mutex", index_of(mutex), state.held ? 0 : 1, {});
    if (std::exchange(state.held, true)) return false;
    history_.acquire(number(), state.released);
    return true;
  }
  void unlock(const void* mutex) {
    threads_.before({action::other, mutex, false});
    lock_state& state = locks_[mutex];
    if (!state.held) fail("a mutex that nobody holds is unlocked");
    history_.release(number(), state.released);
    state.held = false;
    threads_.wake(mutex);
    note("unlock of mutex", index_of(mutex), 0, {});
  }

  void detach(std::size_t thread) { threads_.detach(thread); }
  void join(std::size_t thread) {
    threads_.join(thread);
    history_.join(number(), thread);
  }

  /// FUTEX_WAIT: blocks until futex_wake(), unless the newest value of the word is not `expected`.
  void futex_wait(const cell& word, bits expected) {
    const std::size_t location = step(action::other, word, std::memory_order_relaxed);
    read(location, history_.newest(location), std::memory_order_relaxed, {});
    if (word.get() == expected) threads_.block(word.address);
    note("end of a wait on atomic", location, 0, {});
  }
  /// FUTEX_WAKE of one thread. The word may have ended.
  void futex_wake(const void* word) {
    threads_.before({action::other, word, false});
    threads_.wake_one(word);
    note("wake of atomic", index_of(word), 0, {});
  }

  /// The calling thread is about to write to an eventfd.
  void note_event(int descriptor) {
    const void* const number_of_event = key_of(descriptor);
    threads_.before({action::other, number_of_event, false});
    history_.release(number(), events_written_[number_of_event]);
    threads_.wake(number_of_event);
    note("write to descriptor", static_cast<std::size_t>(descriptor), 0, {});
  }
  /// Another eventfd may get the number.
  void note_close(int descriptor) { events_written_.erase(key_of(descriptor)); }
  threads::time_point now() const { return threads_.now(); }
  /// Waits for a write to an eventfd, which does not block, or for the deadline.
  void read_event(int descriptor, threads::time_point deadline = threads::time_point::max()) {
    const void* const number_of_event = key_of(descriptor);
    threads_.before({action::other, number_of_event, false});
    std::uint64_t count = 0;
    while (::read(descriptor, &count, sizeof count) < 0) {
      if (!threads_.block_until(number_of_event, deadline)) break;
    }
    history_.acquire(number(), events_written_[number_of_event]);
    note("read from descriptor", static_cast<std::size_t>(descriptor), count, {});
  }

 private:
  struct lock_state {
    bool held = false;
    knowledge released;
  };

  std::size_t index_of(const void* object) {
    return indices_.try_emplace(object, indices_.size()).first->second;
  }
  static const void* key_of(int descriptor) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(descriptor) + 1);
  }

  std::unordered_map<const void*, lock_state> locks_;
  std::unordered_map<const void*, knowledge> events_written_;
  std::unordered_map<const void*, std::size_t> indices_;  // of what a report numbers
};

}  // namespace explorer
