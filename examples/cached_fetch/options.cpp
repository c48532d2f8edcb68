// SPDX-License-Identifier: MIT
// See options.hpp.
#include "options.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace cached_fetch {

namespace {

/// The words that are left.
class words_left {
 public:
  words_left(int count, char** words) : next_(words + 1), end_(words + count) {}

  bool empty() const { return next_ == end_; }
  std::string_view take() {
    if (empty()) throw std::invalid_argument("something is missing at the end");
    return *next_++;
  }
  template <typename Number>
  Number take_number() {
    const std::string_view word = take();
    Number number{};
    const auto [end, error] = std::from_chars(word.begin(), word.end(), number);
    if (error != std::errc() || end != word.end()) {
      throw std::invalid_argument(std::string(word) + " is not a number that can be taken");
    }
    return number;
  }
  milliseconds take_ms() { return milliseconds(take_number<std::uint32_t>()); }

 private:
  char** next_;
  char** end_;
};

using action = std::function<void(options&, words_left&)>;

const std::map<std::string_view, action>& actions() {
  static const std::map<std::string_view, action> known{
      {"--serve", [](options& all, words_left&) { all.what = mode::serve; }},
      {"--fetch",
       [](options& all, words_left& left) {
         all.what = mode::fetch;
         all.keys.emplace_back(left.take());
       }},
      {"--check",
       [](options& all, words_left& left) {
         all.what = mode::check;
         all.check = left.take();
       }},
      {"--load",
       [](options& all, words_left& left) {
         all.what = mode::load;
         all.requests = left.take_number<int>();
       }},
      {"--help", [](options& all, words_left&) { all.what = mode::help; }},
      {"--port",
       [](options& all, words_left& left) { all.port = left.take_number<std::uint16_t>(); }},
      {"--reply-ms",
       [](options& all, words_left& left) { all.server.reply_after = left.take_ms(); }},
      {"--accept-hang", [](options& all, words_left&) { all.server.accept_hangs = true; }},
      {"--reply-hang", [](options& all, words_left&) { all.server.reply_hangs = true; }},
      {"--close-after",
       [](options& all, words_left& left) {
         all.server.close_after = left.take_number<std::size_t>();
       }},
      {"--overall-ms", [](options& all, words_left& left) { all.how.overall = left.take_ms(); }},
      {"--network-ms", [](options& all, words_left& left) { all.how.network = left.take_ms(); }},
      {"--mem-get-ms", [](options& all, words_left& left) { all.how.mem_get = left.take_ms(); }},
      {"--mem-set-ms", [](options& all, words_left& left) { all.how.mem_set = left.take_ms(); }},
      {"--disk-get-ms", [](options& all, words_left& left) { all.how.disk_get = left.take_ms(); }},
      {"--disk-set-ms", [](options& all, words_left& left) { all.how.disk_set = left.take_ms(); }},
      {"--disk-block", [](options& all, words_left&) { all.how.disk_blocks = true; }},
      {"--cpu",
       [](options& all, words_left& left) { all.size.cpu = left.take_number<std::size_t>(); }},
      {"--net",
       [](options& all, words_left& left) { all.size.net = left.take_number<std::size_t>(); }},
      {"--cache-dir", [](options& all, words_left& left) { all.cache_directory = left.take(); }},
      {"--events", [](options& all, words_left& left) { all.events = left.take(); }},
      {"--slack", [](options& all, words_left& left) { all.slack = left.take_number<double>(); }},
      {"--watched", [](options& all, words_left&) { all.watched = true; }},
      {"--seconds",
       [](options& all, words_left& left) {
         all.length = std::chrono::seconds(left.take_number<unsigned>());
       }},
      {"--seed",
       [](options& all, words_left& left) { all.seed = left.take_number<std::uint64_t>(); }},
      {"--requests",
       [](options& all, words_left& left) { all.requests = left.take_number<int>(); }},
      {"--in-flight",
       [](options& all, words_left& left) { all.in_flight = left.take_number<int>(); }},
  };
  return known;
}

}  // namespace

options parse_options(int count, char** words) {
  options all;
  for (words_left left(count, words); !left.empty();) {
    const std::string_view word = left.take();
    const auto found = actions().find(word);
    if (found == actions().end()) throw std::invalid_argument("unknown: " + std::string(word));
    found->second(all, left);
  }
  return all;
}

const char* usage() {
  return R"(usage: cached_fetch [--events FILE]      plays a scenario and checks itself
       cached_fetch --serve [--port P]      is the server
       cached_fetch --fetch KEY... --port P is a client; --fetch may be repeated
       cached_fetch --check C1|...|C10      plays one of the checks
       cached_fetch --load N --port P       fetches N keys, and says how fast that was
server:  --reply-ms N [20]  --accept-hang  --reply-hang  --close-after BYTES
client:  --overall-ms N [1000]  --network-ms N [500]  --mem-get-ms N  --mem-set-ms N
         --disk-get-ms N  --disk-set-ms N  --disk-block  --cache-dir DIR  --cpu N [3]  --net N [2]
checks:  --slack F (times are F times as long)  --watched (less of it)  --requests N (C9)
         --seconds N --seed N (C10)
load:    --in-flight N [100]
)";
}

}  // namespace cached_fetch
