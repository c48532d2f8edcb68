// SPDX-License-Identifier: MIT
// Caches that a plan slows down and breaks, and that write into a log.
#pragma once

#include <atomic>
#include <filesystem>
#include <motet/motet.hpp>
#include <optional>
#include <string>

#include "../../../examples/cached_fetch/sources.hpp"
#include "../../../examples/cached_fetch/stores.hpp"
#include "errand.hpp"
#include "this_thread.hpp"

namespace fetch_test {

class hindered_memory {
 public:
  std::optional<std::string> get(const std::string& key) const;
  void set(const std::string& key, const std::string& value);

 private:
  cached_fetch::memory_store store_;
};

class hindered_disk {
 public:
  explicit hindered_disk(const std::filesystem::path& directory) : store_(directory) {}

  std::optional<std::string> get(const std::string& key) const;
  void set(const std::string& key, const std::string& value) const;

 private:
  cached_fetch::disk_store store_;
};

/// What happens besides the outcomes.
struct counters {
  std::atomic<int> cache_hits{0};
  std::atomic<int> fetched{0};  // from the network
  std::atomic<int> get_failures{0};
  std::atomic<int> set_failures{0};
};

/// Logs the life of the fiber that searches or fills a cache, its way to the strand included.
class observed_cache final : public cached_fetch::cache {
 public:
  observed_cache(cached_fetch::cache& place, counters& counts) : place_(place), counts_(counts) {}

  std::optional<std::string> get(const std::string& key) override;
  void set(const std::string& key, const std::string& value) override;

 private:
  cached_fetch::cache& place_;
  counters& counts_;
};

}  // namespace fetch_test
