// SPDX-License-Identifier: MIT
// The origin of an exception is noted in a map by the address of the exception object. The pointer
// in the object's header to the function that destroys it is replaced by one to a function that
// removes the note first. So no note outlives its object, whose memory the next exception may get.
#include "unhandled/origin.hpp"

#include <map>
#include <motet/fibers/origin.hpp>
#include <mutex>
#include <new>
#include <utility>

#include "core/store/fiber_store.hpp"
#include "unhandled/exception_object.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail::origins {

namespace {

struct entry {
  exception_origin origin_of_error;
  void (*destroy)(void*) = nullptr;  // the object's own function; null: it needs none
};

using notebook = std::map<const void*, entry>;

constinit std::mutex guarding;
constinit notebook* notes = nullptr;  // made when needed, never freed: exceptions outlive statics

/// The C++ runtime calls this to destroy an exception that was noted.
void forget_and_destroy(void* object) {
  std::unique_lock guard(guarding);
  const auto note = notes->extract(object);
  guard.unlock();
  // Without the lock: the destructor may have other exceptions noted and forgotten.
  if (note.mapped().destroy != nullptr) note.mapped().destroy(object);
}

exception_origin describe(const control_block& fiber) {
  exception_origin source{fiber.id, std::string(name_of(fiber)), fiber.site, 0, {}};
  if (fiber.parent != nullptr) {
    source.parent = fiber.parent->id;
    source.parent_name = copied_name_of(*fiber.parent);
  }
  return source;
}

}  // namespace

void note(const std::exception_ptr& error, const control_block& fiber) noexcept {
  if (error == nullptr) return;  // an exception of another language, or another C++ runtime
  try {
    entry fresh{describe(fiber)};
    void* object = object_of(error);
    const std::lock_guard guard(guarding);
    if (notes == nullptr) notes = new notebook;
    const auto [position, first] = notes->try_emplace(object, std::move(fresh));
    if (!first) return;
    position->second.destroy = std::exchange(header_of(object).destroy, &forget_and_destroy);
  } catch (const std::bad_alloc&) {
    // The exception goes on without an origin.
  }
}

void lock() noexcept {
  guarding.lock();
}

void unlock() noexcept {
  guarding.unlock();
}

}  // namespace detail::origins

std::optional<exception_origin> origin(const std::exception_ptr& error) {
  using namespace detail::origins;
  if (error == nullptr) return std::nullopt;
  const std::lock_guard guard(guarding);
  if (notes == nullptr) return std::nullopt;
  const auto entry = notes->find(detail::object_of(error));
  if (entry == notes->end()) return std::nullopt;
  return entry->second.origin_of_error;
}

}}  // namespace motet::MOTET_ABI
