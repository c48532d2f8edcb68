// SPDX-License-Identifier: MIT
// Keys and values, and the commands that read and change them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using words = std::vector<std::string_view>;

struct command_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Adds the answer to `command` to `to`.
/// Returns: what to add to a log so that it is the same after a crash; empty for a command that
///          changes nothing.
/// Throws: command_error.
std::string carry_out(const words& command, std::string& output);

/// No key has a value any more.
void forget_all();

/// The same for a command from the log.
void carry_out_again(const words& logged);
