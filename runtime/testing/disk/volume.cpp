// SPDX-License-Identifier: MIT
// See testing/disk/volume.hpp.
#include "testing/disk/volume.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

bool is_within(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

/// Returns: where `path` is after a renaming.
std::string moved(const std::string& path, const std::string& old_path,
                  const std::string& new_path) {
  return path == old_path || is_within(path, old_path) ? new_path + path.substr(old_path.size())
                                                       : path;
}

/// A directory's contents move with it.
void move_names(volume::names& all, const std::string& old_path, const std::string& new_path) {
  volume::names others;
  for (auto each = all.begin(); each != all.end();) {
    if (each->first != old_path && !is_within(each->first, old_path)) {
      ++each;
      continue;
    }
    others[moved(each->first, old_path, new_path)] = each->second;
    each = all.erase(each);
  }
  for (auto& [path, file] : others) all[path] = std::move(file);
}

}  // namespace

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

volume::volume(std::string root) : root_(std::move(root)) {
  std::filesystem::create_directories(root_);
}

volume::file volume::file_at(const std::string& path) const {
  const auto found = present_.find(path);
  return found != present_.end() ? found->second : nullptr;
}

std::uint64_t volume::size() const noexcept {
  std::uint64_t total = 0;
  for (const auto& [path, contents] : present_) total += contents != nullptr ? contents->size() : 0;
  return total;
}

void volume::record(step entry) {
  entry.done(present_);
  pending_.push_back(std::move(entry));
}

volume::file volume::created(const std::string& path, unsigned mode) {
  auto contents = std::make_shared<image>(mode);
  record({directory_of(path), {}, [path, contents](names& all) { all[path] = contents; }});
  return contents;
}

void volume::made_directory(const std::string& path) {
  record({directory_of(path), {}, [path](names& all) { all[path] = nullptr; }});
}

void volume::removed(const std::string& path) {
  record({directory_of(path), {}, [path](names& all) { all.erase(path); }});
}

void volume::renamed(const std::string& old_path, const std::string& new_path, bool exchanged) {
  // An fsync names a directory as it is called then.
  for (step& each : pending_) {
    for (std::string* const name : {&each.directory, &each.other}) {
      const std::string old_name = *name;
      *name = moved(old_name, old_path, new_path);
      if (exchanged && *name == old_name) *name = moved(old_name, new_path, old_path);
    }
  }
  record(
      {directory_of(old_path), directory_of(new_path), [old_path, new_path, exchanged](names& all) {
         const std::string aside = old_path + "\n";
         if (exchanged) move_names(all, new_path, aside);
         move_names(all, old_path, new_path);
         if (exchanged) move_names(all, aside, old_path);
       }});
}

void volume::synchronise(const std::string& directory, std::size_t position) {
  const std::size_t count = std::min(position - std::min(position, settled_), pending_.size());
  std::size_t last = count;
  while (last > 0 && pending_[last - 1].directory != directory &&
         pending_[last - 1].other != directory)
    --last;
  settle(last);
}

void volume::settle(std::size_t count) {
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto each = pending_.begin(); each != end; ++each) each->done(safe_);
  pending_.erase(pending_.begin(), end);
  settled_ += count;
}

/// The journal is cut somewhere; then each file has its own losses. A file that has lost its name
/// is gone.
void volume::fail(decisions& choices) {
  const std::size_t kept =
      pending_.size() -
      choices.decide(choice::disk, static_cast<std::uint32_t>(pending_.size() + 1));
  settle(kept);
  settled_ += pending_.size();
  pending_.clear();
  for (const auto& [path, contents] : safe_) {
    if (contents != nullptr) contents->lose(choices);
  }
  present_ = safe_;
  write_down();
}

void volume::write_down() const {
  std::filesystem::remove_all(root_);
  std::filesystem::create_directories(root_);
  for (const auto& [path, contents] : present_) {
    if (contents == nullptr) {
      std::filesystem::create_directories(root_ + path);
      continue;
    }
    std::ofstream target(root_ + path, std::ios::binary);
    const std::string& bytes = contents->safe();
    target.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    target.close();
    if (!target)
      throw std::runtime_error("a simulated disk: " + root_ + path + " cannot be written");
    std::filesystem::permissions(root_ + path, std::filesystem::perms{contents->mode()});
  }
}

}}}  // namespace motet::MOTET_ABI::testing
