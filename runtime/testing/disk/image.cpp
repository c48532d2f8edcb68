// SPDX-License-Identifier: MIT
// See testing/disk/image.hpp.
#include "testing/disk/image.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr std::uint64_t sector = 512;

enum class fate : std::uint32_t { kept, lost, torn };
constexpr std::uint32_t fates = 3;

/// Of a write that was torn, the first sectors are kept.
change first_sectors(change entry, decisions& choices) {
  const std::uint64_t first = entry.offset / sector;
  const std::uint64_t last = (entry.offset + entry.bytes.size() - 1) / sector;
  const std::uint64_t kept =
      choices.decide(choice::disk, static_cast<std::uint32_t>(last - first + 1));
  const std::uint64_t end = (first + kept) * sector;
  entry.bytes.resize(end > entry.offset ? end - entry.offset : 0);
  return entry;
}

}  // namespace

void image::add(change entry) {
  size_ = entry.sets_size ? entry.offset : std::max(size_, entry.offset + entry.bytes.size());
  pending_.push_back(std::move(entry));
}

void image::apply(const change& entry) {
  if (entry.sets_size) return safe_.resize(entry.offset);
  if (entry.bytes.empty()) return;
  safe_.resize(std::max<std::size_t>(safe_.size(), entry.offset + entry.bytes.size()));
  safe_.replace(entry.offset, entry.bytes.size(), entry.bytes);
}

std::vector<change> image::take_before(std::size_t position) {
  const std::size_t count = std::min(position - std::min(position, settled_), pending_.size());
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<change> taken(std::make_move_iterator(pending_.begin()),
                            std::make_move_iterator(end));
  pending_.erase(pending_.begin(), end);
  settled_ += count;
  return taken;
}

void image::synchronise(std::size_t position) {
  for (const change& each : take_before(position)) apply(each);
}

void image::lose(decisions& choices) {
  miss(position(), choices);
  size_ = safe_.size();
}

void image::miss(std::size_t position, decisions& choices) {
  for (change& each : take_before(position)) {
    const auto result = static_cast<fate>(choices.decide(choice::disk, fates));
    if (result == fate::kept) apply(each);
    if (result == fate::torn && !each.bytes.empty()) apply(first_sectors(std::move(each), choices));
  }
}

}}}  // namespace motet::MOTET_ABI::testing
