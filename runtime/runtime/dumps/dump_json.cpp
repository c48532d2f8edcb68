// SPDX-License-Identifier: MIT
// A thread's fibers as JSON. See runtime/dumps/dump.hpp.
#include <unistd.h>

#include <array>
#include <ostream>
#include <utility>

#include "core/thread_state.hpp"
#include "runtime/dumps/dump.hpp"
#include "runtime/dumps/fiber_frames.hpp"
#include "runtime/dumps/json_text.hpp"
#include "runtime/dumps/lock_holders.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void write_fiber(std::ostream& out, const control_block& fiber, lock_holders& holders,
                 clock::time_point present) {
  out << "{\"id\": " << fiber.id;
  if (fiber.named) out << ", \"name\": " << json_string{name_of(fiber)};
  if (fiber.parent != nullptr) out << ", \"parent\": " << fiber.parent->id;
  if (!fiber.is_main) out << ", \"site\": " << json_site{fiber.site.file, fiber.site.line};
  out << ", \"state\": " << json_string{doing(fiber)};
  const wait_record* wait = wait_of(fiber);
  if (wait == nullptr) return;
  out << ", \"wait\": " << json_string{wait->description};
  if (wait->of_object) {
    out << ", \"object\": \"0x" << std::hex << wait->subject << std::dec << '"';
  } else if (wait->subject >= 0) {
    out << ", \"subject\": " << wait->subject;
  }
  const auto holder = holders.of(*wait);
  if (holder && holder->what == lock_holder::kind::fiber) out << ", \"held_by\": " << holder->id;
  if (!wait->for_lock && wait->target != nullptr) {
    out << ", \"for_fiber\": " << (*wait->target)->id;
  }
  if (wait->cancelling) out << ", \"cancelling\": true";
  out << ", \"waited_ms\": " << waited(*wait, present);
}

void write_fibers(thread_state& thread, std::ostream& out, bool stacks) {
  const clock::time_point present = thread.kernel().now();
  auto& fibers = thread.fibers();
  frame_names names;
  lock_holders holders(thread);
  std::array<void*, most_frames> room;
  const char* before = "";
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    out << std::exchange(before, ",\n");
    write_fiber(out, *fiber, holders, present);
    if (stacks) out << ", \"stack\": " << json_frames{frames_of(thread, *fiber, room), names};
    out << '}';
  }
}

}  // namespace

void dump_json(thread_state& thread, std::ostream& out, const dump_options& how) {
  out << "{\"thread\": " << ::gettid();
  if (how.group_by_site) {
    out << ", \"groups\": [\n";
    dump_groups(thread, out, how);
  } else {
    out << ", \"fibers\": [\n";
    write_fibers(thread, out, how.stacks);
  }
  out << "]}";
}

}}}  // namespace motet::MOTET_ABI::detail
