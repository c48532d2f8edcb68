// SPDX-License-Identifier: MIT
// The least that is spun and awaited: a task has a body, a place in a queue and a task that awaits
// it. It takes a stack when it first runs; if it ends without having waited, the next task that has
// not begun goes on on the same stack. There is no error, no limit, no guard, no name.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "bare_stacks.hpp"
#include "bare_switch.hpp"

namespace bench {

class bare_fibers {
 public:
  struct task;

  /// stacks: the most tasks that have begun and not ended.
  explicit bare_fibers(std::size_t stacks) : stacks_(stacks) {
    for (std::size_t i = stacks; i > 0; --i) spare_stacks_.push_back(stacks_.top(i - 1));
  }
  bare_fibers(const bare_fibers&) = delete;
  bare_fibers& operator=(const bare_fibers&) = delete;
  ~bare_fibers() {
    for (task* each : slabs_) ::operator delete(each, slab_alignment);
  }

  template <typename Body>
  task* spin(Body body) {
    static_assert(sizeof(Body) <= sizeof task::body && std::is_trivially_destructible_v<Body>);
    task* made = take();
    made->run = [](void* stored) { (*static_cast<Body*>(stored))(); };
    ::new (static_cast<void*>(made->body)) Body(std::move(body));
    made->awaiter = nullptr;
    made->state = phase::fresh;
    push(made);
    return made;
  }

  void await(task* awaited) {
    if (awaited->state != phase::over) {
      task* self = running_;
      awaited->awaiter = self;
      leave(self, pop());
    }
    awaited->next = spare_;
    spare_ = awaited;
  }

  enum class phase { fresh, begun, over };

  /// Two lines.
  struct alignas(64) task : place {
    bare_fibers* home = nullptr;
    task* next = nullptr;
    task* awaiter = nullptr;
    void (*run)(void* body) = nullptr;
    std::byte* stack_top = nullptr;
    phase state = phase::begun;
    alignas(8) std::byte body[48];
  };

 private:
  static constexpr std::size_t slab_size = 256;
  static constexpr std::align_val_t slab_alignment{alignof(task)};

  task* take() {
    if (spare_ == nullptr) [[unlikely]]
      add_slab();
    task* taken = spare_;
    spare_ = taken->next;
    return taken;
  }

  [[gnu::noinline]] void add_slab() {
    auto* slab = static_cast<task*>(::operator new(slab_size * sizeof(task), slab_alignment));
    slabs_.push_back(slab);
    for (std::size_t i = slab_size; i > 0; --i) {
      task* made = ::new (slab + i - 1) task;
      made->home = this;
      made->next = spare_;
      spare_ = made;
    }
  }

  void push(task* last) {
    last->next = nullptr;
    *end_ = last;
    end_ = &last->next;
  }

  task* pop() {
    task* first = first_;
    first_ = first->next;
    if (first_ == nullptr) end_ = &first_;
    return first;
  }

  [[gnu::always_inline]] void leave(task* self, task* to) {
    if (to->state == phase::fresh) begin(*to);
    running_ = to;
    switch_bare(self, to);
  }

  void begin(task& fresh) {
    fresh.state = phase::begun;
    fresh.stack_top = spare_stacks_.back();
    spare_stacks_.pop_back();
    lay_out(fresh, fresh.stack_top, &run_all);
  }

  /// The first function of each stack: runs tasks on it until one waits, or none is left to begin.
  static void run_all(place*, place* here) {
    auto* self = static_cast<task*>(here);
    bare_fibers& home = *self->home;
    for (;;) {
      self->run(self->body);
      self->state = phase::over;
      if (self->awaiter != nullptr) home.push(self->awaiter);
      task* next = home.pop();
      if (next->state != phase::fresh) {
        home.spare_stacks_.push_back(self->stack_top);
        home.leave(self, next);
      }
      next->state = phase::begun;
      next->stack_top = self->stack_top;
      home.running_ = next;
      self = next;
    }
  }

  bare_stacks stacks_;
  std::vector<std::byte*> spare_stacks_;
  std::vector<task*> slabs_;
  task* spare_ = nullptr;
  task* first_ = nullptr;
  task** end_ = &first_;
  task main_;
  task* running_ = &main_;
};

}  // namespace bench
