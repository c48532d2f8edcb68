// SPDX-License-Identifier: MIT
// OpenSSL's error queue while fibers of a thread wait in calls of the C library.
#include <openssl/err.h>
#include <poll.h>
#include <unistd.h>

#include <motet/motet.hpp>
#include <string>

#include "catch.hpp"

namespace {

using namespace motet;

/// The library, reason and text of the first error in the queue, which is removed.
std::string next_error() {
  const char* data = nullptr;
  const char* function = nullptr;
  const char* file = nullptr;
  int line = 0;
  int flags = 0;
  const unsigned long code = ERR_get_error_all(&file, &line, &function, &data, &flags);
  if (code == 0) return "none";
  const bool has_text = (flags & ERR_TXT_STRING) != 0;
  return std::to_string(ERR_GET_LIB(code)) + " " + std::to_string(ERR_GET_REASON(code)) + " " +
         function + " " + std::to_string(line) + " " + (has_text ? data : "");
}

void raise(int library, int reason, const char* text) {
  ERR_new();
  ERR_set_debug("file.c", reason + 1, "function");
  ERR_set_error(library, reason, text == nullptr ? nullptr : "%s", text);
}

}  // namespace

TEST_CASE("openssl_errors: a fiber that has waited finds its own errors, and no others") {
  run([] {
    raise(ERR_LIB_SSL, 7, "the first fiber's");
    raise(ERR_LIB_SYS, 2, nullptr);
    fiber<void> other = spin([] {
      CHECK(next_error() == "none");
      raise(ERR_LIB_X509, 9, "the other's");
      pollfd none{-1, 0, 0};
      ::poll(&none, 1, 5);
      CHECK(next_error() == "11 9 function 10 the other's");
      raise(ERR_LIB_X509, 10, "left behind");
    });
    ::usleep(20'000);
    CHECK(next_error() == "20 7 function 8 the first fiber's");
    CHECK(next_error() == "2 2 function 3 ");
    CHECK(next_error() == "none");
    other.await();
  });
}
