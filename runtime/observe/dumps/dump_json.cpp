// SPDX-License-Identifier: MIT
// A thread's fibers as JSON. See observe/dumps/dump.hpp.
#include <unistd.h>

#include <array>
#include <ostream>
#include <utility>

#include "core/thread_state.hpp"
#include "observe/dumps/dump.hpp"
#include "observe/dumps/fiber_frames.hpp"
#include "observe/dumps/json_text.hpp"
#include "observe/dumps/lock_holders.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void write_fiber(std::ostream& output, const control_block& fiber, lock_holders& holders,
                 clock::time_point present) {
  output << "{\"id\": " << fiber.id;
  if (fiber.named) output << ", \"name\": " << json_string{name_of(fiber)};
  if (fiber.parent != nullptr) output << ", \"parent\": " << fiber.parent->id;
  if (!fiber.is_main) output << ", \"site\": " << json_site{fiber.site.file, fiber.site.line};
  output << ", \"state\": " << json_string{doing(fiber)};
  const wait_record* wait = wait_of(fiber);
  if (wait == nullptr) return;
  output << ", \"wait\": " << json_string{wait->description};
  if (wait->of_object()) {
    output << ", \"object\": \"0x" << std::hex << wait->subject << std::dec << '"';
  } else if (wait->subject >= 0) {
    output << ", \"subject\": " << wait->subject;
  }
  const auto holder = holders.of(*wait);
  if (holder && holder->type == lock_holder::kind::fiber) output << ", \"held_by\": " << holder->id;
  if (!wait->for_lock() && wait->target != nullptr) {
    output << ", \"for_fiber\": " << (*wait->target)->id;
  }
  if (wait->cancelling) output << ", \"cancelling\": true";
  output << ", \"waited_ms\": " << waited(*wait, present);
}

void write_fibers(thread_state& thread, std::ostream& output, bool stacks) {
  const clock::time_point present = thread.kernel().now();
  auto& fibers = thread.fibers();
  frame_names names;
  lock_holders holders(thread);
  std::array<void*, most_frames> buffer;
  const char* separator = "";
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    output << std::exchange(separator, ",\n");
    write_fiber(output, *fiber, holders, present);
    if (stacks) output << ", \"stack\": " << json_frames{frames_of(thread, *fiber, buffer), names};
    output << '}';
  }
}

}  // namespace

void dump_json(thread_state& thread, std::ostream& output, const dump_options& options) {
  output << "{\"thread\": " << ::gettid();
  if (options.group_by_site) {
    output << ", \"groups\": [\n";
    dump_groups(thread, output, options);
  } else {
    output << ", \"fibers\": [\n";
    write_fibers(thread, output, options.stacks);
  }
  output << "]}";
}

}}}  // namespace motet::MOTET_ABI::detail
