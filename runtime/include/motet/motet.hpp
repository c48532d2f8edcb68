// SPDX-License-Identifier: MIT
// All of motet, in the order in which one meets it; debug.hpp is included by those who look inside.
#pragma once

#include <motet/cancel.hpp>
#include <motet/fd.hpp>
#include <motet/fiber.hpp>
#include <motet/group.hpp>
#include <motet/io.hpp>
#include <motet/local.hpp>
#include <motet/net.hpp>
#include <motet/origin.hpp>
#include <motet/run.hpp>
#include <motet/supervise.hpp>
#include <motet/suspend.hpp>
#include <motet/time.hpp>
