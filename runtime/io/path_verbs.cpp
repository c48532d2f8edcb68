// SPDX-License-Identifier: MIT
// See motet/io/file_verbs.hpp: the calls on the names of files.
#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <motet/io/fd.hpp>
#include <motet/io/file_verbs.hpp>
#include <string>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

/// `number` is the mode, or the mask, that the verb has.
operation on_path(verb kind, int directory, const char* path, int flags, unsigned number = 0) {
  operation op;
  op.kind = kind;
  op.fd = directory;
  op.path = path;
  op.flags = flags;
  op.length = number;
  return op;
}

/// A call in either form: made by one function for both.
struct path_call {
  operation op;
  const char* name;
};

path_call opening(int directory, const char* path, int flags, mode_t mode) {
  return {on_path(verb::openat, directory, path, flags | O_CLOEXEC, mode), "openat"};
}

path_call unlinking(int directory, const char* path, int flags) {
  return {on_path(verb::unlinkat, directory, path, flags), "unlinkat"};
}

path_call making_directory(int directory, const char* path, mode_t mode) {
  return {on_path(verb::mkdirat, directory, path, 0, mode), "mkdirat"};
}

path_call inquiry(int directory, const char* path, int flags, unsigned mask,
                  struct ::statx& status) {
  operation op = on_path(verb::statx, directory, path, flags, mask);
  op.status = &status;
  return {op, "statx"};
}

/// An operation has one descriptor, of which a fiber that closes it knows. So the other directory
/// is a copy, which no other fiber can close.
class renaming {
 public:
  renaming(int directory, const char* path, int new_directory, const char* new_path,
           unsigned flags) noexcept
      : op(on_path(verb::renameat, directory, path, static_cast<int>(flags),
                   static_cast<unsigned>(new_directory))) {
    op.new_path = new_path;
    if (new_directory == AT_FDCWD || new_directory == directory) return;
    copy_ = fd(sys::fcntl(new_directory, F_DUPFD_CLOEXEC, 0));
    if (!copy_) refusal_ = -errno;
    op.length = static_cast<unsigned>(copy_.get());
  }

  /// Returns: 0, or minus an errno value if the directory is not open, or cannot be duplicated.
  std::int32_t refusal() const noexcept { return refusal_; }

  operation op;

 private:
  fd copy_;
  std::int32_t refusal_ = 0;
};

/// As check_result(), but the error names the path.
std::size_t check_path_result(std::int32_t result, const operation& op, const char* call) {
  if (result >= 0 || result == -ECANCELED) return check_result(result, call, op.fd);
  const std::string path = op.path == nullptr ? "no path" : "\"" + std::string(op.path) + "\"";
  throw std::system_error(-result, std::system_category(), std::string(call) + " of " + path);
}

/// A null path is refused here: the calls of the C library are declared never to get one.
std::int32_t perform_path_now(operation& op, const char* call) {
  return op.path == nullptr ? -EFAULT : perform_now(op, call);
}

std::size_t perform(path_call&& call) {
  here().deliver();
  return check_path_result(perform_path_now(call.op, call.name), call.op, call.name);
}
std::size_t perform(path_call&& call, std::error_code& error) noexcept {
  return quietly(error, [&] { return perform_path_now(call.op, call.name); });
}

std::int32_t perform_renaming(renaming& call) {
  if (call.refusal() != 0) return call.refusal();
  return call.op.new_path == nullptr ? -EFAULT : perform_path_now(call.op, "renameat");
}

}}  // namespace detail

namespace io {

using detail::perform;

int openat(int directory, const char* path, int flags, mode_t mode) {
  return static_cast<int>(perform(detail::opening(directory, path, flags, mode)));
}
int openat(int directory, const char* path, int flags, mode_t mode,
           std::error_code& error) noexcept {
  const auto result =
      static_cast<int>(perform(detail::opening(directory, path, flags, mode), error));
  return error ? -1 : result;
}

void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status) {
  perform(detail::inquiry(directory, path, flags, mask, status));
}
void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status,
           std::error_code& error) noexcept {
  perform(detail::inquiry(directory, path, flags, mask, status), error);
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags) {
  detail::here().deliver();
  detail::renaming call(directory, path, new_directory, new_path, flags);
  detail::check_path_result(detail::perform_renaming(call), call.op, "renameat");
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags, std::error_code& error) noexcept {
  detail::renaming call(directory, path, new_directory, new_path, flags);
  detail::quietly(error, [&] { return detail::perform_renaming(call); });
}

void unlinkat(int directory, const char* path, int flags) {
  perform(detail::unlinking(directory, path, flags));
}
void unlinkat(int directory, const char* path, int flags, std::error_code& error) noexcept {
  perform(detail::unlinking(directory, path, flags), error);
}

void mkdirat(int directory, const char* path, mode_t mode) {
  perform(detail::making_directory(directory, path, mode));
}
void mkdirat(int directory, const char* path, mode_t mode, std::error_code& error) noexcept {
  perform(detail::making_directory(directory, path, mode), error);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
