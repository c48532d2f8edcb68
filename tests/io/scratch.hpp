// SPDX-License-Identifier: MIT
// Files and directories for one test.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <motet/io/fd.hpp>
#include <string>
#include <string_view>

#include "catch.hpp"

namespace testing {

using motet::fd;

/// A directory that is gone, with all in it, when the test is over.
class scratch_directory {
 public:
  scratch_directory() {
    REQUIRE(::mkdtemp(name_.data()) != nullptr);
    fd_ = fd(::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(fd_);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory() { std::filesystem::remove_all(name_); }

  int get() const { return fd_.get(); }
  const std::string& name() const { return name_; }
  bool has(const char* file) const { return ::faccessat(get(), file, F_OK, 0) == 0; }

 private:
  std::string name_ = std::filesystem::temp_directory_path() / "motet-names-XXXXXX";
  fd fd_;
};

/// A name that no file has, and that none has any more when the test is over.
class scratch_name {
 public:
  scratch_name() {
    std::string name = std::filesystem::temp_directory_path() / "motet-file-XXXXXX";
    const fd unused(::mkostemp(name.data(), O_CLOEXEC));
    REQUIRE(unused);
    ::unlink(name.c_str());
    text_ = name;
  }
  scratch_name(const scratch_name&) = delete;
  scratch_name& operator=(const scratch_name&) = delete;
  ~scratch_name() { ::unlink(text_.c_str()); }
  operator std::string_view() const { return text_; }

 private:
  std::string text_;
};

}  // namespace testing
