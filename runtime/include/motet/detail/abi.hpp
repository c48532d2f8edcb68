// SPDX-License-Identifier: MIT
// Everything of motet's is in an inline namespace named for the library's soname and for how a
// program is watched: objects that were built for another library, or for another sanitizer, do not
// link, and the missing symbol's name says what was expected.
#pragma once

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
#define MOTET_ABI abi_0_address_sanitizer
#elif defined(MOTET_TSAN)
#define MOTET_ABI abi_0_thread_sanitizer
#elif defined(MOTET_SWITCH_OUT_OF_LINE)
#define MOTET_ABI abi_0_switch_out_of_line
#else
#define MOTET_ABI abi_0
#endif

#define MOTET_QUOTED(text) #text
#define MOTET_EXPANDED(text) MOTET_QUOTED(text)
/// The name of a variable that assembly refers to.
#define MOTET_SYMBOL(name) name "_" MOTET_EXPANDED(MOTET_ABI)
