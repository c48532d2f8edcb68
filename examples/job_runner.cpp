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

constexpr std::size_t most_output = 1 << 20;       // bytes of one stream
constexpr std::size_t largest_number = 1'000'000;  // of jobs at once, and of seconds
constexpr auto grace = 1s;                         // from SIGTERM to SIGKILL

struct arguments {
  std::size_t at_once = 4;
  std::chrono::seconds limit = 60s;
  std::string file = "/dev/stdin";
};

std::size_t positive(std::string_view name, std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value == 0 || value > largest_number) {
    throw std::invalid_argument(std::string(name) + " needs a number from 1 to 1000000");
  }
  return value;
}

arguments read_arguments(std::span<char*> words) {
  arguments result;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : "";
    if (word == "--at-once") {
      result.at_once = positive(word, next);
      ++i;
    } else if (word == "--limit") {
      result.limit = std::chrono::seconds(positive(word, next));
      ++i;
    } else if (word.starts_with("-") || i + 1 != words.size()) {
      throw std::invalid_argument("usage: job_runner [--at-once N] [--limit SECONDS] [FILE]");
    } else {
      result.file = word;
    }
  }
  return result;
}

/// How a command ended, and what it wrote.
struct outcome {
  std::string end;
  std::string output = {};
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
    return {.end = status.signal == 0 ? "exit " + std::to_string(status.code)
                                      : "signal " + std::to_string(status.signal),
            .output = marked("  out: ", result.out) + marked("  err: ", result.err),
            .good = static_cast<bool>(status)};
  } catch (const motet::timed_out&) {
    return {.end = "ended, too slow"};
  } catch (const motet::limit_exceeded&) {
    return {.end = "ended, wrote too much"};
  } catch (const std::exception& failure) {
    return {.end = std::string("not run, ") + failure.what()};
  }
}

/// Returns: whether all commands returned 0.
bool run_all(const arguments& options) {
  bool good = true;
  motet::file input = motet::file::open(options.file);
  motet::reader lines(input);
  // A pipe, for the fibers that write to it take turns, each until its text is written.
  motet::pipe output(motet::fd(), motet::fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)));
  motet::group jobs(options.at_once);
  int number = 0;
  while (const auto line = lines.line()) {
    if (line->empty()) continue;
    jobs.spin([&, command = std::string(*line), id = std::to_string(++number)] {
      const outcome result = run(command, options.limit);
      good = good && result.good;
      output.write_all("job " + id + ": " + result.end + ": " + command + "\n" + result.output);
    });
  }
  jobs.await_all();
  return good;
}

}  // namespace

int main(int count, char** words) {
  try {
    const arguments options = read_arguments({words, static_cast<std::size_t>(count)});
    return motet::run_until_signal([&] { return run_all(options) ? 0 : 1; });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "job_runner: %s\n", failure.what());
    return 2;
  }
}
