// SPDX-License-Identifier: MIT
// Passes an open file from one process to another over a Unix socket: the receiver reads what the
// sender has opened, also where it could not open that file itself, and after the sender is gone.
// Run: unix_pass receive SOCKET, which writes the file to stdout; then: unix_pass send SOCKET FILE
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using motet::net::unix_listener;
using motet::net::unix_stream;

namespace {

motet::fd take_descriptor(unix_stream& sender) {
  try {
    if (std::optional<motet::fd> descriptor = sender.receive_fd()) return std::move(*descriptor);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_message) throw;
    throw std::runtime_error("the sender sent data instead of a descriptor");
  }
  throw std::runtime_error("the sender ended without sending a descriptor");
}

void write_to_stdout(motet::file file) {
  std::vector<std::byte> piece(65'536);
  while (const std::size_t size = file.read(piece)) {
    motet::io::write_all(STDOUT_FILENO, std::span(piece).first(size));
  }
}

/// Stdout is for the file, so the news is on stderr.
void receive(std::string_view path) {
  unix_listener listener(motet::net::endpoint::unix_path(path));
  std::fprintf(stderr, "waiting on %s\n", listener.local_endpoint().to_string().c_str());
  unix_stream sender = listener.accept();
  listener.close();  // one sender is all: the path is free for the next receiver
  write_to_stdout(motet::file(take_descriptor(sender)));
}

void send(std::string_view path, std::string_view file) {
  const motet::file source = motet::file::open(file);
  unix_stream receiver = unix_stream::connect(motet::net::endpoint::unix_path(path));
  receiver.send_fd(source.native_handle());
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string_view> words(arguments, arguments + count);
  const bool sends = count == 4 && words[1] == "send";
  if (!sends && !(count == 3 && words[1] == "receive")) {
    std::fprintf(stderr, "usage: unix_pass receive SOCKET | unix_pass send SOCKET FILE\n");
    return 2;
  }
  try {
    // A signal ends the receiver with its listener, which takes the path away.
    return motet::run_until_signal([&] { sends ? send(words[2], words[3]) : receive(words[2]); });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "unix_pass: %s\n", failure.what());
    return 1;
  }
}
