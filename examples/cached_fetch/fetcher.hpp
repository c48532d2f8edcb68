// SPDX-License-Identifier: MIT
// A value is looked for in two caches at once; what neither has comes from the network, and is then
// kept in both. The user interface asks, and is told, once, whatever happens.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stop_token>
#include <string>

#include "events.hpp"
#include "network.hpp"
#include "plan.hpp"
#include "stores.hpp"
#include "user_interface.hpp"
#include "visit.hpp"

namespace cached_fetch {

/// A question that is under way. Any thread.
class request {
 public:
  request(std::string key, const plan& how, event_log& log)
      : key_(std::move(key)), how_(how), log_(log) {}

  const std::string& key() const { return key_; }
  steady::time_point asked_at() const { return asked_at_; }
  /// When cancel() was called.
  steady::time_point cancelled_at() const { return cancelled_at_; }

  /// Asks it to end. Never waits; may be called before it starts, and when it is over.
  void cancel() {
    cancelled_at_ = steady::now();
    log_.add_for(fiber_, "cancel_req", key_);
    stop_.request_stop();
  }

  /// Waits until it is over.
  /// Switchpoint.
  const outcome& await() const { return known_.get(); }
  bool is_over() const { return known_.ready(); }

 private:
  friend class fetcher;

  const std::string key_;
  const plan how_;
  event_log& log_;
  const steady::time_point asked_at_ = steady::now();
  std::atomic<steady::time_point> cancelled_at_{};
  std::atomic<std::uint64_t> fiber_{0};
  std::stop_source stop_;
  motet::promise<outcome> promise_;
  motet::future<outcome> known_ = promise_.get_future();
};

using request_ref = std::shared_ptr<request>;

/// What has happened besides the outcomes.
struct counters {
  std::atomic<int> cache_hits{0};
  std::atomic<int> fetched{0};  // from the network
  std::atomic<int> get_failures{0};
  std::atomic<int> set_failures{0};
};

class fetcher {
 public:
  fetcher(motet::thread_pool& cpu, motet::thread_pool& net, user_interface& ui,
          const std::filesystem::path& directory, event_log& log);

  /// Starts a request on the processors' pool. Any thread; never waits.
  request_ref handle_key(std::string key, const plan& how);

  /// Returns: what the caches have of it, without any delay.
  /// Switchpoint.
  std::optional<std::string> peek_memory(const std::string& key);
  std::optional<std::string> peek_disk(const std::string& key);
  /// As if it had been fetched before.
  /// Switchpoint.
  void put_into_memory(const std::string& key, const std::string& value);
  void put_onto_disk(const std::string& key, const std::string& value);

  network& net() { return network_; }
  const counters& seen() const { return seen_; }

 private:
  void handle(request& its);
  std::string obtain(const request& its);
  std::optional<std::string> look_up(const request& its);
  void keep(const request& its, const std::string& value);
  template <typename Get>
  std::optional<std::string> get_from_cache(const request& its, std::uint64_t parent, Get get);
  template <typename Set>
  void set_in_cache(const request& its, std::uint64_t parent, Set set);
  bool tell_failure(const request& its, const outcome& what);

  motet::thread_pool& cpu_;
  user_interface& ui_;
  event_log& log_;
  motet::strand memory_strand_;
  motet::strand disk_strand_;
  motet::executor_bound<memory_store> memory_;
  motet::executor_bound<disk_store> disk_;
  network network_;
  counters seen_;
};

}  // namespace cached_fetch
