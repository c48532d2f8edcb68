// SPDX-License-Identifier: MIT
// See core/event_recorder.hpp.
#include "core/event_recorder.hpp"

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void note_post(const control_block& fiber) noexcept {
  const thread_state* thread = self();
  if (thread != nullptr && thread->recorded()) thread->recording->note(trace::kind::post, fiber.id);
}

}}}  // namespace motet::MOTET_ABI::detail
