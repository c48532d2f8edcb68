// SPDX-License-Identifier: MIT
// Deterministic simulation, for tests: a program of fibers runs in virtual time, and a seed makes
// the choices that the contract leaves open. The same seed gives the same run, so every failure can
// be repeated. A program that includes this header must be linked with motet-testing. See
// docs/testing.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// Which runnable fiber runs next.
enum class order {
  open,  // the first in the queue, as usual; fibers that one instant wakes enter it in any order
  any,   // any of them
  pct    // the one with the highest priority: each gets a random one, and at `plan::depth` - 1
         // random steps the running fiber drops to the lowest; so do threads
};

/// When virtual time passes.
enum class time_mode {
  jumps,  // when every fiber waits, to the next timer
  stands  // in world::advance() only
};

/// What to run.
struct plan {
  std::uint64_t seed = 0;
  order how = order::open;
  unsigned depth = 3;  // of order::pct, at least 1
  time_mode time = time_mode::jumps;
  /// The simulation fails when so much virtual time has passed, or so many switches were made.
  clock::duration horizon = std::chrono::hours(1);
  std::size_t steps = 10'000'000;
  /// A log of decisions to follow, as outcome::log has it; then the seed decides. Empty: none.
  std::string log = {};
};

/// How a simulation went.
struct outcome {
  bool passed = false;
  std::string failure;  // the first one
  std::uint64_t seed = 0;
  std::string log;  // the decisions, one per line
  std::size_t decisions = 0;
  std::size_t steps = 0;   // switches
  clock::duration span{};  // virtual time
};

/// The network between the hosts of a world. Each packet takes its time; within a machine, the
/// same short one.
struct network_rules {
  clock::duration shortest_latency = std::chrono::microseconds(100);
  clock::duration longest_latency = std::chrono::milliseconds(5);
  std::uint64_t bytes_per_second = 0;  // in each direction of a connection; 0: no limit
  std::size_t window = 65'536;         // bytes on a connection that the receiver has not read
  std::size_t descriptors = 1'024;     // open sockets and files per machine; then EMFILE
  bool short_transfers = true;         // reads and writes may move fewer bytes than possible
  /// Probabilities in [0, 1], in steps of a thousandth.
  double losses = 0;      // of a datagram
  double duplicates = 0;  // of a datagram
  double resets = 0;      // of a connection, at each write
};

/// The disks of the hosts. Each host has its own, on which every path begins in the root, also a
/// relative one.
struct disk_rules {
  std::uint64_t capacity = 0;  // bytes in the files of a host; then ENOSPC. 0: no limit
  clock::duration longest_sync = std::chrono::milliseconds(10);  // of fsync and fdatasync
  /// Probability in [0, 1], in steps of a thousandth: a read, a write or an fsync fails with EIO.
  /// What a failed fsync should have made safe may be lost, even if the next one succeeds.
  double errors = 0;
};

/// Which packets a partition drops.
enum class direction {
  both,
  one_way  // from the first host to the second
};

class host_state;
class simulation;

/// A simulated machine that runs one program. Used in the simulation that made it.
class [[nodiscard]] host {
 public:
  host(host&&) noexcept;
  host& operator=(host&&) = delete;
  /// Crashes the host, without a decision. Its program may use objects that outlive this one.
  /// Switchpoint; nothing interrupts it.
  ~host();

  /// Not a switchpoint.
  const std::string& name() const noexcept;
  /// Returns: its IPv4 address, such as "10.0.0.2". Other hosts can also connect to its name.
  /// Not a switchpoint.
  std::string address() const;
  /// Returns: whether its program has neither ended nor crashed.
  /// Not a switchpoint.
  bool running() const noexcept;

 private:
  friend class world;
  explicit host(std::unique_ptr<host_state> state) noexcept;

  std::unique_ptr<host_state> state_;
};

/// The simulated world. Only fibers that run in it may use it, on any of its threads; a host, only
/// on the thread that has made it.
class world {
 public:
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Waits until all other fibers wait, and only time can wake one.
  /// Switchpoint.
  /// Throws: a pending interruption.
  void until_idle();
  /// Lets `span` pass. Timers that are due by then fire, each at its time; then, all fibers wait.
  /// Switchpoint.
  /// Throws: std::invalid_argument if `span` is negative; a pending interruption.
  void advance(clock::duration span);
  /// Until the function of run() returns, the simulation fails as soon as `condition`, an
  /// invariant, returns false or throws. It is called at each switch, and must call no
  /// switchpoint. Declare the variables it uses before any group, thread or pool, whose destructors
  /// wait.
  /// Not a switchpoint.
  void always(std::function<bool()> condition, call_site site = call_site::here());
  /// Ends all faults: partitions are healed, the network loses, duplicates and resets nothing,
  /// disks have no errors, and buggify() returns false. Then waits until `condition` returns true;
  /// it is called whenever all fibers wait. The simulation fails if that takes longer than `limit`
  /// of virtual time.
  /// Switchpoint.
  /// Throws: what `condition` throws; a pending interruption.
  void eventually(const std::function<bool()>& condition, clock::duration limit,
                  call_site site = call_site::here());
  /// Returns: a number in [0, count), which the seed decides.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `count` is 0.
  std::uint32_t random(std::uint32_t count);

