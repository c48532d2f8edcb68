// SPDX-License-Identifier: MIT
// The fetcher of the example, with caches, a network and a user interface that log what happens.
#pragma once

#include <filesystem>
#include <motet/motet.hpp>
#include <optional>
#include <string>

#include "../../../examples/cached_fetch/fetcher.hpp"
#include "events.hpp"
#include "observed_cache.hpp"
#include "observed_interface.hpp"
#include "question.hpp"

namespace fetch_test {

/// Asks the server that the plan of a request names.
class observed_network final : public cached_fetch::network {
 public:
  explicit observed_network(counters& counts) : counts_(counts) {}

  std::string get(const std::string& key) override;
  /// The same for a fiber of no request.
  static std::string get(const std::string& key, const motet::net::endpoint& server,
                         event_log& log);

 private:
  counters& counts_;
};

class observed_fetcher {
 public:
  observed_fetcher(motet::thread_pool& cpu, motet::thread_pool& net, observed_interface& ui,
                   const std::filesystem::path& directory, event_log& log);

  /// Starts a request on the pool `cpu`. Any thread; never waits.
  question_ref handle_key(std::string key, const plan& course);
  /// Asks a server, without the caches, on the running fiber.
  /// Switchpoint.
  std::string ask(const std::string& key, const motet::net::endpoint& server) {
    return observed_network::get(key, server, log_);
  }

  /// Returns: what a cache has, without any delay.
  /// Switchpoint.
  std::optional<std::string> peek_memory(const std::string& key) { return memory_.get(key); }
  std::optional<std::string> peek_disk(const std::string& key) { return disk_.get(key); }
  /// As if the value had been fetched before.
  /// Switchpoint.
  void put_into_memory(const std::string& key, const std::string& value) {
    memory_.set(key, value);
  }
  void put_onto_disk(const std::string& key, const std::string& value) { disk_.set(key, value); }

  const counters& counts() const { return counts_; }

 private:
  void handle(question& wish);

  motet::thread_pool& cpu_;
  event_log& log_;
  counters counts_;
  cached_fetch::cache_on_strand<hindered_memory> memory_;
  cached_fetch::cache_on_strand<hindered_disk> disk_;
  observed_cache observed_memory_{memory_, counts_};
  observed_cache observed_disk_{disk_, counts_};
  observed_network network_{counts_};
  cached_fetch::fetcher fetcher_;
};

}  // namespace fetch_test
