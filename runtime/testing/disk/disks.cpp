// SPDX-License-Identifier: MIT
// See testing/disk/disks.hpp: which operations are simulated, where, and when they end.
#include "testing/disk/disks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "testing/net/network.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr bool begins_with_path(verb kind) noexcept {
  switch (kind) {
    case verb::openat:
    case verb::statx:
    case verb::renameat:
    case verb::unlinkat:
    case verb::mkdirat:
      return true;
    default:
      return false;
  }
}

}  // namespace

disks::~disks() {
  remove();
}

void disks::remove() noexcept {
  std::error_code ignored;
  if (!place_.empty()) std::filesystem::remove_all(place_, ignored);
}

bool disks::has(const operation& op) const {
  if (op.kind == verb::wait_fd) return false;
  if (op.kind == verb::splice && open_.contains(op.target)) return true;
  return open_.contains(op.fd) ||
         (begins_with_path(op.kind) && present_residence().owner != nullptr);
}

volume& disks::volume_of(const machine& owner) {
  std::unique_ptr<volume>& found = volumes_[&owner];
  if (found != nullptr) return *found;
  if (place_.empty()) {
    const char* const directory = std::getenv("TMPDIR");
    place_ = std::string(directory != nullptr ? directory : "/tmp") + "/motet-world-XXXXXX";
    if (::mkdtemp(place_.data()) == nullptr)
      throw std::system_error(errno, std::system_category(), "mkdtemp of " + place_);
    place_ = std::filesystem::canonical(place_).string();
  }
  found = std::make_unique<volume>(place_ + "/" + text_of(owner));
  return *found;
}

/// A directory may have been renamed since it was opened. Returns: "" for what is not on the
/// volume.
std::string disks::path_of(const volume& store, int directory) const {
  std::array<char, 4'096> real{};
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  const ssize_t size = ::readlink(link.c_str(), real.data(), real.size());
  const std::string target(real.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (target == store.root()) return "/";
  return target.starts_with(store.root() + "/") ? target.substr(store.root().size()) : "";
}

std::int32_t disks::find_path(volume& store, int directory, const char* path,
                              std::string& result) const {
  std::string base = "/";
  if (*path == '\0') return -ENOENT;
  if (directory != AT_FDCWD && path[0] != '/') {
    const auto found = open_.find(directory);
    if (found == open_.end()) return -EBADF;
    if (found->second.contents != nullptr) return -ENOTDIR;
    base = path_of(store, directory) + "/";
  }
  result = std::filesystem::path(base + path).lexically_normal().string();
  if (!result.starts_with('/')) result.insert(0, "/");
  while (result.size() > 1 && (result[1] == '/' || result.ends_with('/')))
    result.erase(result[1] == '/' ? 0 : result.size() - 1, 1);
  return 0;
}

bool disks::submit(operation& op, completions& results) {
  const auto found = open_.find(op.fd);
  const residence home = found != open_.end() ? found->second.home : present_residence();
  if (!home.alive()) {
    op.result = -EIO;
    return true;
  }
  if (op.kind == verb::fsync) {
    const clock::time_point due =
        clock::now() + choices_.decide_span(choice::latency, {}, rules.longest_sync);
    syncs_.push_back({&op, &results, due, position_of(op)});
    net_.schedule(due, [] {});
    return false;
  }
  op.result = perform(op, volume_of(*home.owner), home);
  return true;
}

bool disks::cancel(operation& op) {
  const auto found = std::find_if(syncs_.begin(), syncs_.end(),
                                  [&](const waiting_sync& each) { return each.op == &op; });
  if (found == syncs_.end()) return false;
  completions& results = *found->results;
  syncs_.erase(found);
  op.cancelling = true;
  op.result = -ECANCELED;
  results.push(op);
  return true;
}

void disks::complete() {
  const clock::time_point now = clock::now();
  for (std::size_t i = 0; i < syncs_.size();) {
    if (syncs_[i].due > now) {
      ++i;
      continue;
    }
    const waiting_sync over = syncs_[i];
    syncs_.erase(syncs_.begin() + static_cast<std::ptrdiff_t>(i));
    over.op->result = synchronise(*over.op, over.position);
    over.results->push(*over.op);
  }
}

void disks::forget(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  --found->second.home.owner->descriptors;
  open_.erase(found);
}

void disks::fail(const machine& failed) {
  const auto found = volumes_.find(&failed);
  if (found != volumes_.end()) found->second->fail(choices_);
}

std::optional<call_site> disks::left_open(const residence& home) const {
  for (const auto& [fd, each] : open_) {
    if (each.home == home) return each.spawn_site;
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::testing
