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

void check_outputs(const arguments& chosen) {
  for (const std::string& output : {chosen.svg, chosen.fxt}) {
    std::error_code absent;
    if (std::filesystem::equivalent(output, chosen.trace, absent))
      throw wrong_usage(output + " is the trace itself");
  }
}

arguments parse(int count, char** words) {
  arguments chosen;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] {
      if (++i == count) throw wrong_usage(std::string(word) + " needs a value");
      return std::string(words[i]);
    };
    if (word == "--svg") {
      chosen.svg = value();
    } else if (word == "--fxt") {
      chosen.fxt = value();
    } else if (word == "--from") {
      chosen.from_ms = milliseconds(value());
    } else if (word == "--to") {
      chosen.to_ms = milliseconds(value());
    } else if (word.starts_with('-') || !chosen.trace.empty()) {
      throw wrong_usage("unknown argument: " + std::string(word));
    } else {
      chosen.trace = word;
    }
  }
  if (chosen.trace.empty()) throw wrong_usage("no trace was given");
  check_outputs(chosen);
  return chosen;
}

template <typename F>
void write_file(const std::string& path, F write) {
  std::ofstream out(path, std::ios::binary);
  write(out);
  out.close();
  if (!out) throw std::runtime_error(path + " could not be written");
}

/// Draws the requested part of the trace, or all of it.
void draw(const motet_trace::timeline& all, const arguments& chosen, std::ostream& out) {
  std::int64_t from = INT64_MAX, to = 0;
  for (const auto& each : all.threads()) {
    if (each.begin == motet_trace::never) continue;
    from = std::min(from, each.begin);
    to = std::max(to, each.end);
  }
  if (chosen.from_ms) from = static_cast<std::int64_t>(*chosen.from_ms * 1e6);
  if (chosen.to_ms) to = static_cast<std::int64_t>(*chosen.to_ms * 1e6);
  motet_trace::write_svg(all, from, to, out);
}

void tell(const arguments& chosen) {
  const motet_trace::trace_reader trace(chosen.trace);
  const motet_trace::timeline all(trace, {.arrows = !chosen.fxt.empty()});
  if (!chosen.svg.empty()) write_file(chosen.svg, [&](auto& out) { draw(all, chosen, out); });
  if (!chosen.fxt.empty()) write_file(chosen.fxt, [&](auto& out) { write_fxt(all, out); });
  if (!chosen.svg.empty() || !chosen.fxt.empty()) return;
  tell_summary(all, std::cout);
  tell_why_late(all, std::cout);
  tell_longest_turns(all, std::cout);
  tell_contention(all, std::cout);
  tell_waiting(all, std::cout);
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
