// SPDX-License-Identifier: MIT
// All of motet is in an inline namespace named for the library's soname, for the sanitizer of the
// build, and for the layout of the standard library's types: objects that were built for another
// library, another sanitizer, or with other containers or strings do not link, and the name of the
// missing symbol says what was expected.
#pragma once

#include <version>  // macros that tell which standard library this is, and of which kind

#if !defined(__cpp_exceptions)
#error "motet interrupts fibers by exceptions: build without -fno-exceptions"
#endif
#if !defined(__cpp_rtti) && !defined(__GXX_RTTI)
#error "motet needs to know the types of exceptions and tokens: build without -fno-rtti"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define MOTET_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MOTET_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MOTET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOTET_TSAN 1
#endif
#endif

#if defined(MOTET_ASAN)
#define MOTET_ABI_WATCHED _address_sanitizer
#elif defined(MOTET_TSAN)
#define MOTET_ABI_WATCHED _thread_sanitizer
#elif defined(MOTET_SWITCH_OUT_OF_LINE)
#define MOTET_ABI_WATCHED _switch_out_of_line
#else
#define MOTET_ABI_WATCHED
#endif

#if defined(_LIBCPP_VERSION)
#define MOTET_ABI_LIBRARY _libcxx
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define MOTET_ABI_LIBRARY _old_strings
#else
#define MOTET_ABI_LIBRARY
#endif
#if defined(_GLIBCXX_DEBUG)
#define MOTET_ABI_CONTAINERS _debug_containers
#else
#define MOTET_ABI_CONTAINERS
#endif

#define MOTET_JOINED(library, containers, sanitizers) abi_0##library##containers##sanitizers
#define MOTET_JOIN(library, containers, sanitizers) MOTET_JOINED(library, containers, sanitizers)
#define MOTET_ABI MOTET_JOIN(MOTET_ABI_LIBRARY, MOTET_ABI_CONTAINERS, MOTET_ABI_WATCHED)

#define MOTET_QUOTED(text) #text
#define MOTET_EXPANDED(text) MOTET_QUOTED(text)
/// The name of a variable that assembly refers to.
#define MOTET_SYMBOL(name) name "_" MOTET_EXPANDED(MOTET_ABI)
