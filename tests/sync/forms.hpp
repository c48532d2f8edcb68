// SPDX-License-Identifier: MIT
// The two forms of each primitive: shared between threads, and of one thread alone.
#pragma once

#include <motet/motet.hpp>

namespace testing {

struct shared_forms {
  using mutex = motet::mutex;
  using recursive_mutex = motet::recursive_mutex;
  using shared_mutex = motet::shared_mutex;
  using condition_variable = motet::condition_variable;
  using semaphore = motet::semaphore;
  using event = motet::event;
  using notification = motet::notification;
  using latch = motet::latch;
  using barrier = motet::barrier;
  using once = motet::once;
  template <typename T>
  using channel = motet::channel<T>;
  template <typename T>
  using broadcast = motet::broadcast<T>;
  template <typename T>
  using watch = motet::watch<T>;
  template <typename T>
  static auto make_channel(auto capacity) {
    return motet::make_channel<T>(capacity);
  }
};

struct local_forms {
  using mutex = motet::local::mutex;
  using recursive_mutex = motet::local::recursive_mutex;
  using shared_mutex = motet::local::shared_mutex;
  using condition_variable = motet::local::condition_variable;
  using semaphore = motet::local::semaphore;
  using event = motet::local::event;
  using notification = motet::local::notification;
  using latch = motet::local::latch;
  using barrier = motet::local::barrier;
  using once = motet::local::once;
  template <typename T>
  using channel = motet::local::channel<T>;
  template <typename T>
  using broadcast = motet::local::broadcast<T>;
  template <typename T>
  using watch = motet::local::watch<T>;
  template <typename T>
  static auto make_channel(auto capacity) {
    return motet::local::make_channel<T>(capacity);
  }
};

}  // namespace testing

// For TEMPLATE_TEST_CASE.
#define FORMS testing::shared_forms, testing::local_forms
