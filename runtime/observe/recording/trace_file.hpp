// SPDX-License-Identifier: MIT
// The process's trace file: texts, which any thread adds, and rings, one for each thread that
// records. See observe/recording/trace_format.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "observe/recording/trace_format.hpp"
#include "observe/recording/trace_texts.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class trace_file {
 public:
  /// Creates the process's trace file, with rings of that many records. The caller has locked
  /// beginning(). An existing trace is renamed to `path`.before.
  /// Throws: std::system_error; std::invalid_argument if `path` is another kind of file.
  static trace_file& begin(const std::string& path, std::size_t records);
  /// Returns: the process's, or null.
  static trace_file* current() noexcept { return current_.load(); }
  /// Round a fork, and while the file is begun. A child's copy of it is the parent's.
  static std::mutex& beginning() noexcept { return beginning_; }
  static void abandon() noexcept;

  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;

  /// Returns: a ring for this thread, its records behind it. Rings of threads that have ended are
  ///          used again, but for the last few.
  /// Throws: std::system_error, std::bad_alloc.
  trace::ring_head& take_ring();
  void give_back(trace::ring_head& ring) noexcept;

  /// Returns: how many records each ring has.
  std::size_t records() const noexcept { return records_; }
  std::uint64_t began_ticks() const noexcept { return began_ticks_; }
  trace_texts& texts() noexcept { return texts_; }
  const std::string& path() const noexcept { return path_; }

  /// Writes what is recorded at this moment to `path`, a new file or an earlier trace. Any thread.
  /// Throws: std::system_error; std::invalid_argument if `path` is another kind of file.
  void save(const std::string& path);

 private:
  trace_file(const std::string& path, std::size_t records);
  ~trace_file() = default;  // never: threads record until the process ends

  trace::ring_head& add_ring();
  void measure_ticks() noexcept;
  void write_head(int fd, std::uint64_t texts, std::size_t rings) const;

  static inline constinit std::mutex beginning_;
  static inline constinit std::atomic<trace_file*> current_{nullptr};
  /// In a forked child, which refers to that of its own parent: none is lost.
  static inline constinit std::atomic<trace_file*> of_the_parent_{nullptr};

  trace_file* previous_ = nullptr;
  const std::string path_;
  const std::size_t records_;
  std::uint64_t began_ticks_ = 0;
  int fd_;
  /// For readers of the file only: whoever truncates it has zeros take the head's place.
  trace::head* head_ = nullptr;
  trace_texts texts_;
  std::mutex lock_;  // guards:
  std::vector<trace::ring_head*> rings_;
  std::vector<trace::ring_head*> given_back_;  // the oldest first
};

}}}  // namespace motet::MOTET_ABI::detail
