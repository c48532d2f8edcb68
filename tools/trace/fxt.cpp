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
  explicit fxt_writer(std::ostream& output) : output_(output) {}

  void word(std::uint64_t value) {
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    output_.write(bytes.data(), bytes.size());
  }
  void text(std::string_view value) {
    constexpr std::array<char, 8> padding{};
    output_.write(value.data(), static_cast<std::streamsize>(value.size()));
    output_.write(padding.data(), static_cast<std::streamsize>(words_of(value) * 8 - value.size()));
  }
  /// Returns: the number of the string. When the numbers run out, the oldest are reused.
  std::uint64_t string(std::string_view value) {
    if (value.empty()) return 0;
    const auto entry = numbers_.find(std::string(value));
    if (entry != numbers_.end()) return entry->second;
    if (numbers_.size() == most_strings) numbers_.clear();
    const std::uint64_t number = numbers_.size() + 1;
    numbers_.emplace(value, number);
    word(strings | (1 + words_of(value)) << 4 | number << 16 | value.size() << 32);
    text(value);
    return number;
  }
  void named(object_type type, std::uint64_t id, std::string_view name, std::uint64_t process) {
    const std::uint64_t its_name = string(name);
    const std::uint64_t process_name = string("process");
    const bool in_process = type == thread_object;
    word(kernel | (in_process ? 4U : 2U) << 4 | type << 16 | its_name << 24 |
         (in_process ? std::uint64_t{1} : 0) << 40);
    word(id);
    if (!in_process) return;
    word(koid_argument | 2U << 4 | process_name << 16);
    word(process);
  }
  void header(event_type type, std::uint64_t size, std::uint64_t arguments, std::uint64_t thread,
              std::uint64_t category, std::uint64_t name) {
    word(events | size << 4 | type << 16 | arguments << 20 | thread << 24 | category << 32 |
         name << 48);
  }

 private:
  std::ostream& output_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

std::uint64_t time_of(std::int64_t time) {
  return static_cast<std::uint64_t>(time);
}

void begin(fxt_writer& writer, const timeline& history) {
  constexpr std::string_view name = "motet";
  const std::uint64_t provider = 1, process = history.trace().process();
  writer.word(magic_record);
  writer.word(metadata | 2U << 4 | 1U << 16 | provider << 20 | std::uint64_t{name.size()} << 52);
  writer.text(name);
  writer.word(metadata | 1U << 4 | 2U << 16 | provider << 20);
  writer.word(initialization | 2U << 4);
  writer.word(1'000'000'000);
  writer.named(process_object, process, name, 0);
  for (const thread_line& line : history.threads())
    writer.named(thread_object, line.thread, "thread " + std::to_string(line.thread), process);
}

/// The numbers of threads are eight bits wide, and are given anew for each thread that is written.
constexpr std::uint64_t only_thread = 1;

void choose_thread(fxt_writer& writer, const timeline& history, std::size_t index) {
  writer.word(threads | 3U << 4 | only_thread << 16);
  writer.word(history.trace().process());
  writer.word(history.threads()[index].thread);
}

void write_slice(fxt_writer& writer, const timeline& history, const slice& entry) {
  const std::uint64_t category = writer.string("fiber"),
                      name = writer.string(history.kind_of(entry.fiber));
  const std::uint64_t ending_name = writer.string("then"), fiber = writer.string("fiber");
  const bool waits = entry.ending == format::kind::park;
  const std::uint64_t wait_text = waits ? writer.string(history.trace().text(entry.wait_text)) : 0;
  writer.header(complete, waits ? 6 : 5, waits ? 2 : 1, only_thread, category, name);
  writer.word(time_of(entry.begin));
  writer.word(uint64_argument | 2U << 4 | fiber << 16);
  writer.word(entry.fiber);
  if (waits) writer.word(string_argument | 1U << 4 | ending_name << 16 | wait_text << 32);
  writer.word(time_of(entry.end));
}

void write_end_of_arrow(fxt_writer& writer, event_type type, std::int64_t time, std::uint64_t id) {
  const std::uint64_t category = writer.string("wake"), name = writer.string("wakes");
  writer.header(type, 3, 0, only_thread, category, name);
  writer.word(time_of(time));
  writer.word(id);
}

}  // namespace

void write_fxt(const timeline& history, std::ostream& stream) {
  fxt_writer writer(stream);
  begin(writer, history);
  for (std::size_t i = 0; i < history.threads().size(); ++i) {
    choose_thread(writer, history, i);
    for (const slice& entry : history.threads()[i].slices) write_slice(writer, history, entry);
    for (std::size_t id = 0; id < history.arrows().size(); ++id) {
      const arrow& link = history.arrows()[id];
      if (link.from_thread == i) write_end_of_arrow(writer, flow_begin, link.begin, id + 1);
      if (link.to_thread == i) write_end_of_arrow(writer, flow_end, link.end, id + 1);
    }
  }
}

}  // namespace motet_trace
