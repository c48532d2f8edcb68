// SPDX-License-Identifier: MIT
// Raft: several nodes agree on a sequence of commands, as long as a majority of them can talk to
// each other. Without snapshots and changes of membership.
// Source: Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm, 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace raft {

struct entry {
  std::uint64_t term = 0;
  std::string command;  // without line ends
};

struct options {
  std::size_t self = 0;                                // this node's place among the nodes
  std::vector<motet::net::endpoint> nodes;             // where each receives datagrams
  std::string directory = ".";                         // for the file of its state
  bool syncs = true;                                   // whether that survives a power failure
  std::function<std::uint32_t(std::uint32_t)> random;  // a number below its argument
};

enum class role { follower, candidate, leader };

/// One node. The functions are called by fibers of one thread.
class node {
 public:
  /// `apply` is called with each command that is agreed on, in order; the first one has index 1.
  node(options how, std::function<void(std::uint64_t index, const std::string&)> apply);

  /// Takes part until it is cancelled.
  void run();
  /// Returns: whether `command` is agreed on; false if this node is not the leader, or no longer:
  ///          then it is not known whether the command will be.
  bool submit(const std::string& command);

  role present_role() const noexcept { return role_; }
  std::uint64_t term() const noexcept { return term_; }

 private:
  struct message;
  using time_point = motet::clock::time_point;

  std::uint64_t last_index() const noexcept { return log_.size() - 1; }
  bool is_majority(std::size_t count) const noexcept { return count > how_.nodes.size() / 2; }

  void receive();
  void watch_time();
  void handle(const message& got);
  void become_follower(std::uint64_t term);
  void begin_election();
  void become_leader();
  void decide_on_vote(const message& got);
  void count_vote(const message& got);
  void take_entries(const message& got);
  void note_progress(const message& got);
  void commit_to(std::uint64_t index);
  void send_entries(std::size_t peer);
  void send_to(std::size_t peer, const message& one);
  void postpone_election();
  void read_state();
  void save_state();

  const options how_;
  const std::function<void(std::uint64_t, const std::string&)> apply_;
  motet::net::udp_socket socket_;
  motet::local::mutex mutex_;  // held while a message is handled, which may wait for the disk
  motet::local::condition_variable changed_;

  role role_ = role::follower;
  std::uint64_t term_ = 0;
  std::uint64_t voted_for_ = 0;  // a node's place and 1; 0: nobody in this term
  std::vector<entry> log_{entry{}};
  std::uint64_t committed_ = 0;
  std::set<std::uint64_t> votes_;       // of the nodes for this candidate
  std::vector<std::uint64_t> next_;     // of each peer, for a leader
  std::vector<std::uint64_t> matched_;  // entries that each peer is known to have
  time_point due_{};                    // of an election, or of a leader's next message
};

}  // namespace raft
