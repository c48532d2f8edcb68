// SPDX-License-Identifier: MIT
// Linearizability of a key-value store. Keys do not concern each other, so each is searched alone.
#include <algorithm>
#include <limits>
#include <map>
#include <motet/testing.hpp>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

using content = std::optional<std::string>;

}  // namespace

struct history::request {
  std::string key;
  content value;
  bool writes = false;
  std::size_t begin = 0;
  std::size_t end = never;
};

history::history() = default;
history::history(history&&) noexcept = default;
history& history::operator=(history&&) noexcept = default;
history::~history() = default;

std::size_t history::begin_read(std::string key) {
  requests_.push_back({std::move(key), {}, false, now_++});
  return requests_.size() - 1;
}

std::size_t history::begin_write(std::string key, std::optional<std::string> value) {
  requests_.push_back({std::move(key), std::move(value), true, now_++});
  return requests_.size() - 1;
}

void history::end_read(std::size_t number, std::optional<std::string> value) {
  if (number >= requests_.size() || requests_[number].writes || requests_[number].end != never)
    throw std::invalid_argument("history::end_read() of a read that is not under way");
  requests_[number].value = std::move(value);
  requests_[number].end = now_++;
}

void history::end_write(std::size_t number) {
  if (number >= requests_.size() || !requests_[number].writes || requests_[number].end != never)
    throw std::invalid_argument("history::end_write() of a write that is not under way");
  requests_[number].end = now_++;
}

namespace {

/// One operation, at its place among those of its key.
struct step {
  const content* value;
  bool writes;
  std::size_t begin;
  std::size_t end;
};

/// Depth first: which operations have had their effect, and what the key holds then. A state that
/// has led nowhere is not visited again.
class search {
 public:
  explicit search(std::vector<step> all) : all_(std::move(all)) {}

  bool finds_order() {
    std::vector<state> stack{{std::string(all_.size(), '0'), {}}};
    while (!stack.empty()) {
      state now = std::move(stack.back());
      stack.pop_back();
      if (is_complete(now)) return true;
      if (take_read(now)) {
        stack.push_back(now);
        continue;
      }
      const std::size_t latest = first_end(now);
      for (std::size_t i = 0; i < all_.size(); ++i) {
        const step& next = all_[i];
        if (now.done[i] != '0' || next.begin > latest || !next.writes) continue;
        state after = now;
        after.done[i] = '1';
        after.value = *next.value;
        if (visited_.insert(after).second) stack.push_back(std::move(after));
      }
    }
    return false;
  }

 private:
  struct state {
    std::string done;
    content value;
    friend bool operator<(const state& one, const state& other) {
      return std::tie(one.done, one.value) < std::tie(other.done, other.value);
    }
  };

  /// A read that agrees changes nothing, so it need not come later.
  bool take_read(state& now) const {
    const std::size_t latest = first_end(now);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const step& next = all_[i];
      const bool is_next = now.done[i] == '0' && next.begin < latest && !next.writes;
      if (!is_next || *next.value != now.value) continue;
      now.done[i] = '1';
      return true;
    }
    return false;
  }

  bool is_complete(const state& now) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (now.done[i] == '0' && all_[i].end != never) return false;
    }
    return true;
  }

  /// What begins after that comes later.
  std::size_t first_end(const state& now) const {
    std::size_t first = never;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (now.done[i] == '0') first = std::min(first, all_[i].end);
    }
    return first;
  }

  const std::vector<step> all_;
  std::set<state> visited_;
};

/// A write without an answer that no read has seen need not have had an effect.
void drop_unseen(std::vector<step>& all) {
  std::erase_if(all, [&](const step& each) {
    const auto shows = [&](const step& other) {
      return !other.writes && *other.value == *each.value;
    };
    return each.end == never && std::none_of(all.begin(), all.end(), shows);
  });
}

std::string text_of(const content& value) {
  return value.has_value() ? "\"" + *value + "\"" : "nothing";
}

}  // namespace

std::optional<std::string> history::violation() const {
  std::map<std::string, std::vector<step>> keys;
  for (const request& each : requests_) {
    if (each.writes || each.end != never)
      keys[each.key].push_back({&each.value, each.writes, each.begin, each.end});
  }
  for (auto& [key, steps] : keys) {
    drop_unseen(steps);
    if (search(steps).finds_order()) continue;
    std::string text = "no order of these operations on \"" + key + "\" agrees with the answers:";
    for (const step& each : steps) {
      text += "\n  " + std::to_string(each.begin) + " to " +
              (each.end == never ? "?" : std::to_string(each.end)) +
              (each.writes ? ": write " : ": read ") + text_of(*each.value);
    }
    return text;
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::testing
