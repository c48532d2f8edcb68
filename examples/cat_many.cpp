// SPDX-License-Identifier: MIT
// Writes files one after another, as cat(1) does, but reads several at the same time: a fiber reads
// each file into a small channel, and the main fiber empties the channels in the order of the
// arguments. So a slow disk is asked for the next files early, and memory holds a few pieces only.
// Run: cat_many FILE...
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <motet/motet.hpp>
#include <span>
#include <system_error>
#include <vector>

namespace {

using piece = std::vector<std::byte>;

constexpr std::size_t files_at_once = 8;
constexpr std::size_t pieces_ahead = 4;
constexpr std::size_t piece_size = 65'536;

/// A file that is being read.
struct source {
  explicit source(const char* file) : path(file) {}
  const char* path;
  motet::local::channel<piece> pieces{pieces_ahead};
  bool has_failed = false;
};

void read(source& file) {
  try {
    motet::file stream = motet::file::open(file.path);
    for (;;) {
      piece next(piece_size);
      next.resize(stream.read(next));
      if (next.empty()) break;
      file.pieces.push(std::move(next));
    }
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "cat_many: %s\n", error.what());
    file.has_failed = true;
  }
  file.pieces.close();
}

/// Returns: whether all files could be read.
bool write_all(std::span<char*> paths) {
  bool good = true;
  std::deque<source> open;
  motet::group readers;
  auto next = paths.begin();
  for (;;) {
    while (open.size() < files_at_once && next != paths.end()) {
      open.emplace_back(*next++);
      readers.spin([&file = open.back()] { read(file); });
    }
    if (open.empty()) return good;
    for (const piece& part : open.front().pieces) motet::io::write_all(STDOUT_FILENO, part);
    good = good && !open.front().has_failed;
    open.pop_front();
  }
}

}  // namespace

int main(int count, char** arguments) {
  return motet::run([&] {
    try {
      return write_all(std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) ? 0 : 1;
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::broken_pipe) std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  });
}
