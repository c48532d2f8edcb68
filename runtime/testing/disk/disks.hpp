// SPDX-License-Identifier: MIT
// The disks of a simulated world: the file operations of its hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/runtime/backend.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testing/decisions.hpp"
#include "testing/disk/volume.hpp"
#include "testing/net/machine.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class network;

class disks {
 public:
  disks(decisions& choices, network& net) : choices_(choices), net_(net) {}
  disks(const disks&) = delete;
  disks& operator=(const disks&) = delete;
  ~disks();

  /// Whether the running fiber's host does this on its disk.
  bool has(const operation& op) const;
  /// As a backend's. An operation that waits ends in `results`.
  bool submit(operation& op, completions& results);
  /// Returns: whether it waits here.
  bool cancel(operation& op);
  void complete();
  void forget(int fd);

  /// Removes all files, also if the process ends otherwise.
  void remove() noexcept;
  /// A power failure: changes since the last fsync may be lost.
  void fail(const machine& failed);
  /// Returns: who opened a file that is still open; nothing if none of that life is.
  std::optional<call_site> left_open(const residence& home) const;

  disk_rules rules;

 private:
  struct open_file {
    residence home;
    call_site spawn_site;   // of the fiber that opened it
    volume::file contents;  // null: a directory
    bool appends = false;
    bool synchronous = false;             // O_SYNC or O_DSYNC
    std::vector<std::string> names = {};  // of a directory, still to be read, in reverse order
    bool reads_names = false;
  };
  struct waiting_sync {
    operation* op = nullptr;
    completions* results = nullptr;  // of the thread that has submitted it
    clock::time_point due{};
    std::size_t position = 0;  // of the file's or the volume's changes
  };

  volume& volume_of(const machine& owner);
  /// Returns: minus an errno value if there is no such path.
  std::int32_t find_path(volume& store, int directory, const char* path, std::string& result) const;
  std::string path_of(const volume& store, int directory) const;
  std::int32_t perform(operation& op, volume& store, const residence& home);
  std::int32_t perform_on_path(operation& op, volume& store);
  std::int32_t open(const operation& op, volume& store, const residence& home);
  std::int32_t read(operation& op);
  std::int32_t write(operation& op, volume& store, const open_file& target);
  std::int32_t allocate(const operation& op, volume& store, const open_file& target);
  std::int32_t truncate(const operation& op, const open_file& target);
  std::int32_t rename(const operation& op, volume& store, const std::string& path);
  std::int32_t list(const operation& op, open_file& source);
  std::size_t position_of(const operation& op);
  std::int32_t synchronise(const operation& op, std::size_t position);
  std::uint64_t room(volume& store) const;

  decisions& choices_;
  network& net_;
  std::string place_;  // of all volumes; empty: there are none
  std::map<const machine*, std::unique_ptr<volume>> volumes_;
  std::map<int, open_file> open_;
  std::vector<waiting_sync> syncs_;
};

}}}  // namespace motet::MOTET_ABI::testing
