// SPDX-License-Identifier: MIT
// Where values are kept: in memory, and in a directory that survives the program. Neither has a
// lock, nor knows of threads: each is bound to a strand, and only touched there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

namespace cached_fetch {

class memory_store {
 public:
  std::optional<std::string> get(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  void set(const std::string& key, const std::string& value) { values_[key] = value; }

 private:
  std::unordered_map<std::string, std::string> values_;
};

/// A small file for each value; they come from the kernel's memory, so reading one is no wait worth
/// a fiber's leaving.
class disk_store {
 public:
  explicit disk_store(std::filesystem::path directory);

  std::optional<std::string> get(const std::string& key) const;
  /// Throws: std::runtime_error if it cannot be written; then what was there is there still.
  void set(const std::string& key, const std::string& value) const;

 private:
  std::filesystem::path file_of(const std::string& key) const;

  std::filesystem::path directory_;
};

}  // namespace cached_fetch
