// SPDX-License-Identifier: MIT
// The first of three mirrors that answers: the others are cancelled, and have hung up before the
// race is over. A mirror that fails does not win. Run: race
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

/// Says when its connection is closed, however that comes about.
struct connection {
  const char* mirror;
  ~connection() { std::printf("  %s: hung up\n", mirror); }
};

std::string fetch(const char* mirror, motet::clock::duration takes) {
  const connection open{mirror};
  motet::sleep_for(takes);
  return std::string("the file, from ") + mirror;
}

std::string refuse(const char* mirror) {
  const connection open{mirror};
  throw std::runtime_error("no such file");
}

}  // namespace

int main() {
  const auto [place, file] = motet::await_any([] { return fetch("slow.example", 1h); },
                                              [] { return refuse("broken.example"); },
                                              [] { return fetch("quick.example", 20ms); });
  std::printf("mirror %zu was first: %s\n", place, file.c_str());

  try {
    motet::await_any([] { return refuse("broken.example"); },
                     [] { return refuse("gone.example"); });
  } catch (const motet::all_failed& failure) {
    std::printf("%s\n", failure.what());
  }
}
