// SPDX-License-Identifier: MIT
#include "server_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace fetch_test {

namespace {

/// Returns: the process, which writes to `output`.
pid_t start(std::string reply_after, int output) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  std::array<std::string, 4> words{"cached_fetch_checks", "--serve", "--reply-ms",
                                   std::move(reply_after)};
  std::array<char*, 5> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t process = -1;
  const int error =
      ::posix_spawn(&process, "/proc/self/exe", &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::system_error(error, std::system_category(), "posix_spawn");
  return process;
}

std::string read_line(int descriptor) {
  std::string line;
  for (char letter = 0; ::read(descriptor, &letter, 1) == 1 && letter != '\n';) line += letter;
  return line;
}

}  // namespace

server_process::server_process(const manners& conduct) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::system_category(), "pipe2");
  }
  process_ = start(std::to_string(conduct.reply_after.count()), ends[1]);
  ::close(ends[1]);
  const std::string line = read_line(ends[0]);
  ::close(ends[0]);
  constexpr std::string_view head = "listening on ";
  if (!line.starts_with(head)) throw std::runtime_error("the server does not start: " + line);
  where_ = motet::net::endpoint::parse(std::string_view(line).substr(head.size()));
}

server_process::~server_process() {
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace fetch_test
