// SPDX-License-Identifier: MIT
// See fxt.hpp. Words of eight bytes in the machine's order; a time is in nanoseconds.
#include "fxt.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace motet_trace {

namespace {

enum record_type : std::uint64_t {
  metadata = 0,
  initialization,
  strings,
  threads,
  events,
  kernel = 7
};
enum event_type : std::uint64_t { complete = 4, flow_begin = 8, flow_end = 10 };
enum object_type : std::uint64_t { process_object = 1, thread_object = 2 };
enum argument_type : std::uint64_t { uint64_argument = 4, string_argument = 6, koid_argument = 8 };

constexpr std::uint64_t magic_record = 0x0016547846040010;
constexpr std::uint64_t most_strings = 0x7fff;

std::uint64_t words_of(std::string_view text) {
  return (text.size() + 7) / 8;
}

class fxt_writer {
 public:
  explicit fxt_writer(std::ostream& out) : out_(out) {}

  void word(std::uint64_t value) {
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    out_.write(bytes.data(), bytes.size());
  }
  void text(std::string_view value) {
    constexpr std::array<char, 8> padding{};
    out_.write(value.data(), static_cast<std::streamsize>(value.size()));
    out_.write(padding.data(), static_cast<std::streamsize>(words_of(value) * 8 - value.size()));
  }
  /// Returns: the number of the string. When the numbers run out, the oldest are reused.
  std::uint64_t string(std::string_view value) {
    if (value.empty()) return 0;
    const auto known = numbers_.find(std::string(value));
    if (known != numbers_.end()) return known->second;
    if (numbers_.size() == most_strings) numbers_.clear();
    const std::uint64_t number = numbers_.size() + 1;
    numbers_.emplace(value, number);
    word(strings | (1 + words_of(value)) << 4 | number << 16 | value.size() << 32);
    text(value);
    return number;
  }
  void named(object_type what, std::uint64_t id, std::string_view name, std::uint64_t process) {
    const std::uint64_t its_name = string(name);
    const std::uint64_t process_name = string("process");
    const bool in_process = what == thread_object;
    word(kernel | (in_process ? 4U : 2U) << 4 | what << 16 | its_name << 24 |
         (in_process ? std::uint64_t{1} : 0) << 40);
    word(id);
    if (!in_process) return;
    word(koid_argument | 2U << 4 | process_name << 16);
    word(process);
  }
  void header(event_type what, std::uint64_t size, std::uint64_t arguments, std::uint64_t thread,
              std::uint64_t category, std::uint64_t name) {
    word(events | size << 4 | what << 16 | arguments << 20 | thread << 24 | category << 32 |
         name << 48);
  }

 private:
  std::ostream& out_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

std::uint64_t time_of(std::int64_t when) {
  return static_cast<std::uint64_t>(when);
}

void begin(fxt_writer& out, const timeline& all) {
  constexpr std::string_view name = "motet";
  const std::uint64_t provider = 1, process = all.trace().process();
  out.word(magic_record);
  out.word(metadata | 2U << 4 | 1U << 16 | provider << 20 | std::uint64_t{name.size()} << 52);
  out.text(name);
  out.word(metadata | 1U << 4 | 2U << 16 | provider << 20);
  out.word(initialization | 2U << 4);
  out.word(1'000'000'000);
  out.named(process_object, process, name, 0);
  for (const thread_line& line : all.threads())
    out.named(thread_object, line.thread, "thread " + std::to_string(line.thread), process);
}

/// The numbers of threads are eight bits wide, and are given anew for each thread that is written.
constexpr std::uint64_t only_thread = 1;

void choose_thread(fxt_writer& out, const timeline& all, std::size_t which) {
  out.word(threads | 3U << 4 | only_thread << 16);
  out.word(all.trace().process());
  out.word(all.threads()[which].thread);
}

void write_turn(fxt_writer& out, const timeline& all, const turn& one) {
  const std::uint64_t category = out.string("fiber"), name = out.string(all.kind_of(one.fiber));
  const std::uint64_t then = out.string("then"), fiber = out.string("fiber");
  const bool waits = one.how == format::kind::park;
  const std::uint64_t what = waits ? out.string(all.trace().text(one.what)) : 0;
  out.header(complete, waits ? 6 : 5, waits ? 2 : 1, only_thread, category, name);
  out.word(time_of(one.begin));
  out.word(uint64_argument | 2U << 4 | fiber << 16);
  out.word(one.fiber);
  if (waits) out.word(string_argument | 1U << 4 | then << 16 | what << 32);
  out.word(time_of(one.end));
}

void write_end_of_arrow(fxt_writer& out, event_type what, std::int64_t when, std::uint64_t id) {
  const std::uint64_t category = out.string("wake"), name = out.string("wakes");
  out.header(what, 3, 0, only_thread, category, name);
  out.word(time_of(when));
  out.word(id);
}

}  // namespace

void write_fxt(const timeline& all, std::ostream& stream) {
  fxt_writer out(stream);
  begin(out, all);
  for (std::size_t i = 0; i < all.threads().size(); ++i) {
    choose_thread(out, all, i);
    for (const turn& each : all.threads()[i].turns) write_turn(out, all, each);
    for (std::size_t id = 0; id < all.arrows().size(); ++id) {
      const arrow& each = all.arrows()[id];
      if (each.from_thread == i) write_end_of_arrow(out, flow_begin, each.from, id + 1);
      if (each.to_thread == i) write_end_of_arrow(out, flow_end, each.to, id + 1);
    }
  }
}

}  // namespace motet_trace
