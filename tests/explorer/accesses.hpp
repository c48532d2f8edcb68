// SPDX-License-Identifier: MIT
// The accesses of an execution to atomics: each is a step, after which the memory model settles
// what the thread knows.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "explorer/controller.hpp"
#include "explorer/limits.hpp"
#include "explorer/memory.hpp"
#include "explorer/mutation.hpp"
#include "explorer/search.hpp"
#include "explorer/threads.hpp"

namespace explorer {

/// A step, as a failure reports it.
struct event {
  std::size_t thread;
  const char* name;
  std::size_t object;
  bits value;
  site where;

  std::string text() const {
    return "thread " + std::to_string(thread) + ": " + name + ' ' + std::to_string(object) + ", " +
           std::to_string(value) + ", in " + where.function + "(), line " +
           std::to_string(where.line) + '\n';
  }
};

class accesses : public controller {
 public:
  accesses(search& choices, motet::detail::stack_pool& stacks, const limits& most)
      : threads_(choices, stacks, most),
        mistakes_(most.mistakes),
        checks_destruction_(most.checks_destruction) {}

  void fail(const char* message) { threads_.fail(message); }
  bool failed() const { return threads_.failed(); }
  bool is_inconclusive() const { return threads_.is_inconclusive(); }
  const std::string& failure() const { return threads_.failure(); }
  const std::vector<event>& events() const { return events_; }

  void begin_lifetime(const cell& target) override {
    atomic_record& fresh = records_[target.address];
    fresh = {new_location(target), {}, true};
    history_.write(number(), fresh.lifetime);
  }
  void end_lifetime(const cell& target) override {
    atomic_record& old = find_record(target);
    const bool is_ordered = history_.write(number(), old.lifetime);
    if (!is_ordered && checks_destruction_) {
      fail("a data race: the destruction of an atomic and an access to it");
    }
    old.alive = false;
  }
  bits load(const cell& source, std::memory_order order, const site& where) override {
    if (const mutation* blind = find(mistakes_, mutation::kind::blind, where)) return blind->value;
    order = order_of(order, where);
    const std::size_t location = step(action::load, source, order);
    const std::size_t newest = history_.newest(location);
    const std::size_t count = newest - oldest(location, order) + 1;
    return read(location, newest - threads_.choose(count), order, where);
  }
  void store(const cell& target, bits value, std::memory_order order, const site& where) override {
    order = order_of(order, where);
    const std::size_t location = step(action::store, target, order);
    history_.store(number(), location, value, order);
    target.set(value);
    note("store to atomic", location, value, where);
  }
  bits update(const cell& target, change how, bits operand, std::memory_order order,
              const site& where) override {
    if (how == change::exchange && find(mistakes_, mutation::kind::torn, where) != nullptr) {
      const bits old = load(target, order, where);
      store(target, operand, order, where);
      return old;
    }
    order = order_of(order, where);
    const std::size_t location = step(action::update, target, order);
    const bits old = target.get();
    target.set(changed(old, how, operand));
    history_.update(number(), location, target.get(), order);
    note("update of atomic", location, target.get(), where);
    return old;
  }
  /// Succeeds only with the newest value; fails with any that a load may read.
  bool compare_exchange(const cell& target, bits& expected, bits value, std::memory_order success,
                        std::memory_order failure, const site& where) override {
    if (find(mistakes_, mutation::kind::torn, where) != nullptr) {
      const bits old = load(target, failure, where);
      if (std::exchange(expected, old) != old) return false;
      store(target, value, success, where);
      return true;
    }
    success = order_of(success, where);
    failure = order_of(failure, where);
    const std::size_t location = step(action::update, target, success);
    const std::size_t index = choose_for_exchange(location, expected, failure);
    if (history_.value(location, index) != expected) {
      expected = read(location, index, failure, where);
      return false;
    }
    history_.update(number(), location, value, success);
    target.set(value);
    note("compare_exchange of atomic", location, value, where);
    return true;
  }
  /// A loop that has read the counter, and has only looked since, ends when no thread can go on.
  void pause() override {
    constexpr std::chrono::microseconds moment(1);
    constexpr std::uint64_t long_time = 1'000'000'000;
    const bool is_timed = time_read_at_[number()] == threads_.own_changes() + 1;
    const auto deadline = is_timed ? threads_.now() + moment : threads::time_point::max();
    if (!threads_.pause(deadline)) ticks_[number()] += long_time;
  }
  std::uint64_t ticks() override {
    time_read_at_[number()] = threads_.own_changes() + 1;
    return ticks_[number()] += 100;
  }
  std::size_t thread_number() const override { return threads_.running(); }

