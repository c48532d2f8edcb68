// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace fetch_test {

namespace {

class word_queue {
 public:
  word_queue(int count, char** words) : next_(words + 1), end_(words + count) {}

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

using action = std::function<void(options&, word_queue&)>;

const std::map<std::string_view, action>& actions() {
  static const std::map<std::string_view, action> table{
      {"--serve", [](options& settings, word_queue&) { settings.chosen_mode = mode::serve; }},
      {"--fetch",
       [](options& settings, word_queue& words) {
         settings.chosen_mode = mode::fetch;
         settings.keys.emplace_back(words.take());
       }},
      {"--check",
       [](options& settings, word_queue& words) {
         settings.chosen_mode = mode::check;
         settings.check = words.take();
       }},
      {"--help", [](options& settings, word_queue&) { settings.chosen_mode = mode::help; }},
      {"--port", [](options& settings,
                    word_queue& words) { settings.port = words.take_number<std::uint16_t>(); }},
      {"--reply-ms",
       [](options& settings, word_queue& words) { settings.server.reply_after = words.take_ms(); }},
      {"--accept-hang",
       [](options& settings, word_queue&) { settings.server.accept_hangs = true; }},
      {"--reply-hang", [](options& settings, word_queue&) { settings.server.reply_hangs = true; }},
      {"--close-after",
       [](options& settings, word_queue& words) {
         settings.server.close_after = words.take_number<std::size_t>();
       }},
      {"--overall-ms",
       [](options& settings, word_queue& words) { settings.course.overall = words.take_ms(); }},
      {"--network-ms",
       [](options& settings, word_queue& words) { settings.course.network = words.take_ms(); }},
      {"--mem-get-ms",
       [](options& settings, word_queue& words) { settings.course.mem_get = words.take_ms(); }},
      {"--mem-set-ms",
       [](options& settings, word_queue& words) { settings.course.mem_set = words.take_ms(); }},
      {"--disk-get-ms",
       [](options& settings, word_queue& words) { settings.course.disk_get = words.take_ms(); }},
      {"--disk-set-ms",
       [](options& settings, word_queue& words) { settings.course.disk_set = words.take_ms(); }},
      {"--disk-block", [](options& settings, word_queue&) { settings.course.disk_blocks = true; }},
      {"--cpu", [](options& settings,
                   word_queue& words) { settings.size.cpu = words.take_number<std::size_t>(); }},
      {"--net", [](options& settings,
                   word_queue& words) { settings.size.net = words.take_number<std::size_t>(); }},
      {"--cache-dir",
       [](options& settings, word_queue& words) { settings.cache_directory = words.take(); }},
      {"--events", [](options& settings, word_queue& words) { settings.events = words.take(); }},
      {"--slack",
       [](options& settings, word_queue& words) { settings.slack = words.take_number<double>(); }},
      {"--watched", [](options& settings, word_queue&) { settings.watched = true; }},
      {"--seconds",
       [](options& settings, word_queue& words) {
         settings.length = std::chrono::seconds(words.take_number<unsigned>());
       }},
      {"--seed", [](options& settings,
                    word_queue& words) { settings.seed = words.take_number<std::uint64_t>(); }},
      {"--requests",
       [](options& settings, word_queue& words) { settings.requests = words.take_number<int>(); }},
  };
  return table;
}

}  // namespace

options parse_options(int count, char** words) {
  options settings;
  for (word_queue queue(count, words); !queue.empty();) {
    const std::string_view word = queue.take();
    const auto entry = actions().find(word);
    if (entry == actions().end()) throw std::invalid_argument("unknown: " + std::string(word));
    entry->second(settings, queue);
  }
  return settings;
}

const char* usage() {
  return R"(usage: cached_fetch_checks [--events FILE]      plays six requests and checks them
       cached_fetch_checks --serve [--port P]      is the server
       cached_fetch_checks --fetch KEY... --port P is a client; --fetch may be repeated
       cached_fetch_checks --check C1|...|C10      plays one of the checks
server:  --reply-ms N [20]  --accept-hang  --reply-hang  --close-after BYTES
client:  --overall-ms N [1000]  --network-ms N [500]  --mem-get-ms N  --mem-set-ms N
         --disk-get-ms N  --disk-set-ms N  --disk-block  --cache-dir DIR  --cpu N [3]  --net N [2]
checks:  --slack F (times are F times as long)  --watched (less of it)  --requests N (C9)
         --seconds N --seed N (C10)
)";
}

}  // namespace fetch_test
