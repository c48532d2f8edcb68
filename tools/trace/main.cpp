// SPDX-License-Identifier: MIT
// motet-trace: what a trace file says, for people and for other programs.
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <locale>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "fxt.hpp"
#include "reasons.hpp"
#include "summary.hpp"
#include "svg.hpp"
#include "timeline.hpp"
#include "trace_reader.hpp"

namespace {

constexpr const char* usage =
    "usage: motet-trace [--svg FILE] [--fxt FILE] [--from MS] [--to MS] TRACE\n"
    "Says what a trace of motet says: where the time went, and why fibers were late.\n"
    "  --svg FILE   draws a picture of it instead, for a browser\n"
    "  --fxt FILE   writes it for Perfetto instead (ui.perfetto.dev)\n"
    "  --from, --to the part that --svg draws, in milliseconds since the recording began\n";

struct wrong_usage : std::runtime_error {
  using runtime_error::runtime_error;
};

struct arguments {
  std::string trace, svg, fxt;
  std::optional<double> from_ms, to_ms;
};

double milliseconds(const std::string& text) {
  double value = 0;
  std::istringstream number(text);
  number.imbue(std::locale::classic());
  if (!(number >> value) || number.peek() != std::char_traits<char>::eof() ||
      !(value >= 0 && value < 1e9))
    throw wrong_usage("not a number of milliseconds: " + text);
  return value;
}

void check_outputs(const arguments& settings) {
  for (const std::string& output : {settings.svg, settings.fxt}) {
    std::error_code absent;
    if (std::filesystem::equivalent(output, settings.trace, absent))
      throw wrong_usage(output + " is the trace itself");
  }
}

arguments parse(int count, char** words) {
  arguments settings;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] {
      if (++i == count) throw wrong_usage(std::string(word) + " needs a value");
      return std::string(words[i]);
    };
    if (word == "--svg") {
      settings.svg = value();
    } else if (word == "--fxt") {
      settings.fxt = value();
    } else if (word == "--from") {
      settings.from_ms = milliseconds(value());
    } else if (word == "--to") {
      settings.to_ms = milliseconds(value());
    } else if (word.starts_with('-') || !settings.trace.empty()) {
      throw wrong_usage("unknown argument: " + std::string(word));
    } else {
      settings.trace = word;
    }
  }
  if (settings.trace.empty()) throw wrong_usage("no trace was given");
  check_outputs(settings);
  return settings;
}

template <typename F>
void write_file(const std::string& path, F write) {
  std::ofstream file(path, std::ios::binary);
  write(file);
  file.close();
  if (!file) throw std::runtime_error(path + " could not be written");
}

/// Draws the requested part of the trace, or all of it.
void draw(const motet_trace::timeline& history, const arguments& settings, std::ostream& output) {
  std::int64_t begin = INT64_MAX, end = 0;
  for (const auto& line : history.threads()) {
    if (line.begin == motet_trace::no_time) continue;
    begin = std::min(begin, line.begin);
    end = std::max(end, line.end);
  }
  if (settings.from_ms) begin = static_cast<std::int64_t>(*settings.from_ms * 1e6);
  if (settings.to_ms) end = static_cast<std::int64_t>(*settings.to_ms * 1e6);
  motet_trace::write_svg(history, begin, end, output);
}

void tell(const arguments& settings) {
  const motet_trace::trace_reader trace(settings.trace);
  const motet_trace::timeline history(trace, {.arrows = !settings.fxt.empty()});
  if (!settings.svg.empty())
    write_file(settings.svg, [&](auto& output) { draw(history, settings, output); });
  if (!settings.fxt.empty())
    write_file(settings.fxt, [&](auto& output) { write_fxt(history, output); });
  if (!settings.svg.empty() || !settings.fxt.empty()) return;
  tell_summary(history, std::cout);
  tell_why_late(history, std::cout);
  tell_longest_slices(history, std::cout);
  tell_contention(history, std::cout);
  tell_waiting(history, std::cout);
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "--help") == 0) {
    std::cout << usage;
    return 0;
  }
  try {
    tell(parse(count, words));
    if (!std::cout.flush()) throw std::runtime_error("the standard output could not be written");
  } catch (const wrong_usage& wrong) {
    std::cerr << "motet-trace: " << wrong.what() << '\n' << usage;
    return 64;
  } catch (const std::exception& wrong) {
    std::cerr << "motet-trace: " << wrong.what() << '\n';
    return 1;
  }
}
