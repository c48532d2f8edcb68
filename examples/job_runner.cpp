// SPDX-License-Identifier: MIT
// Runs shell commands, one a line, several at a time, and writes for each, once it is over, how it
// ended and what it wrote. A command that takes too long, or writes more than 1 MiB, is ended.
// SIGINT and SIGTERM end those that run, and then the job runner. With a command end the programs
// that it has started and left behind. It returns 1 if a command did not return 0.
// Run: job_runner [--at-once N] [--limit SECONDS] [FILE]; without a file it reads stdin.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_output = 1 << 20;  // bytes of one stream
constexpr std::size_t most = 1'000'000;       // of jobs at once, and of seconds
constexpr auto grace = 1s;                    // from SIGTERM to SIGKILL

struct arguments {
  std::size_t at_once = 4;
  std::chrono::seconds limit = 60s;
  std::string file = "/dev/stdin";
};

std::size_t positive(std::string_view name, std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value == 0 || value > most) {
    throw std::invalid_argument(std::string(name) + " needs a number from 1 to 1000000");
  }
  return value;
}

arguments read_arguments(std::span<char*> words) {
  arguments read;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : "";
    if (word == "--at-once") {
      read.at_once = positive(word, next);
      ++i;
    } else if (word == "--limit") {
      read.limit = std::chrono::seconds(positive(word, next));
      ++i;
    } else if (word.starts_with("-") || i + 1 != words.size()) {
      throw std::invalid_argument("usage: job_runner [--at-once N] [--limit SECONDS] [FILE]");
    } else {
      read.file = word;
    }
  }
  return read;
}

/// How a command ended, and what it wrote.
struct outcome {
  std::string how;
  std::string wrote = {};
  bool good = false;
};

/// Returns: the lines of `text`, each with `mark` before it.
std::string marked(std::string_view mark, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t size = text.find('\n');
    lines.append(mark).append(text.substr(0, size)).append("\n");
    text.remove_prefix(size == text.npos ? text.size() : size + 1);
  }
  return lines;
}

outcome run(const std::string& command, std::chrono::seconds limit) {
  const motet::process_options shell{.program = "/bin/sh",
                                     .args = {"-c", command},
                                     .in = motet::standard_stream::null,
                                     .new_group = true,
                                     .grace = grace};
  try {
    const auto result =
        motet::with_timeout(limit, [&] { return motet::run_command(shell, {}, most_output); });
    const motet::exit_status status = result.status;
    return {.how = status.signal == 0 ? "exit " + std::to_string(status.code)
                                      : "signal " + std::to_string(status.signal),
            .wrote = marked("  out: ", result.out) + marked("  err: ", result.err),
            .good = static_cast<bool>(status)};
  } catch (const motet::timed_out&) {
    return {.how = "ended, too slow"};
  } catch (const motet::limit_exceeded&) {
    return {.how = "ended, wrote too much"};
  } catch (const std::exception& failure) {
    return {.how = std::string("not run, ") + failure.what()};
  }
}

/// Returns: whether all commands returned 0.
bool run_all(const arguments& given) {
  bool good = true;
  motet::file from = motet::file::open(given.file);
  motet::reader lines(from);
  // A pipe, for the fibers that write to it take turns, each until its text is written.
  motet::pipe out(motet::fd(), motet::fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)));
  motet::group jobs(given.at_once);
  int number = 0;
  while (const auto line = lines.line()) {
    if (line->empty()) continue;
    jobs.spin([&, command = std::string(*line), id = std::to_string(++number)] {
      const outcome ended = run(command, given.limit);
      good = good && ended.good;
      out.write_all("job " + id + ": " + ended.how + ": " + command + "\n" + ended.wrote);
    });
  }
  jobs.await_all();
  return good;
}

}  // namespace

int main(int count, char** words) {
  try {
    const arguments given = read_arguments({words, static_cast<std::size_t>(count)});
    return motet::run_until_signal([&] { return run_all(given) ? 0 : 1; });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "job_runner: %s\n", failure.what());
    return 2;
  }
}
