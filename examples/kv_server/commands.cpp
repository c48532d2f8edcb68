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
  entry* item = entry_of(key);
  if (item == nullptr) return nullptr;
  T* value = std::get_if<T>(&item->value);
  if (value == nullptr) throw command_error("WRONGTYPE another kind of value");
  return value;
}

void check_length(std::size_t of_answer) {
  if (of_answer > longest_answer) throw command_error("ERR the answer would be too long");
}

/// The clock counts nanoseconds from 1970, for some 292 years.
std::chrono::system_clock::time_point time_at(long long number) {
  constexpr auto maximum =
      std::chrono::duration_cast<seconds>(std::chrono::system_clock::duration::max());
  if (number < 0 || number > maximum.count()) throw command_error("ERR invalid expire time");
  return std::chrono::system_clock::time_point(seconds(number));
}

long long number_of(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw command_error("ERR value is not an integer or out of range");
}

void add_value(std::string& output, const std::string* value) {
  value != nullptr ? resp::add_text(output, *value) : void(output += "$-1\r\n");
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
    {"PING", {1, false, [](const words&, std::string& output) { output += "+PONG\r\n"; }}},
    {"GET",
     {2, false,
      [](const words& w, std::string& output) { add_value(output, find<std::string>(w[1])); }}},
    {"SET",
     {3, true,
      [](const words& w, std::string& output) {
        entries.insert_or_assign(std::string(w[1]), entry{std::string(w[2]), {}});
        output += "+OK\r\n";
      }}},
    {"DEL",
     {2, true,
      [](const words& w, std::string& output) {
        resp::add_number(output, ':', std::count_if(w.begin() + 1, w.end(), [](auto key) {
                           return exists(key) && entries.erase(std::string(key)) > 0;
                         }));
      }}},
    {"INCR",
     {2, true,
      [](const words& w, std::string& output) {
        std::string* old = find<std::string>(w[1]);
        long long number = old != nullptr ? number_of(*old) : 0;
        if (number == std::numeric_limits<long long>::max()) {
          throw command_error("ERR increment would overflow");
        }
        ++number;
        if (old == nullptr) old = &std::get<std::string>(entries[std::string(w[1])].value);
        *old = std::to_string(number);
        resp::add_number(output, ':', number);
      }}},
    {"EXPIRE", {3, true, {}}},  // see carry_out()
    {"EXPIREAT",
     {3, true,
      [](const words& w, std::string& output) {
        const auto ends = time_at(number_of(w[2]));
        entry* item = entry_of(w[1]);
        if (item != nullptr) item->ends = ends;
        resp::add_number(output, ':', item != nullptr ? 1 : 0);
      }}},
    {"MGET",
     {2, false,
      [](const words& w, std::string& output) {
        std::size_t length = 0;
        for (auto key = w.begin() + 1; key != w.end(); ++key) {
          const std::string* value = find<std::string>(*key);
          length += value != nullptr ? value->size() : 0;
        }
        check_length(length);
        resp::add_number(output, '*', static_cast<long long>(w.size()) - 1);
        for (auto key = w.begin() + 1; key != w.end(); ++key)
          add_value(output, find<std::string>(*key));
      }}},
    {"LPUSH",
     {3, true,
      [](const words& w, std::string& output) {
        list* items = find<list>(w[1]);
        if (items == nullptr) {
          items = &std::get<list>(entries.emplace(w[1], entry{list(), {}}).first->second.value);
        }
        for (auto word = w.begin() + 2; word != w.end(); ++word) items->emplace_front(*word);
        resp::add_number(output, ':', static_cast<long long>(items->size()));
      }}},
    {"LRANGE",
     {4, false,
      [](const words& w, std::string& output) {
        const list* items = find<list>(w[1]);
        const long long size = items != nullptr ? static_cast<long long>(items->size()) : 0;
        const auto index_of = [&](long long index) { return index < 0 ? index + size : index; };
        const long long begin = std::max(index_of(number_of(w[2])), 0ll);
        const long long end = std::min(index_of(number_of(w[3])) + 1, size);
        std::size_t length = 0;
        for (long long index = begin; index < end; ++index)
          length += (*items)[static_cast<std::size_t>(index)].size();
        check_length(length);
        resp::add_number(output, '*', std::max(end - begin, 0ll));
        for (long long index = begin; index < end; ++index)
          resp::add_text(output, (*items)[static_cast<std::size_t>(index)]);
      }}},
};

}  // namespace

std::string carry_out(const words& request, std::string& output) {
  const auto command_entry = commands.find(request.at(0));
  if (command_entry == commands.end()) throw command_error("ERR unknown command");
  if (request.size() < command_entry->second.words_at_least)
    throw command_error("ERR too few arguments");
  // A span of time begins anew when it is read again, a point in time does not.
  if (request[0] == "EXPIRE") {
    const auto clock_time = std::chrono::system_clock::now().time_since_epoch();
    const auto present_seconds = std::chrono::duration_cast<seconds>(clock_time).count();
    const long long span = number_of(request[2]);
    if (span > std::numeric_limits<long long>::max() - present_seconds) {
      throw command_error("ERR invalid expire time");
    }
    return carry_out(
        {"EXPIREAT", request[1], std::to_string(std::max(present_seconds + span, 0ll))}, output);
  }
  command_entry->second.call(request, output);
  std::string log = std::exchange(log_of_ended, {});
  if (command_entry->second.changes) resp::add_command(log, request);
  return log;
}

void carry_out_again(const words& logged) {
  log_is_read = true;
  std::string ignored;
  carry_out(logged, ignored);
  log_is_read = false;
}

void forget_all() {
  entries.clear();
  log_of_ended.clear();
}
