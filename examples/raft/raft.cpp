// SPDX-License-Identifier: MIT
// See raft.hpp.
#include "raft.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

namespace raft {

namespace {

using namespace std::chrono_literals;

constexpr auto heartbeat = 50ms;
constexpr auto shortest_timeout = 150ms;
constexpr std::size_t most_entries = 16;  // in a message

}  // namespace

/// A datagram: a line of numbers, and one for each entry.
struct node::message {
  char kind = 0;  // V: vote for me; v: a vote; A: entries; a: they are there
  std::uint64_t term = 0;
  std::uint64_t sender = 0;
  std::uint64_t index = 0;       // the last, or the one before the entries
  std::uint64_t index_term = 0;  // that entry's term
  std::uint64_t value = 0;       // committed entries; or whether it is granted
  std::vector<entry> entries;

  std::string text() const {
    std::ostringstream line;
    line << kind << ' ' << term << ' ' << sender << ' ' << index << ' ' << index_term << ' '
         << value << '\n';
    for (const entry& each : entries) line << each.term << ' ' << each.command << '\n';
    return line.str();
  }

  static message read(std::istream&& input) {
    message got;
    input >> got.kind >> got.term >> got.sender >> got.index >> got.index_term >> got.value;
    for (entry next; input >> next.term && input.get() && std::getline(input, next.command);)
      got.entries.push_back(next);
    return got;
  }
};

node::node(options how, std::function<void(std::uint64_t, const std::string&)> apply)
    : how_(std::move(how)),
      apply_(std::move(apply)),
      socket_(how_.nodes.at(how_.self)),
      next_(how_.nodes.size(), 1),
      matched_(how_.nodes.size(), 0) {
  read_state();
}

void node::run() {
  motet::group tasks;
  postpone_election();
  tasks.spin([this] { receive(); });
  tasks.spin([this] { watch_time(); });
  tasks.await_all();
}

void node::receive() {
  std::vector<std::byte> buffer(65'536);
  for (;;) {
    const std::size_t size = socket_.receive_from(buffer).size;
    const std::string text(reinterpret_cast<const char*>(buffer.data()), size);
    const std::lock_guard hold(mutex_);
    handle(message::read(std::istringstream(text)));
  }
}

void node::watch_time() {
  for (;;) {
    motet::sleep_until(due_);
    const std::lock_guard hold(mutex_);
    if (motet::clock::now() < due_) continue;
    if (role_ != role::leader) {
      begin_election();
      continue;
    }
    due_ = motet::clock::now() + heartbeat;
    for (std::size_t peer = 0; peer < how_.nodes.size(); ++peer) send_entries(peer);
  }
}

void node::postpone_election() {
  due_ = motet::clock::now() + shortest_timeout + std::chrono::milliseconds(how_.random(150));
}

void node::handle(const message& got) {
  if (got.sender >= how_.nodes.size()) return;  // nobody of us
  if (got.term > term_) become_follower(got.term);
  switch (got.kind) {
    case 'V':
      return decide_on_vote(got);
    case 'v':
      return count_vote(got);
    case 'A':
      return take_entries(got);
    case 'a':
      return note_progress(got);
    default:
      return;
  }
}

void node::become_follower(std::uint64_t term) {
  role_ = role::follower;
  term_ = term;
  voted_for_ = 0;
  postpone_election();
  save_state();
  changed_.notify_all();
}

void node::begin_election() {
  role_ = role::candidate;
  ++term_;
  voted_for_ = how_.self + 1;
  votes_ = {how_.self};
  postpone_election();
  save_state();
  if (is_majority(votes_.size())) return become_leader();
  for (std::size_t peer = 0; peer < how_.nodes.size(); ++peer)
    send_to(peer, {'V', term_, how_.self, last_index(), log_.back().term, 0, {}});
}

void node::decide_on_vote(const message& got) {
  const bool is_as_long =
      std::pair(got.index_term, got.index) >= std::pair(log_.back().term, last_index());
  const bool is_free = voted_for_ == 0 || voted_for_ == got.sender + 1;
  const bool is_granted = got.term == term_ && is_free && is_as_long;
  if (is_granted && voted_for_ == 0) {
    voted_for_ = got.sender + 1;
    save_state();
  }
  if (is_granted) postpone_election();
  send_to(got.sender, {'v', term_, how_.self, 0, 0, is_granted ? 1u : 0u, {}});
}

/// A vote may come twice.
void node::count_vote(const message& got) {
  if (role_ != role::candidate || got.term != term_ || got.value == 0) return;
  votes_.insert(got.sender);
  if (is_majority(votes_.size())) become_leader();
}

void node::become_leader() {
  role_ = role::leader;
  due_ = motet::clock::now();
  std::fill(next_.begin(), next_.end(), last_index() + 1);
  std::fill(matched_.begin(), matched_.end(), 0);
}

void node::send_entries(std::size_t peer) {
  const std::uint64_t before = next_[peer] - 1;
  message one{'A', term_, how_.self, before, log_[before].term, committed_, {}};
  for (std::uint64_t i = next_[peer]; i <= last_index() && one.entries.size() < most_entries; ++i)
    one.entries.push_back(log_[i]);
  send_to(peer, one);
}

void node::take_entries(const message& got) {
  message answer{'a', term_, how_.self, 0, 0, 0, {}};
  if (got.term == term_) {
    role_ = role::follower;
    postpone_election();
    answer.value = got.index <= last_index() && log_[got.index].term == got.index_term ? 1 : 0;
  }
  if (answer.value == 1) {
    std::uint64_t index = got.index;
    bool is_new = false;
    for (const entry& each : got.entries) {
      ++index;
      if (index <= last_index() && log_[index].term == each.term) continue;
      log_.resize(index);  // what follows is not agreed on
      log_.push_back(each);
      is_new = true;
    }
    if (is_new) save_state();
    answer.index = index;
    commit_to(std::min(got.value, index));
  }
  send_to(got.sender, answer);
}

/// A leader counts only entries of its own term. Source: Ongaro and Ousterhout, 5.4.2.
void node::note_progress(const message& got) {
  if (role_ != role::leader || got.term != term_) return;
  if (got.value == 0) {
    next_[got.sender] = std::max<std::uint64_t>(next_[got.sender] - 1, 1);
    return send_entries(got.sender);
  }
  matched_[got.sender] = std::max(matched_[got.sender], got.index);
  next_[got.sender] = matched_[got.sender] + 1;
  matched_[how_.self] = last_index();
  std::vector<std::uint64_t> sorted = matched_;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const std::uint64_t of_majority = sorted[how_.nodes.size() / 2];
  if (log_[of_majority].term == term_) commit_to(of_majority);
}

void node::commit_to(std::uint64_t index) {
  while (committed_ < index) {
    ++committed_;
    apply_(committed_, log_[committed_].command);
  }
  changed_.notify_all();
}

bool node::submit(const std::string& command) {
  std::unique_lock hold(mutex_);
  if (role_ != role::leader) return false;
  const std::uint64_t term = term_;
  log_.push_back({term, command});
  const std::uint64_t index = last_index();
  save_state();
  for (std::size_t peer = 0; peer < how_.nodes.size(); ++peer) send_entries(peer);
  while (term_ == term && role_ == role::leader && committed_ < index) changed_.wait(hold);
  return committed_ >= index && log_[index].term == term;
}

/// A datagram may be lost, so an error is no news.
void node::send_to(std::size_t peer, const message& one) {
  if (peer == how_.self) return;
  std::error_code ignored;
  const std::string text = one.text();
  socket_.send_to(std::as_bytes(std::span(text)), how_.nodes[peer], ignored);
}

void node::read_state() {
  std::error_code error;
  motet::file source = motet::file::open(how_.directory + "/state", O_RDONLY | O_CLOEXEC, 0, error);
  if (error) return;
  std::string text(static_cast<std::size_t>(source.size()), '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)));
  const message saved = message::read(std::istringstream(text));
  term_ = saved.term;
  voted_for_ = saved.value;
  log_.insert(log_.end(), saved.entries.begin(), saved.entries.end());
}

/// The old file stays until the new one is complete.
void node::save_state() {
  const std::string text =
      message{'S', term_, 0, 0, 0, voted_for_, {log_.begin() + 1, log_.end()}}.text();
  const motet::fd directory(
      motet::io::openat(AT_FDCWD, how_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  motet::file target(motet::fd(motet::io::openat(directory.get(), "state.new",
                                                 O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640)));
  target.write_all(text);
  if (how_.syncs) target.sync();
  motet::io::renameat(directory.get(), "state.new", directory.get(), "state");
  if (how_.syncs) motet::io::fsync(directory.get());
}

}  // namespace raft
