// SPDX-License-Identifier: MIT
// See core/hooks.hpp. The one file that knows all rooms of the library.
#include "core/hooks.hpp"

#include "cancellation/pending_throw.hpp"
#include "cancellation/remote_verbs.hpp"
#include "fibers/fiber_end.hpp"
#include "migration/journey.hpp"
#include "observe/dumps/dump.hpp"
#include "observe/observers.hpp"
#include "observe/snapshots.hpp"
#include "observe/stalls/stall_watch.hpp"
#include "rooms.hpp"
#include "runtime/run.hpp"
#include "threads/await_thread.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

constinit const upward_calls hooks = {
    .do_requests = &do_requests,
    .interrupted_at_once = &interrupted_at_once,
    .fiber_main = &fiber_main,
    .counted_fiber_main = &counted_fiber_main,
    .await_thread = &await_thread,
    .begin_runtime = &begin_runtime,
    .begin_session = &begin_session,
    .end_session = &end_session,
    .make_kernel_of_child = &make_kernel_of_child,
    .end_idle = [](deadlock_detector& detector) noexcept { return detector.end_idle(); },
    .look_whether_stuck =
        [](deadlock_detector& detector) noexcept { detector.look_whether_stuck(); },
#if MOTET_WITH_MIGRATION
    .is_away = [](const journey& trip) noexcept { return trip.absent; },
    .come_home = &end_journey,
    .go_to = [](journey& trip, const control_block& owner) noexcept { go_to(trip, owner); },
    .failure_while_away = &failure_while_away,
    .raised_too_late = &raised_too_late,
    .forward_stops = &forward_stops,
    .forward_result = &forward_result,
    .dispose_journey = &dispose_journey,
#endif
#if MOTET_WITH_OBSERVE
    .prepare = &prepare_observers,
    .observe = &observe,
    .unobserve = &stop_monitoring,
    .lock_observers = &lock_observers,
    .unlock_observers = &unlock_observers,
    .abandon_observers = &abandon_observers,
    .write_dump = [](dump_request& request) noexcept { request.write(); },
    .dump_fibers = [](thread_state& thread, std::ostream& output) { dump(thread, output, {}); },
    .save_snapshot = &copy_trace,
#endif
};

}}}  // namespace motet::MOTET_ABI::detail
