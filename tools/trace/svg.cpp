// SPDX-License-Identifier: MIT
// See svg.hpp. A column of pixels is as dark as the share of its time in which the fiber ran, so
// that a million slices make no larger a picture than a hundred.
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
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (static_cast<unsigned char>(c) >= 32) {
      result += c;
    }
  }
  return result;
}

/// The shares of columns, from 0 to 1.
using shares = std::vector<double>;

class window {
 public:
  window(std::int64_t begin, std::int64_t end)
      : begin_(begin), length_(std::max<std::int64_t>(end - begin, 1)) {}

  void add(shares& totals, std::int64_t begin, std::int64_t end) const {
    const double first = column(begin), last = column(end);
    if (last <= 0 || first >= columns) return;
    for (int i = static_cast<int>(std::max(0.0, first)); i < columns && i < last; ++i)
      totals[static_cast<std::size_t>(i)] +=
          std::min<double>(last, i + 1) - std::max<double>(first, i);
  }
  std::int64_t at(int column) const { return begin_ + length_ / columns * column; }
  bool shows(const slice& entry) const {
    return entry.end > begin_ && entry.begin < begin_ + length_;
  }

 private:
  double column(std::int64_t time) const {
    return static_cast<double>(time - begin_) / static_cast<double>(length_) * columns;
  }

  std::int64_t begin_, length_;
};

/// Neighbouring columns of the same shade are one rectangle.
void draw(std::ostream& output, const shares& parts, std::string_view kind, int y, int height) {
  const auto shade = [&](int i) {
    const double share = parts[static_cast<std::size_t>(i)];
    return share <= 0 ? 0 : std::clamp(static_cast<int>(share * shades + 0.999), 1, shades);
  };
  for (int i = 0, next = 0; i < columns; i = next) {
    const int dark = shade(i);
    for (next = i; next < columns && shade(next) == dark; ++next) {
    }
    if (dark == 0) continue;
    output << "<rect class=\"" << kind << "\" x=\"" << label_width + i << "\" y=\"" << y
           << "\" width=\"" << next - i << "\" height=\"" << height << "\" opacity=\""
           << opacities[static_cast<std::size_t>(dark)] << "\"/>";
  }
}

struct row {
  std::uint64_t fiber = 0;
  std::int64_t ran = 0;
};

std::vector<row> rows_of(const thread_line& line, const window& view) {
  std::unordered_map<std::uint64_t, std::int64_t> ran;
  for (const slice& entry : line.slices) {
    if (view.shows(entry)) ran[entry.fiber] += entry.end - entry.begin;
  }
  std::vector<row> result;
  for (const auto& [fiber, time] : ran) result.push_back({fiber, time});
  std::sort(result.begin(), result.end(), [](const row& a, const row& b) {
    return a.ran != b.ran ? a.ran > b.ran : a.fiber < b.fiber;
  });
  if (result.size() > most_fibers) result.resize(most_fibers);
  std::sort(result.begin(), result.end(),
            [](const row& a, const row& b) { return a.fiber < b.fiber; });
  return result;
}

/// A fiber's states: shares of the columns.
struct doing {
  shares runs = shares(columns), stands = shares(columns), waits = shares(columns);
};

doing doing_of(const thread_line& line, std::uint64_t fiber, const window& view) {
  doing result;
  std::int64_t parked_at = no_time;
  for (const slice& entry : line.slices) {
    if (entry.fiber != fiber) continue;
    if (parked_at != no_time) view.add(result.waits, parked_at, entry.begin);
    view.add(result.runs, entry.begin, entry.end);
    parked_at = entry.ending == format::kind::park ? entry.end : no_time;
  }
  if (parked_at != no_time) view.add(result.waits, parked_at, line.end);
  for (const delay& entry : line.delays) {
    if (entry.fiber == fiber) view.add(result.stands, entry.begin, entry.end);
  }
  return result;
}

void draw_row(std::ostream& output, const timeline& history, const thread_line& line,
              const row& item, const window& view, int y) {
  const doing did = doing_of(line, item.fiber, view);
  const std::string label = escaped(history.short_label(item.fiber));
  output << "<g><title>" << label << ": ran " << span(item.ran) << "</title><text x=\"4\" y=\""
         << y + 13 << "\">" << label << "</text>";
  draw(output, did.waits, "w", y + 8, row_height - 16);
  draw(output, did.stands, "q", y + 5, row_height - 10);
  draw(output, did.runs, "r", y + 2, row_height - 4);
  output << "</g>\n";
}

void draw_axis(std::ostream& output, const window& view, int height) {
  constexpr int marks = 6;
  for (int i = 0; i <= marks; ++i) {
    const int x = columns / marks * i;
    output << "<line class=\"l\" x1=\"" << label_width + x << "\" y1=\"20\" x2=\""
           << label_width + x << "\" y2=\"" << height << "\"/><text class=\"a\" x=\""
           << label_width + x + 2 << "\" y=\"14\">" << span(view.at(x)) << "</text>";
  }
  output << '\n';
}

}  // namespace

void write_svg(const timeline& history, std::int64_t begin, std::int64_t end,
               std::ostream& output) {
  const window view(begin, end);
  std::vector<std::vector<row>> rows;
  int lines = 2;
  for (const thread_line& line : history.threads()) {
    rows.push_back(rows_of(line, view));
    if (!rows.back().empty()) lines += static_cast<int>(rows.back().size()) + 1;
  }
  const int height = 24 + lines * row_height, width = label_width + columns + 80;
  output << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\""
         << height << "\" viewBox=\"0 0 " << width << ' ' << height << "\">\n"
         << head << "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  draw_axis(output, view, height - 2 * row_height);
  int y = 24;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    output << "<text class=\"t\" x=\"4\" y=\"" << y + 13 << "\">thread "
           << history.threads()[i].thread << "</text>\n";
    y += row_height;
    for (const row& item : rows[i]) {
      draw_row(output, history, history.threads()[i], item, view, y);
      y += row_height;
    }
  }
  output << "<text class=\"a\" x=\"4\" y=\"" << y + 20
         << "\">blue: runs; orange: stands in line; grey: waits; the fibers of each thread "
            "that ran longest</text>\n</svg>\n";
}

}  // namespace motet_trace
