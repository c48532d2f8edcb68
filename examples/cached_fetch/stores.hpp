// SPDX-License-Identifier: MIT
// Where values are kept: in memory, and in a directory that survives the program. Neither store has
// a lock or knows of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace cached_fetch {

class memory_store {
 public:
  std::optional<std::string> get(const std::string& key) const {
    const auto entry = values_.find(key);
    return entry == values_.end() ? std::nullopt : std::optional(entry->second);
  }
  void set(const std::string& key, const std::string& value) { values_[key] = value; }

 private:
  std::unordered_map<std::string, std::string> values_;
};

/// A small file for each value. The kernel has such files in memory, so plain calls read them.
class disk_store {
 public:
  explicit disk_store(std::filesystem::path directory) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
  }

  std::optional<std::string> get(const std::string& key) const {
    std::ifstream file(file_of(key), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string head = head_of(key);
    return text.starts_with(head) ? std::optional(text.substr(head.size())) : std::nullopt;
  }

  /// Writes under another name first: a reader finds the old file or the new one, whole.
  /// Throws: std::runtime_error if the file cannot be written.
  void set(const std::string& key, const std::string& value) const {
    const std::filesystem::path name = file_of(key);
    std::filesystem::path draft = name;
    draft += ".new";
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << head_of(key) << value;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + draft.string());
    std::filesystem::rename(draft, name);
  }

 private:
  /// A file begins with the key: two keys may have the same hash.
  static std::string head_of(const std::string& key) {
    return std::to_string(key.size()) + ' ' + key;
  }

  /// A key may be anything, "../x" for example, so a hash names the file: FNV-1a, which is the same
  /// in every process.
  std::filesystem::path file_of(const std::string& key) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char letter : key) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    return directory_ / std::to_string(hash);
  }

  std::filesystem::path directory_;
};

}  // namespace cached_fetch
