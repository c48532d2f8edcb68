// SPDX-License-Identifier: MIT
// See stores.hpp.
#include "stores.hpp"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace cached_fetch {

namespace {

constexpr std::size_t shown_of_a_key = 60;

/// FNV-1a: the same in every process.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char each : text) {
    hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

disk_store::disk_store(std::filesystem::path directory) : directory_(std::move(directory)) {
  std::filesystem::create_directories(directory_);
}

/// A key may be anything, "../x" for example; its hash is a name, and what can be read of it is
/// added for people.
std::filesystem::path disk_store::file_of(const std::string& key) const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_of(key)));
  std::string name = std::string(hash) + '-';
  for (const char each : std::string_view(key).substr(0, shown_of_a_key)) {
    name += std::isalnum(static_cast<unsigned char>(each)) != 0 ? each : '_';
  }
  return directory_ / name;
}

/// The file begins with the key itself: two keys may have one hash.
std::optional<std::string> disk_store::get(const std::string& key) const {
  std::ifstream file(file_of(key), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string head = std::to_string(key.size()) + ' ' + key;
  if (!text.starts_with(head)) return std::nullopt;
  return text.substr(head.size());
}

/// Under another name first: whoever reads finds the old file or the new one, whole.
void disk_store::set(const std::string& key, const std::string& value) const {
  const std::filesystem::path name = file_of(key);
  std::filesystem::path fresh = name;
  fresh += ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << key.size() << ' ' << key << value;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + fresh.string());
  std::filesystem::rename(fresh, name);
}

}  // namespace cached_fetch
