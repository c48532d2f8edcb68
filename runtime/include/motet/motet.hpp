// SPDX-License-Identifier: MIT
// All of motet but debug.hpp, which a program includes only to list its fibers.
#pragma once

#include <motet/actor.hpp>
#include <motet/await.hpp>  // and class group, as group.hpp has them
#include <motet/cancel.hpp>
#include <motet/channel.hpp>
#include <motet/condition_variable.hpp>
#include <motet/copy.hpp>
#include <motet/directory.hpp>
#include <motet/dns.hpp>
#include <motet/event.hpp>
#include <motet/every.hpp>
#include <motet/executor.hpp>
#include <motet/fd.hpp>
#include <motet/fiber.hpp>
#include <motet/file.hpp>
#include <motet/file_watch.hpp>
#include <motet/future.hpp>
#include <motet/io.hpp>
#include <motet/local.hpp>
#include <motet/move_on_when_closed.hpp>
#include <motet/mutex.hpp>
#include <motet/net.hpp>
#include <motet/notification.hpp>
#include <motet/offload.hpp>
#include <motet/origin.hpp>
#include <motet/pipe.hpp>
#include <motet/process.hpp>
#include <motet/rate_limiter.hpp>
#include <motet/reader.hpp>
#include <motet/recursive_mutex.hpp>
#include <motet/resource_pool.hpp>
#include <motet/run.hpp>
#include <motet/run_until_signal.hpp>
#include <motet/select.hpp>
#include <motet/semaphore.hpp>
#include <motet/shared_mutex.hpp>
#include <motet/signal_set.hpp>
#include <motet/stream.hpp>
#include <motet/supervise.hpp>
#include <motet/suspend.hpp>
#include <motet/thread.hpp>
#include <motet/thread_pool.hpp>
#include <motet/time.hpp>
#include <motet/timeslice_lock.hpp>
#include <motet/writer.hpp>
