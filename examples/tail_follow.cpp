// SPDX-License-Identifier: MIT
// Writes a file, and then what is added to it, until a signal ends it, as tail(1) does with
// -n +1 -F: a file that is not there yet is waited for, a new file of the same name is written from
// its beginning, and so is a file that has become shorter. The directory is watched, not the file:
// so all this is seen; what is still added to a file that has lost its name is written when the
// name has a new one. Run: tail_follow FILE
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <motet/motet.hpp>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace {

/// The file that has the name, or had it until now.
class followed_file {
 public:
  explicit followed_file(std::string path) : path_(std::move(path)) {}

  /// Writes what is new.
  void write_news() {
    if (file_) write_rest();
    if (has_name()) return;
    std::error_code missing;
    motet::file file = motet::file::open(path_, O_RDONLY, 0, missing);
    if (missing) return;
    if (file_) write_rest();  // what was added before the name had a new file
    file_ = std::move(file);
    position_ = 0;
    write_rest();
  }

 private:
  /// Returns: whether the open file is the one that has the name now.
  bool has_name() const {
    struct stat open_status{};
    struct statx name_status{};
    std::error_code missing;
    motet::io::statx(AT_FDCWD, path_.c_str(), 0, STATX_INO, name_status, missing);
    return !missing && file_ && ::fstat(file_.native_handle(), &open_status) == 0 &&
           open_status.st_ino == name_status.stx_ino;
  }

  void write_rest() {
    if (file_.size() < position_) position_ = 0;
    while (const std::size_t size = file_.read_at(piece_, position_)) {
      motet::io::write_all(STDOUT_FILENO, std::span(piece_).first(size));
      position_ += static_cast<off_t>(size);
    }
  }

  std::string path_;
  motet::file file_;
  off_t position_ = 0;
  std::vector<std::byte> piece_{65'536};
};

void follow(const std::filesystem::path& path) {
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  const std::string name = (directory / path.filename()).string();
  motet::file_watch changes(directory.string(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  followed_file file(path.string());
  file.write_news();  // what is added from now on is an event
  for (const motet::file_event& change : changes) {
    const bool some_are_lost = (change.what & IN_Q_OVERFLOW) != 0;
    if (some_are_lost || change.path == name) file.write_news();
  }
  std::fprintf(stderr, "tail_follow: %s is gone\n", directory.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: tail_follow FILE\n");
    return 2;
  }
  try {
    return motet::run_until_signal([&] { follow(arguments[1]); });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "tail_follow: %s\n", failure.what());
    return 1;
  }
}
