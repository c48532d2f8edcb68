// SPDX-License-Identifier: MIT
// The names of Boost.Fiber (1.74) on motet's fibers, for a program that moves from the one to the
// other: `boost::fibers` and `boost::this_fiber` are aliases. A program includes this in place of
// <boost/fiber/all.hpp>, and links motet in place of boost_fiber and boost_context. motet.hpp does
// not include this, and the library does not need Boost.
//
// A program that includes headers of Boost.Fiber one by one includes this in place of all of them.
//
// What differs:
// - A fiber stays on its thread. So the only scheduling algorithm is round_robin, and there are no
//   properties. Nor are there segmented stacks, a context, has_ready_fibers(), or async() with two
//   allocators. Of a program's own stack allocator, only size() is used.
// - A dispatched fiber begins before its constructor returns, but behind the fibers that can run.
// - The namespace boost::fibers is an alias, which cannot be opened again.
// - try_lock() by the holder of a mutex returns false.
// - If copying a value into a promise throws, the promise holds that exception, and is satisfied.
// - What goes through a channel must have a move constructor that does not throw.
// - A failure of a child that motet::spin() or a group has started in one of these fibers is thrown
//   where the child is awaited, or at the fiber's end, but interrupts no other wait.
// - When all fibers of a thread wait for one another, motet says so on stderr.
#pragma once

#ifdef BOOST_FIBERS_DETAIL_CONFIG_H
#error "motet/compat/boost_fiber.hpp takes the place of boost/fiber/all.hpp: include one of them"
#endif

#include <motet/compat/boost_fiber/channels.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/compat/boost_fiber/fiber.hpp>
#include <motet/compat/boost_fiber/fiber_specific_ptr.hpp>
#include <motet/compat/boost_fiber/futures.hpp>
#include <motet/compat/boost_fiber/locks.hpp>
#include <motet/compat/boost_fiber/scheduling.hpp>
#include <motet/compat/boost_fiber/stacks.hpp>
#include <motet/compat/boost_fiber/tasks.hpp>
#include <motet/compat/boost_fiber/this_fiber.hpp>

namespace boost {
namespace fibers = motet::compat::boost_fiber;
namespace this_fiber = motet::compat::boost_fiber::this_fiber;
}  // namespace boost
