// SPDX-License-Identifier: MIT
// The names of Boost.Fiber (1.74) on motet's fibers, for a program that moves from the one to the
// other: `boost::fibers` and `boost::this_fiber` are aliases. A program includes this in place of
// <boost/fiber/all.hpp>, and links motet in place of boost_fiber and boost_context. motet.hpp does
// not include this, and the library does not need Boost.
//
// What differs: a fiber stays on its thread, so there are no scheduling algorithms to choose but
// round_robin, no properties, and no segmented stacks. What goes through a channel must have a move
// constructor that does not throw. A thread all of whose fibers wait for one another gets a
// motet::deadlock in its main fiber. Not here: context, has_ready_fibers(), Boost's adapters for
// Asio, CUDA and HIP.
#pragma once

#ifdef BOOST_FIBERS_H
#error \
    "<motet/compat/boost_fiber.hpp> takes the place of <boost/fiber/all.hpp>: include one of them"
#endif

#include <motet/compat/boost_fiber/channels.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/compat/boost_fiber/fiber.hpp>
#include <motet/compat/boost_fiber/fiber_specific_ptr.hpp>
#include <motet/compat/boost_fiber/futures.hpp>
#include <motet/compat/boost_fiber/locks.hpp>
#include <motet/compat/boost_fiber/scheduling.hpp>
#include <motet/compat/boost_fiber/stacks.hpp>
#include <motet/compat/boost_fiber/this_fiber.hpp>

namespace boost {
namespace fibers = motet::compat::boost_fiber;
namespace this_fiber = motet::compat::boost_fiber::this_fiber;
}  // namespace boost