  /// Starts a host whose program is `main`; it ends with the fiber that calls this. The function
  /// under test runs on a machine of its own, "test". The simulation fails if `main` throws, or
  /// leaves a socket or a file open when it ends.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if the name is empty or not new; std::bad_alloc.
  host add(std::string name, std::function<void()> main, call_site site = call_site::here());
  /// The host's fibers are cancelled, and nothing they do from now on reaches the network or the
  /// disk. Either its process dies, and its peers see a reset; or its power fails, they see
  /// nothing, and each write since the last fsync is kept, lost, or torn between sectors of 512
  /// bytes. Names of files are safe after an fsync of their directory. Waits for the fibers' end.
  /// Switchpoint.
  /// Throws: std::logic_error on a fiber of that host; a pending interruption.
  void crash(host& crashed);
  /// Calls `main` again.
  /// Switchpoint.
  /// Throws: std::logic_error if the host is running; a pending interruption.
  void restart(host& restarted);
  /// Drops the packets between two hosts. What streams send arrives when the partition is healed.
  /// Not a switchpoint.
  void partition(const host& source, const host& target, direction which = direction::both);
  /// Ends all partitions.
  /// Not a switchpoint.
  void heal();
  /// Returns: the rules of the network, to be changed at any time.
  /// Not a switchpoint.
  network_rules& net() noexcept;
  /// Returns: the rules of all disks, to be changed at any time.
  /// Not a switchpoint.
  disk_rules& disk() noexcept;

 private:
  friend class simulation;
  explicit world(simulation& inside) noexcept : inside_(inside) {}

  simulation& inside_;
};

/// Runs `function` in a world of its own, on the calling thread, where motet::run() must be
/// possible. Threads and pools that it makes belong to the world: one of them runs at a time, from
/// one switch or poll to the next. `MOTET_BACKEND` has no effect. If fibers go on although the
/// simulation has failed and they are cancelled, or if memory is exhausted, the process ends.
/// Returns: how it went. It failed if `function` threw, if all fibers wait for one another, at the
///          horizon, after all steps, or if the run differs from the plan's log. A thread that
///          `function` leaves running ends the process.
/// Not a switchpoint.
/// Throws: std::logic_error if the thread is in run(), or if the library motet is not of the
///         version of motet-testing; std::invalid_argument if plan.log is not a log.
outcome run(const plan& how, const std::function<void(world&)>& function);

/// Runs `function` with the seeds 0, 1, 2 and so on, `seeds` in all, until one fails; one in twenty
/// runs twice, and must run alike. A failure is written to stderr, with the variables that repeat
/// it: with MOTET_SEED in the environment only that seed runs, and with MOTET_LOG, the path of a
/// file, its log is followed. Then up to 3,000 further runs, for at most 10 s, make the log
/// shorter. MOTET_SEEDS, such as 5000 or 1000-1999, replaces `seeds`; with MOTET_SUMMARY, of any
/// value, a summary of what was decided is written at the end. `how` is the plan of each run.
/// Returns: the number of seeds that failed, 0 or 1.
/// Not a switchpoint.
/// Throws: as run(); std::invalid_argument if MOTET_SEED or MOTET_SEEDS is not a number, or
///         MOTET_LOG cannot be read.
int explore(std::size_t seeds, const std::function<void(world&)>& function, plan how = {});

/// One run whose decisions are read from `bytes`, for a fuzzer: call it in LLVMFuzzerTestOneInput.
/// A failure is written to stderr, and ends the process.
/// Not a switchpoint.
/// Throws: as run().
void fuzz(std::span<const std::byte> bytes, const std::function<void(world&)>& function,
          const plan& how = {});

/// What the clients of a key-value store have asked for and been told, in the order of these calls.
/// Keys and values are texts. Used on one thread.
class history {
 public:
  history();
  history(history&&) noexcept;
  history& operator=(history&&) noexcept;
  ~history();

  /// A client asks: for the value of a key, or to set it; no value removes the key.
  /// Returns: the number of this operation.
  /// Not a switchpoint.
  std::size_t begin_read(std::string key);
  std::size_t begin_write(std::string key, std::optional<std::string> value);
  /// The client is told. Of an operation of which it is told nothing, the effect may come at any
  /// time, or never.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if no operation of that kind with this number is under way.
  void end_read(std::size_t number, std::optional<std::string> value);
  void end_write(std::size_t number);
  /// Whether the operations can be put into an order that agrees with all answers, and in which
  /// one that ended before another began comes first. At first no key has a value.
  /// Returns: the operations of a key for which there is no such order, one per line; or nothing.
  /// Not a switchpoint.
  /// Source: Herlihy and Wing, Linearizability, 1990; Lowe, Testing for linearizability, 2017.
  std::optional<std::string> violation() const;

 private:
  struct request;
  std::vector<request> requests_;
  std::size_t now_ = 0;
};

/// Whether an unlikely but possible event is to happen here, in code under test: in a quarter of
/// all simulations for each `site`, and there in a quarter of the calls; elsewhere never.
/// Not a switchpoint.
/// Throws: std::bad_alloc.
bool buggify(call_site site = call_site::here());

}}}  // namespace motet::MOTET_ABI::testing
