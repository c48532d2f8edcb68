// SPDX-License-Identifier: MIT
// See testing/shrink.hpp. The log becomes bytes, which mean something in every program: a deletion
// gives the later decisions other values, and what the program then decides is the next log.
#include "testing/shrink.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string>
#include <utility>

#include "testing/run_by.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr int most_runs = 3'000;
constexpr std::chrono::seconds longest{10};

/// Two failures are alike if their messages differ in numbers only.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return text;
}

class shrinking {
 public:
  shrinking(const plan& how, const std::function<void(world&)>& function, const outcome& failed)
      : how_(how),
        function_(function),
        failure_(without_numbers(failed.failure)),
        best_(log_of(failed.log).made),
        bytes_(bytes_of(best_)) {}

  /// Returns: whether the bytes of the best log reproduce the failure.
  bool begin() { return fails(bytes_); }

  void run() {
    bool is_better = true;
    while (std::exchange(is_better, false) && goes_on()) {
      for (std::size_t size = std::max<std::size_t>(bytes_.size() / 2, 1); size > 0; size /= 2)
        is_better = delete_parts(size) || is_better;
      for (std::size_t size = std::max<std::size_t>(bytes_.size() / 2, 1); size > 0; size /= 2)
        is_better = clear_parts(size) || is_better;
      is_better = shorten_loops() || is_better;
    }
  }

  decision_log result() const {
    decision_log log{best_, true};
    while (!log.made.empty() && log.made.back().taken == 0) log.made.pop_back();
    return log;
  }

 private:
  bool fails(std::string candidate) {
    ++runs_;
    const outcome result = run_by(how_, decisions(std::move(candidate)), function_);
    if (result.passed || without_numbers(result.failure) != failure_) return false;
    best_ = log_of(result.log).made;
    bytes_ = bytes_of(best_);
    return true;
  }

  bool goes_on() const {
    return runs_ < most_runs && std::chrono::steady_clock::now() - start_ < longest;
  }

  /// A candidate is tried if it is simpler: shorter, or as long with more zeros.
  bool try_simpler(std::string candidate) {
    while (candidate.ends_with('\0')) candidate.pop_back();
    if (candidate == bytes_ || !goes_on()) return false;
    const std::string old_bytes = bytes_;
    const std::vector<decision> old_best = best_;
    if (!fails(std::move(candidate))) return false;
    if (is_simpler(bytes_, old_bytes)) return true;
    bytes_ = old_bytes;
    best_ = old_best;
    return false;
  }

  static bool is_simpler(const std::string& one, const std::string& other) {
    if (one.size() != other.size()) return one.size() < other.size();
    return std::count(one.begin(), one.end(), '\0') > std::count(other.begin(), other.end(), '\0');
  }

  bool delete_parts(std::size_t size) {
    bool is_better = false;
    for (std::size_t begin = 0; begin < bytes_.size() && goes_on();) {
      std::string candidate = bytes_;
      candidate.erase(begin, size);
      if (try_simpler(std::move(candidate))) {
        is_better = true;
      } else {
        begin += size;
      }
    }
    return is_better;
  }

  bool clear_parts(std::size_t size) {
    bool is_better = false;
    for (std::size_t begin = 0; begin < bytes_.size() && goes_on(); begin += size) {
      std::string candidate = bytes_;
      const std::size_t end = std::min(begin + size, candidate.size());
      std::fill(candidate.begin() + static_cast<std::ptrdiff_t>(begin),
                candidate.begin() + static_cast<std::ptrdiff_t>(end), '\0');
      is_better = try_simpler(std::move(candidate)) || is_better;
    }
    return is_better;
  }

  /// A number may be how often the program does something: fewer rounds need fewer decisions.
  bool shorten_loops() {
    constexpr std::size_t most_decisions = 32;
    bool is_better = false;
    for (std::size_t i = 0; i < bytes_.size() && goes_on(); ++i) {
      for (std::size_t size = 1; size <= most_decisions && i + size < bytes_.size(); ++size) {
        if (bytes_[i] == '\0' || !goes_on()) break;
        std::string candidate = bytes_;
        --candidate[i];
        candidate.erase(i + 1, size);
        if (!try_simpler(std::move(candidate))) continue;
        is_better = true;
        size = 0;
      }
    }
    return is_better;
  }

  const plan& how_;
  const std::function<void(world&)>& function_;
  const std::string failure_;
  std::vector<decision> best_;
  std::string bytes_;  // of best_
  int runs_ = 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

decision_log shrunk(const plan& how, const std::function<void(world&)>& function,
                    const outcome& failed) {
  shrinking search(how, function, failed);
  if (!search.begin()) return log_of(failed.log);
  search.run();
  return search.result();
}

}}}  // namespace motet::MOTET_ABI::testing
