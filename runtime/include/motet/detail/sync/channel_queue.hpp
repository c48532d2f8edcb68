// SPDX-License-Identifier: MIT
// How items go from pushes to pops: from one that waits to the other, or by way of the store.
#pragma once

#include <cstddef>
#include <motet/detail/sync/wait_list.hpp>
#include <mutex>
#include <optional>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

[[noreturn]] void throw_channel_closed();

/// A private base of basic_channel; select() gets it from queue_of(). A waiting push has its item
/// in the node's slot, a waiting pop the std::optional for one. `Store` is as fifo_store.
template <typename T, typename Sharing, typename Store>
class channel_queue {
 public:
  channel_queue(const channel_queue&) = delete;
  channel_queue& operator=(const channel_queue&) = delete;

  /// Hands `item` on, unless it would have to wait.
  /// Returns: whether it did.
  /// Throws: channel_closed; std::bad_alloc.
  bool try_send(T& item, thread_core* thread) {
    sharing_.lock();
    const answer result = send(item, thread);
    if (result == answer::closed) throw_channel_closed();
    if (result == answer::wait) sharing_.unlock();
    return result == answer::done;
  }

  /// Moves the next item into `item`, unless it would have to wait for one.
  /// Returns: whether it need not wait; without an item if the channel is closed and empty.
  bool try_receive(std::optional<T>& item, thread_core* thread) {
    sharing_.lock();
    const answer result = receive(item, thread);
    if (result == answer::wait) sharing_.unlock();
    return result != answer::wait;
  }

  /// For a select(): `node` waits to send as well, unless it need not wait.
  /// Returns: whether it need not.
  bool enter_sender(wait_node& node) {
    const std::lock_guard lock(sharing_);
    if (!store_.full() || closed_ || receivers_.others_wait(*node.owner)) return true;
    senders_.push_back(node);
    return false;
  }
  /// The same for an item.
  bool enter_receiver(wait_node& node) {
    const std::lock_guard lock(sharing_);
    if (store_.size() > 0 || closed_ || senders_.others_wait(*node.owner)) return true;
    receivers_.push_back(node);
    return false;
  }
  void leave(wait_node& node) noexcept {
    detail::leave(sharing_, node, [] {});
  }

 protected:
  /// Called without the lock, under which nothing is allocated or freed.
  [[gnu::noinline]] void add_memory(std::size_t count) {
    auto memory = Store::allocate(count);
    const std::lock_guard lock(sharing_);
    memory = store_.add(std::move(memory));
  }

  enum class answer { done, closed, wait };

  explicit channel_queue(std::size_t capacity) : store_(capacity) {}
  ~channel_queue() {
    senders_.detach_all(sharing_);
    receivers_.detach_all(sharing_);
  }

  /// Called under the lock, which is released unless the answer is to wait.
  [[gnu::always_inline]] answer send(T& item, thread_core* thread) {
    wait_node* receiver = receivers_.choose(thread);
    if (receiver == nullptr) return store(item, thread);
    sharing_.unlock();
    static_cast<std::optional<T>*>(receiver->slot)->emplace(std::move(item));
    receiver->owner->notify(thread);
    return answer::done;
  }

  /// Called under the lock, which is released unless the answer is to wait.
  [[gnu::always_inline]] answer receive(std::optional<T>& item, thread_core* thread) {
    if (store_.size() > 0) return receive_stored(item, thread);
    wait_node* sender = senders_.choose(thread);
    if (sender == nullptr && !closed_) return answer::wait;
    sharing_.unlock();
    if (sender == nullptr) return answer::closed;
    item.emplace(std::move(*static_cast<T*>(sender->slot)));
    sender->owner->notify(thread);
    return answer::done;
  }

  Sharing sharing_;
  bool closed_ = false;
  Store store_;
  wait_list senders_, receivers_;  // at least one of the two is empty

 private:
  [[gnu::noinline]] answer store(T& item, thread_core* thread) {
    if (closed_) {
      sharing_.unlock();
      return answer::closed;
    }
    if (store_.full()) return answer::wait;
    if (const std::size_t shortage = store_.shortage(); shortage > 0) [[unlikely]] {
      sharing_.unlock();
      add_memory(shortage);
      sharing_.lock();
      return send(item, thread);  // a pop() may have come meanwhile
    }
    store_.push(std::move(item));
    sharing_.unlock();
    return answer::done;
  }

  [[gnu::noinline]] answer receive_stored(std::optional<T>& item, thread_core* thread) {
    const auto memory = store_.pop(item);  // freed without the lock
    wait_node* sender = senders_.choose(thread);
    if (sender != nullptr) store_.push(std::move(*static_cast<T*>(sender->slot)));
    sharing_.unlock();
    if (sender != nullptr) sender->owner->notify(thread);
    return answer::done;
  }
};

}}}  // namespace motet::MOTET_ABI::detail
