// SPDX-License-Identifier: MIT
// Everything that the kernel must know to start a program, and the start itself.
#pragma once

#include <sys/types.h>

#include <motet/io/process.hpp>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// A null-terminated array of strings, as execve(2) takes it.
class string_array {
 public:
  explicit string_array(std::vector<std::string> texts);
  char* const* get() const noexcept { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

struct launch_plan {
  /// `descriptors`: to be duplicated to their numbers in the program; all are above those numbers,
  /// so that none is overwritten before it is duplicated.
  /// Throws: std::invalid_argument for a NUL in a text.
  launch_plan(const process_options& options, std::vector<passed_descriptor> passed_descriptors);

  std::string program;
  std::string directory;
  string_array arguments;
  std::vector<std::string> variables;  // unless inherited from this process
  bool own_variables;
  string_array environment;
  std::vector<passed_descriptor> descriptors;
  bool new_group;
  bool die_with_parent;
};

/// Looks for the program and starts it. Blocks the thread; with `die_with_parent` the thread never
/// ends afterwards.
/// Returns: 0, or an errno value.
int launch(const launch_plan& plan, pid_t& process_id);

}}}  // namespace motet::MOTET_ABI::detail