  void fence(std::memory_order order) {
    const bool sequential = order == std::memory_order_seq_cst;
    if (sequential) threads_.before({action::fence, nullptr, true});
    history_.fence(number(), order);
    note("fence", 0, 0, {});
  }

 protected:
  ~accesses() = default;

  std::size_t number() const { return threads_.running(); }

  void note(const char* name, std::size_t object, bits value, const site& where) {
    events_.push_back({number(), name, object, value, where});
  }

  /// Returns: the location of the atomic.
  std::size_t step(action kind, const cell& target, std::memory_order order) {
    threads_.before({kind, target.address, order == std::memory_order_seq_cst});
    atomic_record& record = find_record(target);
    if (!record.alive) fail("an access to an atomic that has been destroyed");
    if (!history_.read(number(), record.lifetime)) {
      fail("a data race: the construction of an atomic and an access to it");
    }
    return record.location;
  }
  bits read(std::size_t location, std::size_t index, std::memory_order order, const site& where) {
    const bits value = history_.value(location, index);
    const bool stale = index != history_.newest(location);
    if (stale) threads_.note_stale();
    history_.load(number(), location, index, order);
    note(stale ? "stale load of atomic" : "load of atomic", location, value, where);
    return value;
  }

  threads threads_;
  memory history_;

 private:
  struct atomic_record {
    std::size_t location = 0;
    plain_history lifetime;
    bool alive = false;
  };

  std::size_t new_location(const cell& target) {
    if (history_.is_full()) threads_.give_up("more atomics than the explorer has room for");
    return history_.new_location(target.get());
  }
  /// An atomic that was made before the execution has the value that it has then.
  atomic_record& find_record(const cell& target) {
    const auto [place, is_new] = records_.try_emplace(target.address);
    if (is_new) place->second = {new_location(target), {}, true};
    return place->second;
  }
  /// Returns: the oldest store that a load may read now.
  std::size_t oldest(std::size_t location, std::memory_order order) const {
    return threads_.takes_newest() ? history_.newest(location)
                                   : history_.oldest(number(), location, order);
  }
  std::size_t choose_for_exchange(std::size_t location, bits expected, std::memory_order failure) {
    const std::size_t newest = history_.newest(location);
    const std::size_t first = oldest(location, failure);
    std::vector<std::size_t> options;
    for (std::size_t index = newest + 1; index-- > first;) {
      const bool equal = history_.value(location, index) == expected;
      if (index == newest || !equal) options.push_back(index);
    }
    return options[threads_.choose(options.size())];
  }
  static bits changed(bits old, change how, bits operand) {
    switch (how) {
      case change::add:
        return old + operand;
      case change::subtract:
        return old - operand;
      case change::exchange:
        break;
    }
    return operand;
  }
  std::memory_order order_of(std::memory_order order, const site& where) const {
    const bool weak = find(mistakes_, mutation::kind::relaxed, where) != nullptr;
    return weak ? std::memory_order_relaxed : order;
  }

  const mutations& mistakes_;
  const bool checks_destruction_;
  std::unordered_map<const void*, atomic_record> records_;
  std::vector<event> events_;
  std::array<std::uint64_t, most_threads> ticks_{};
  std::array<std::size_t, most_threads> time_read_at_{};  // after so many own changes, less one
};

}  // namespace explorer
