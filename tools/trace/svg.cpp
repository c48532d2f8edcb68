// SPDX-License-Identifier: MIT
// See svg.hpp. A column of pixels is as dark as the share of its time in which the fiber ran, so
// that a million turns make no larger a picture than a hundred.
#include "svg.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "words.hpp"

namespace motet_trace {

namespace {

constexpr std::size_t most_fibers = 16;  // of a thread
constexpr int columns = 900, label_width = 300, row_height = 18, shades = 4;
constexpr std::array<const char*, shades + 1> opacities = {"0", ".3", ".55", ".8", "1"};
constexpr std::string_view head =
    "<style>text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.a{fill:#888}"
    ".r{fill:#2a6fb0}.q{fill:#f0a030}.w{fill:#b8c2cc}.l{stroke:#ddd}</style>\n";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char each : text) {
    if (each == '<') {
      result += "&lt;";
    } else if (each == '&') {
      result += "&amp;";
    } else if (static_cast<unsigned char>(each) >= 32) {
      result += each;
    }
  }
  return result;
}

/// The shares of columns, from 0 to 1.
using shares = std::vector<double>;

class window {
 public:
  window(std::int64_t from, std::int64_t to)
      : from_(from), length_(std::max<std::int64_t>(to - from, 1)) {}

  void add(shares& to, std::int64_t begin, std::int64_t end) const {
    const double first = column(begin), last = column(end);
    if (last <= 0 || first >= columns) return;
    for (int i = static_cast<int>(std::max(0.0, first)); i < columns && i < last; ++i)
      to[static_cast<std::size_t>(i)] += std::min<double>(last, i + 1) - std::max<double>(first, i);
  }
  std::int64_t at(int column) const { return from_ + length_ / columns * column; }
  bool shows(const turn& one) const { return one.end > from_ && one.begin < from_ + length_; }

 private:
  double column(std::int64_t when) const {
    return static_cast<double>(when - from_) / static_cast<double>(length_) * columns;
  }

  std::int64_t from_, length_;
};

/// Neighbouring columns of the same shade are one rectangle.
void draw(std::ostream& out, const shares& of, std::string_view kind, int y, int height) {
  const auto shade = [&](int i) {
    const double share = of[static_cast<std::size_t>(i)];
    return share <= 0 ? 0 : std::clamp(static_cast<int>(share * shades + 0.999), 1, shades);
  };
  for (int i = 0, next = 0; i < columns; i = next) {
    const int dark = shade(i);
    for (next = i; next < columns && shade(next) == dark; ++next) {
    }
    if (dark == 0) continue;
    out << "<rect class=\"" << kind << "\" x=\"" << label_width + i << "\" y=\"" << y
        << "\" width=\"" << next - i << "\" height=\"" << height << "\" opacity=\""
        << opacities[static_cast<std::size_t>(dark)] << "\"/>";
  }
}

struct row {
  std::uint64_t fiber = 0;
  std::int64_t ran = 0;
};

std::vector<row> rows_of(const thread_line& line, const window& shown) {
  std::unordered_map<std::uint64_t, std::int64_t> ran;
  for (const turn& each : line.turns) {
    if (shown.shows(each)) ran[each.fiber] += each.end - each.begin;
  }
  std::vector<row> found;
  for (const auto& [fiber, time] : ran) found.push_back({fiber, time});
  std::sort(found.begin(), found.end(), [](const row& a, const row& b) {
    return a.ran != b.ran ? a.ran > b.ran : a.fiber < b.fiber;
  });
  if (found.size() > most_fibers) found.resize(most_fibers);
  std::sort(found.begin(), found.end(),
            [](const row& a, const row& b) { return a.fiber < b.fiber; });
  return found;
}

/// A fiber's states: shares of the columns.
struct doing {
  shares runs = shares(columns), stands = shares(columns), waits = shares(columns);
};

doing doing_of(const thread_line& line, std::uint64_t fiber, const window& shown) {
  doing found;
  std::int64_t parked_at = never;
  for (const turn& each : line.turns) {
    if (each.fiber != fiber) continue;
    if (parked_at != never) shown.add(found.waits, parked_at, each.begin);
    shown.add(found.runs, each.begin, each.end);
    parked_at = each.how == format::kind::park ? each.end : never;
  }
  if (parked_at != never) shown.add(found.waits, parked_at, line.end);
  for (const delay& each : line.delays) {
    if (each.fiber == fiber) shown.add(found.stands, each.from, each.to);
  }
  return found;
}

void draw_row(std::ostream& out, const timeline& all, const thread_line& line, const row& one,
              const window& shown, int y) {
  const doing did = doing_of(line, one.fiber, shown);
  const std::string label = escaped(all.short_label(one.fiber));
  out << "<g><title>" << label << ": ran " << span(one.ran) << "</title><text x=\"4\" y=\""
      << y + 13 << "\">" << label << "</text>";
  draw(out, did.waits, "w", y + 8, row_height - 16);
  draw(out, did.stands, "q", y + 5, row_height - 10);
  draw(out, did.runs, "r", y + 2, row_height - 4);
  out << "</g>\n";
}

void draw_axis(std::ostream& out, const window& shown, int height) {
  constexpr int marks = 6;
  for (int i = 0; i <= marks; ++i) {
    const int x = columns / marks * i;
    out << "<line class=\"l\" x1=\"" << label_width + x << "\" y1=\"20\" x2=\"" << label_width + x
        << "\" y2=\"" << height << "\"/><text class=\"a\" x=\"" << label_width + x + 2
        << "\" y=\"14\">" << span(shown.at(x)) << "</text>";
  }
  out << '\n';
}

}  // namespace

void write_svg(const timeline& all, std::int64_t from, std::int64_t to, std::ostream& out) {
  const window shown(from, to);
  std::vector<std::vector<row>> rows;
  int lines = 2;
  for (const thread_line& line : all.threads()) {
    rows.push_back(rows_of(line, shown));
    if (!rows.back().empty()) lines += static_cast<int>(rows.back().size()) + 1;
  }
  const int height = 24 + lines * row_height, width = label_width + columns + 80;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" viewBox=\"0 0 " << width << ' ' << height << "\">\n"
      << head << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  draw_axis(out, shown, height - 2 * row_height);
  int y = 24;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    out << "<text class=\"t\" x=\"4\" y=\"" << y + 13 << "\">thread " << all.threads()[i].thread
        << "</text>\n";
    y += row_height;
    for (const row& each : rows[i]) {
      draw_row(out, all, all.threads()[i], each, shown, y);
      y += row_height;
    }
  }
  out << "<text class=\"a\" x=\"4\" y=\"" << y + 20
      << "\">blue: runs; orange: stands in line; grey: waits; the fibers of each thread "
         "that ran longest</text>\n</svg>\n";
}

}  // namespace motet_trace
