// SPDX-License-Identifier: MIT
// Says which backend it runs on, after a read from a pipe that had to wait, and a sleep:
//   which_backend [NAME]
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <span>
#include <string>

namespace {

void use_backend(const std::string& name) {
  motet::options config;
  config.backend = name;
  motet::run(config, [] {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    const motet::fd read_end(ends[0]);
    const motet::fd write_end(ends[1]);
    auto reader = motet::spin([&] {
      std::byte byte[1];
      return motet::io::read(read_end.get(), byte);
    });
    motet::snooze();
    motet::io::write(write_end.get(), std::as_bytes(std::span("x", 1)));
    if (reader.await() != 1) throw std::runtime_error("the pipe's byte was not read");
    motet::sleep_for(std::chrono::milliseconds(10));
    std::printf("%s\n", std::string(motet::backend_name()).c_str());
  });
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string name = count > 1 ? arguments[1] : "";
    use_backend(name);
    use_backend(name);  // a process is told once, however many threads and runtimes it has
    return 0;
  } catch (const std::exception& refused) {
    std::fprintf(stderr, "which_backend: %s\n", refused.what());
    return 1;
  }
}
