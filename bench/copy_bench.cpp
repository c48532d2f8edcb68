// SPDX-License-Identifier: MIT
// A file copied, synced or a directory listed, beside a fiber that wants to run each millisecond.
// Run: copy_bench copy FROM TO | sync FILE | list DIRECTORY; prints ms, and the ticker's worst
// delay in ms.
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <motet/motet.hpp>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

namespace {

using milliseconds = std::chrono::duration<double, std::milli>;

void copy_file(const char* from, const char* to) {
  motet::file source = motet::file::open(from);
  motet::file target = motet::file::open(to, O_WRONLY | O_CREAT | O_TRUNC);
  motet::copy(source, target);
}

/// Dirty pages, and then the call that waits for the disk.
void sync_file(const char* path) {
  motet::file target = motet::file::open(path, O_WRONLY | O_CREAT | O_TRUNC);
  const std::vector<std::byte> piece(std::size_t{1} << 20);
  for (int left = 256; left > 0; --left) target.write_all(piece);
  target.sync();
}

void list(const char* path) {
  std::size_t names = 0;
  for ([[maybe_unused]] const motet::directory_entry& each : motet::directory(path)) ++names;
  std::fprintf(stderr, "%zu names\n", names);
}

std::function<void()> chosen_by(int count, char** words) {
  const std::string_view what = count > 2 ? words[1] : "";
  if (what == "copy" && count == 4) return [words] { copy_file(words[2], words[3]); };
  if (what == "sync" && count == 3) return [words] { sync_file(words[2]); };
  if (what == "list" && count == 3) return [words] { list(words[2]); };
  return {};
}

void measure(const std::function<void()>& work) {
  motet::clock::duration worst{};
  motet::group ticker;
  ticker.spin([&] {
    for (auto due = motet::clock::now() + 1ms;; due += 1ms) {
      motet::sleep_until(due);
      const auto present = motet::clock::now();
      worst = std::max(worst, present - due);
      due = std::max(due, present - 1ms);  // a tick that was missed is not made up for
    }
  });
  const auto begin = motet::clock::now();
  work();
  const milliseconds took = motet::clock::now() - begin;
  ticker.cancel();
  std::printf("%.1f %.2f\n", took.count(), milliseconds(worst).count());
}

}  // namespace

int main(int count, char** words) {
  const std::function<void()> work = chosen_by(count, words);
  if (!work) {
    std::fprintf(stderr, "usage: copy_bench copy FROM TO | sync FILE | list DIRECTORY\n");
    return 2;
  }
  motet::run([&] { measure(work); });
}
