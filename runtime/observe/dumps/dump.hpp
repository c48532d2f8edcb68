// SPDX-License-Identifier: MIT
// What is told of the fibers of a thread, by the thread itself: a line about each, a line about
// each place where some were spun, or JSON.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <motet/base/clock.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/observe/debug.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class lock_holders;
class thread_state;

/// Called on the thread itself, while none of its other fibers runs. Dumps all of them as `options`
/// says, without a line for the thread.
void dump(thread_state& thread, std::ostream& output, const dump_options& options);

/// The formats: text, grouped by call site, JSON.
void dump_fibers(thread_state& thread, std::ostream& output, bool stacks);
void dump_tree(thread_state& thread, std::ostream& output, bool stacks);
void dump_groups(thread_state& thread, std::ostream& output, const dump_options& options);
void dump_json(thread_state& thread, std::ostream& output, const dump_options& options);

/// The line about one fiber, without its end.
void dump_line(std::ostream& output, const thread_state& thread, control_block& fiber,
               lock_holders& holders, clock::time_point present);

/// Whether there are more fibers than `limit`.
bool has_more_fibers(thread_state& thread, std::size_t limit) noexcept;

/// Returns: the state as a word, such as "runnable".
const char* doing(const control_block& fiber) noexcept;
/// Returns: its wait record if it waits, or null.
const wait_record* wait_of(const control_block& fiber) noexcept;
/// Returns: the length of the wait in milliseconds, at least 0.
long long waited(const wait_record& wait, clock::time_point present) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
