// SPDX-License-Identifier: MIT
// What several test files need.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace testing {

/// Returns: `count` when stresses run in full (MOTET_TEST_SCALE=full), a part of it otherwise.
inline std::size_t scaled(std::size_t count, std::size_t in_ci) {
  const char* scale = std::getenv("MOTET_TEST_SCALE");
  return scale != nullptr && std::string_view(scale) == "full" ? count : in_ci;
}

/// Returns: whether MOTET_DISABLE names `feature`.
inline bool disabled(std::string_view feature) {
  const char* list = std::getenv("MOTET_DISABLE");
  return list != nullptr && std::string_view(list).find(feature) != std::string_view::npos;
}

/// A ring without DEFER_TASKRUN goes on in whatever system call the thread makes.
inline bool kernel_acts_any_time() {
  const char* backend = std::getenv("MOTET_BACKEND");
  return backend != nullptr && std::string_view(backend) == "io_uring" && disabled("defer_taskrun");
}

/// Returns: whether the tests run on virtual time.
inline bool on_sim() {
  const char* backend = std::getenv("MOTET_BACKEND");
  return backend != nullptr && std::string_view(backend) == "sim";
}

#if !defined(__has_feature)
#define MOTET_TEST_HAS(feature) 0
#else
#define MOTET_TEST_HAS(feature) __has_feature(feature)
#endif
#if defined(__SANITIZE_THREAD__) || MOTET_TEST_HAS(thread_sanitizer)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || MOTET_TEST_HAS(address_sanitizer)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
#undef MOTET_TEST_HAS

/// Two connected descriptors, closed at the end without a word to motet.
class descriptor_pair {
 public:
  descriptor_pair(int first, int second) : ends_{first, second} {}
  descriptor_pair(const descriptor_pair&) = delete;
  descriptor_pair& operator=(const descriptor_pair&) = delete;
  ~descriptor_pair() {
    close_first();
    close_second();
  }

  int first() const { return ends_[0]; }
  int second() const { return ends_[1]; }
  void close_first() { drop(ends_[0]); }
  void close_second() { drop(ends_[1]); }
  /// Somebody else has closed it.
  void forget_first() { ends_[0] = -1; }

 private:
  static void drop(int& number) {
    if (number >= 0) ::close(std::exchange(number, -1));
  }
  int ends_[2];
};

inline descriptor_pair make_socket_pair(int flags = 0) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends) != 0) {
    throw std::runtime_error("socketpair");
  }
  return {ends[0], ends[1]};
}

/// first() reads what second() writes.
inline descriptor_pair make_pipe(int flags = 0) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) throw std::runtime_error("pipe2");
  return {ends[0], ends[1]};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns: the code of the std::system_error that `call` throws; none if it does not.
template <typename Call>
std::error_code code_thrown_by(Call call) {
  try {
    call();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

}  // namespace testing
