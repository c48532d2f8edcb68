// SPDX-License-Identifier: MIT
// A file to which fibers append, and which they wait for to be on the disk: one of them writes for
// all that wait meanwhile.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

class append_log {
 public:
  /// `syncs`: what has been waited for survives a power cut, else only the end of this program.
  append_log(std::string_view path, bool syncs)
      : file_(motet::file::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640)), syncs_(syncs) {
    if (syncs) sync_name(path);
  }

  motet::file& file() { return file_; }
  /// Drops all after the first `size` bytes: a partly written command. The file is synced
  /// before anything is added; otherwise a power failure could leave a hole, or the rest of that
  /// command. For the same reason it is not truncated to the size that it has.
  void cut(std::uint64_t size) {
    if (static_cast<std::uint64_t>(file_.size()) > size)
      motet::io::ftruncate(file_.native_handle(), static_cast<off_t>(size));
    if (syncs_) file_.sync();
    file_.seek(static_cast<off_t>(size), SEEK_SET);
  }
  /// Returns: what to wait for.
  std::uint64_t add(std::string_view text) {
    buffer_ += text;
    return end_ += text.size();
  }
  void await(std::uint64_t end) {
    while (saved_end_ < end) {
      const std::lock_guard lock(write_mutex_);
      if (saved_end_ >= end) return;
      // What could not be written is missing from all that comes behind.
      if (has_failed_) throw std::runtime_error("the log cannot be written");
      const std::string part = std::exchange(buffer_, {});
      const std::uint64_t end_of_part = end_;
      has_failed_ = true;
      motet::shield([&] {
        file_.write_all(std::as_bytes(std::span(part)));
        if (syncs_) file_.sync_data();
      });
      has_failed_ = false;
      saved_end_ = end_of_part;
    }
  }

 private:
  /// The name of a new file is in its directory, which has to be on the disk as well.
  static void sync_name(std::string_view path) {
    const std::string directory = std::filesystem::absolute(path).parent_path();
    const motet::fd parent(
        motet::io::openat(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    motet::io::fsync(parent.get());
  }

  motet::file file_;
  const bool syncs_;
  std::string buffer_;
  std::uint64_t end_ = 0;
  std::uint64_t saved_end_ = 0;
  bool has_failed_ = false;
  motet::local::mutex write_mutex_;
};
