// SPDX-License-Identifier: MIT
// See posix/c_state.hpp.
#include "posix/c_state.hpp"

#include <cerrno>
#include <new>

extern "C" {

[[gnu::weak]] unsigned long ERR_peek_error();
[[gnu::weak]] unsigned long ERR_get_error_all(const char** file, int* line, const char** function,
                                              const char** data, int* flags);
[[gnu::weak]] void ERR_clear_error();
[[gnu::weak]] void ERR_new();
[[gnu::weak]] void ERR_set_debug(const char* file, int line, const char* function);
[[gnu::weak]] void ERR_set_error(int library, int reason, const char* format, ...);

}  // extern "C"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

bool has_errors() noexcept {
  return ERR_get_error_all != nullptr && ERR_peek_error() != 0;
}

/// Source: openssl/err.h: an error of the system has the highest bit, and is of library 2.
constexpr unsigned long system_bit = 1UL << 31;

int library_of(unsigned long code) noexcept {
  return (code & system_bit) != 0 ? 2 : static_cast<int>((code >> 23) & 0xff);
}

int reason_of(unsigned long code) noexcept {
  return static_cast<int>(code & ((code & system_bit) != 0 ? system_bit - 1 : 0x7fffff));
}

const char* or_null(const std::string& text) noexcept {
  return text.empty() ? nullptr : text.c_str();
}

std::string or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

openssl_errors::openssl_errors() noexcept {
  if (!has_errors()) return;
  const int saved_errno = errno;
  try {
    const char* file = nullptr;
    const char* function = nullptr;
    const char* data = nullptr;
    int line = 0;
    int flags = 0;
    while (const unsigned long code = ERR_get_error_all(&file, &line, &function, &data, &flags))
      errors_.push_back({code, or_empty(file), line, or_empty(function), or_empty(data)});
  } catch (const std::bad_alloc&) {
    ERR_clear_error();
  }
  errno = saved_errno;
}

/// What other fibers have left is cleared: they have ended.
openssl_errors::~openssl_errors() {
  const int saved_errno = errno;
  if (has_errors()) ERR_clear_error();
  for (const error& each : errors_) {
    ERR_new();
    ERR_set_debug(or_null(each.file), each.line, or_null(each.function));
    if (each.data.empty()) {
      ERR_set_error(library_of(each.code), reason_of(each.code), nullptr);
    } else {
      ERR_set_error(library_of(each.code), reason_of(each.code), "%s", each.data.c_str());
    }
  }
  errno = saved_errno;
}

}}}  // namespace motet::MOTET_ABI::detail
