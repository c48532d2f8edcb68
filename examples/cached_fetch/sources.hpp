// SPDX-License-Identifier: MIT
// Where values come from.
#pragma once

#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <utility>

namespace cached_fetch {

class cache {
 public:
  virtual ~cache() = default;
  /// Switchpoint. Throws: what the cache throws when it is broken.
  virtual std::optional<std::string> get(const std::string& key) = 0;
  virtual void set(const std::string& key, const std::string& value) = 0;
};

class network {
 public:
  virtual ~network() = default;
  /// Switchpoint. Throws: std::exception.
  virtual std::string get(const std::string& key) = 0;
};

/// A store that needs no lock: a strand of `pool` has the store to itself, and every caller goes
/// there.
template <typename Store>
class cache_on_strand final : public cache {
 public:
  template <typename... Arguments>
  explicit cache_on_strand(motet::thread_pool& pool, Arguments&&... arguments)
      : strand_(pool), store_(strand_, std::forward<Arguments>(arguments)...) {}

  std::optional<std::string> get(const std::string& key) override {
    return store_.call([&](const Store& store) { return store.get(key); });
  }
  void set(const std::string& key, const std::string& value) override {
    store_.call([&](Store& store) { store.set(key, value); });
  }

 private:
  motet::strand strand_;
  motet::executor_bound<Store> store_;
};

}  // namespace cached_fetch
