// SPDX-License-Identifier: MIT
// See commands.hpp.
#include "commands.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "resp.hpp"

namespace {

using list = std::deque<std::string>;
using seconds = std::chrono::seconds;

struct entry {
  std::variant<std::string, list> value;
  std::optional<std::chrono::system_clock::time_point> ends;
};
struct by_text : std::hash<std::string_view> {
  using is_transparent = void;
};
std::unordered_map<std::string, entry, by_text, std::equal_to<>> entries;

/// While the log is read no key ends by itself: the log says which one has, and when.
bool log_is_read = false;
std::string log_of_ended;

/// What answers are limited to, so that no client has the server hold much.
constexpr std::size_t longest_answer = std::size_t{16} << 20;

/// Returns: null if the key is not there, or has ended.
entry* entry_of(std::string_view key) {
  const auto place = entries.find(key);
  if (place == entries.end()) return nullptr;
  const auto& ends = place->second.ends;
  if (log_is_read || !ends || *ends > std::chrono::system_clock::now()) return &place->second;
  resp::add_command(log_of_ended, {"DEL", key});
  entries.erase(place);
  return nullptr;
}

template <typename T>
T* find(std::string_view key) {
  entry* held = entry_of(key);
  if (held == nullptr) return nullptr;
  T* found = std::get_if<T>(&held->value);
  if (found == nullptr) throw command_error("WRONGTYPE another kind of value");
  return found;
}

void check_length(std::size_t of_answer) {
  if (of_answer > longest_answer) throw command_error("ERR the answer would be too long");
}

/// The clock counts nanoseconds from 1970, for some 292 years.
std::chrono::system_clock::time_point time_at(long long number) {
  constexpr auto most =
      std::chrono::duration_cast<seconds>(std::chrono::system_clock::duration::max());
  if (number < 0 || number > most.count()) throw command_error("ERR invalid expire time");
  return std::chrono::system_clock::time_point(seconds(number));
}

long long number_of(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw command_error("ERR value is not an integer or out of range");
}

void add_value(std::string& to, const std::string* value) {
  value != nullptr ? resp::add_text(to, *value) : void(to += "$-1\r\n");
}

bool exists(std::string_view key) {
  return entry_of(key) != nullptr;
}

/// A command: how many words it has at least, whether it changes anything, what it does.
struct command {
  std::size_t words_at_least;
  bool changes;
  std::function<void(const words&, std::string&)> call;
};
const std::unordered_map<std::string_view, command> commands = {
    {"PING", {1, false, [](const words&, std::string& to) { to += "+PONG\r\n"; }}},
    {"GET",
     {2, false, [](const words& w, std::string& to) { add_value(to, find<std::string>(w[1])); }}},
    {"SET",
     {3, true,
      [](const words& w, std::string& to) {
        entries.insert_or_assign(std::string(w[1]), entry{std::string(w[2]), {}});
        to += "+OK\r\n";
      }}},
    {"DEL",
     {2, true,
      [](const words& w, std::string& to) {
        resp::add_number(to, ':', std::count_if(w.begin() + 1, w.end(), [](auto key) {
                           return exists(key) && entries.erase(std::string(key)) > 0;
                         }));
      }}},
    {"INCR",
     {2, true,
      [](const words& w, std::string& to) {
        std::string* old = find<std::string>(w[1]);
        long long number = old != nullptr ? number_of(*old) : 0;
        if (number == std::numeric_limits<long long>::max()) {
          throw command_error("ERR increment would overflow");
        }
        ++number;
        if (old == nullptr) old = &std::get<std::string>(entries[std::string(w[1])].value);
        *old = std::to_string(number);
        resp::add_number(to, ':', number);
      }}},
    {"EXPIRE", {3, true, {}}},  // see carry_out()
    {"EXPIREAT",
     {3, true,
      [](const words& w, std::string& to) {
        const auto ends = time_at(number_of(w[2]));
        entry* found = entry_of(w[1]);
        if (found != nullptr) found->ends = ends;
        resp::add_number(to, ':', found != nullptr ? 1 : 0);
      }}},
    {"MGET",
     {2, false,
      [](const words& w, std::string& to) {
        std::size_t length = 0;
        for (auto key = w.begin() + 1; key != w.end(); ++key) {
          const std::string* value = find<std::string>(*key);
          length += value != nullptr ? value->size() : 0;
        }
        check_length(length);
        resp::add_number(to, '*', static_cast<long long>(w.size()) - 1);
        for (auto key = w.begin() + 1; key != w.end(); ++key)
          add_value(to, find<std::string>(*key));
      }}},
    {"LPUSH",
     {3, true,
      [](const words& w, std::string& to) {
        list* found = find<list>(w[1]);
        if (found == nullptr) {
          found = &std::get<list>(entries.emplace(w[1], entry{list(), {}}).first->second.value);
        }
        for (auto each = w.begin() + 2; each != w.end(); ++each) found->emplace_front(*each);
        resp::add_number(to, ':', static_cast<long long>(found->size()));
      }}},
    {"LRANGE",
     {4, false,
      [](const words& w, std::string& to) {
        const list* found = find<list>(w[1]);
        const long long size = found != nullptr ? static_cast<long long>(found->size()) : 0;
        const auto place = [&](long long at) { return at < 0 ? at + size : at; };
        const long long begin = std::max(place(number_of(w[2])), 0ll);
        const long long end = std::min(place(number_of(w[3])) + 1, size);
        std::size_t length = 0;
        for (long long at = begin; at < end; ++at)
          length += (*found)[static_cast<std::size_t>(at)].size();
        check_length(length);
        resp::add_number(to, '*', std::max(end - begin, 0ll));
        for (long long at = begin; at < end; ++at)
          resp::add_text(to, (*found)[static_cast<std::size_t>(at)]);
      }}},
};

}  // namespace

std::string carry_out(const words& asked, std::string& to) {
  const auto found = commands.find(asked.at(0));
  if (found == commands.end()) throw command_error("ERR unknown command");
  if (asked.size() < found->second.words_at_least) throw command_error("ERR too few arguments");
  // A span of time begins anew when it is read again, a point in time does not.
  if (asked[0] == "EXPIRE") {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto present = std::chrono::duration_cast<seconds>(now).count();
    const long long span = number_of(asked[2]);
    if (span > std::numeric_limits<long long>::max() - present) {
      throw command_error("ERR invalid expire time");
    }
    return carry_out({"EXPIREAT", asked[1], std::to_string(std::max(present + span, 0ll))}, to);
  }
  found->second.call(asked, to);
  std::string log = std::exchange(log_of_ended, {});
  if (found->second.changes) resp::add_command(log, asked);
  return log;
}

void carry_out_again(const words& logged) {
  log_is_read = true;
  std::string ignored;
  carry_out(logged, ignored);
  log_is_read = false;
}
